"""Compare the paper's agents in pairs, on its tasks and on other tasks, by the counts of its Table 3; docs/results.md holds the output.

python benchmarks/paper_comparisons.py
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from mlagentbench.report.formatting import interval_text, percentage
from mlagentbench.results.statistics.inference import Inference, TaskCounts, on_other_tasks, on_these_tasks
from mlagentbench.results.statistics.intervals import adjusted
from mlagentbench.task.catalogue import find_tasks

RUNS = (8, 5, 7)
"""The runs of a cell that give its percentage: the paper's agents have 8, its baseline has fewer where its rate is not of 8."""


def main() -> None:
    print("\n".join(lines()))


def lines() -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    counts = paper_counts()
    pairs = list(combinations(next(iter(counts.values())), 2))
    these, others = [], []
    for first, second in pairs:
        tasks = [TaskCounts(*by_model[first], *by_model[second]) for by_model in counts.values()]
        these.append(on_these_tasks(tasks))
        others.append(on_other_tasks([each.first_successes / each.first_runs - each.second_successes / each.second_runs for each in tasks]))
    yield "| pair | on these tasks | p | Holm | on other tasks | p | Holm |"
    yield "|---|---|---|---|---|---|---|"
    holm = [adjusted([each.p for each in found if each]) for found in (these, others)]
    for (first, second), here, there, p_here, p_there in zip(pairs, these, others, *holm, strict=True):
        assert here is not None and there is not None
        on_these, on_others = (f"{_difference(found)} | {_p(found.p)}" for found in (here, there))
        yield f"| {first} less {second} | {on_these} | {_p(p_here)} | {on_others} | {_p(p_there)} |"


def paper_counts() -> dict[str, dict[str, tuple[int, int]]]:
    """Return the successes and runs of each cell of Table 3, by task and model."""
    found = {task: listed.spec.paper.success for task, listed in find_tasks().items() if listed.spec.paper and listed.spec.paper.success}
    return {task: {model: _counts(rate) for model, rate in by_model.items()} for task, by_model in found.items()}


def _counts(percent: float) -> tuple[int, int]:
    runs = next(runs for runs in RUNS if abs(round(percent * runs / 100) * 100 / runs - percent) < 0.05)
    return round(percent * runs / 100), runs


def _difference(found: Inference) -> str:
    value, low, high = found.difference
    return f"{'+' if value > 0 else ''}{percentage(value)} [{interval_text(low, high) or percentage(low, 0)}]"


def _p(p: float) -> str:
    return "< 0.00001" if p < 1e-5 else f"{p:.2g}" if p < 0.1 else f"{p:.2f}"


if __name__ == "__main__":
    main()
