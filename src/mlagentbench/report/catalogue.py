"""Write the catalogue of tasks as a Markdown page, with what each task's check measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mlagentbench.checks.findings import Check
from mlagentbench.report.formatting import number, quantity
from mlagentbench.task.catalogue import Task

CATEGORIES = ("canonical", "classic Kaggle", "Kaggle challenge", "recent research", "code improvement")
"""The paper's categories, in its order; others follow by name."""
DIGITS = 2
"""Significant digits of scores; further digits differ from one machine to another."""
COLUMNS = ("task", "what", "metric", "starter", "constant", "solution", "needs", "real data")
OPENING = """\
# The tasks

Scores are of the mini variant, which is generated and runs offline in seconds: the starter's as the agent finds it, that of a submission
which is the same for every row, and what an able agent is known to reach. `needs` names extras of the package, to be installed as
`pip install "mlagentbench[vision]"`; `make install EXTRAS=tasks` has them all. A task marked † has answers that are public elsewhere.

This page is written by `mlab tasks check --all --variant mini --markdown docs/tasks.md`, which lets every task prove itself first.
"""


class CheckedTask(NamedTuple):
    """A task and the findings of its check."""

    task: Task
    check: Check


def catalogue_page(entries: Iterable[CheckedTask]) -> str:
    """Return the page of all tasks, by category."""
    by_category: dict[str, list[CheckedTask]] = {}
    for entry in entries:
        by_category.setdefault(entry.task.spec.category, []).append(entry)
    known = [category for category in CATEGORIES if category in by_category]
    parts = [OPENING]
    for category in (*known, *sorted(by_category.keys() - set(known))):
        rows = [_row(entry) for entry in sorted(by_category[category], key=lambda entry: entry.task.id)]
        parts.append(f"## {category[0].upper()}{category[1:]}\n\n{_table(rows)}")
    return "\n".join(parts)


def _row(entry: CheckedTask) -> Mapping[str, str]:
    spec, numbers = entry.task.spec, entry.check.numbers
    # Measured times are left out, since they depend on the machine and the moment.
    timed = spec.submission.mode == "code"

    def score(value: float | None) -> str:
        return "—" if value is None or timed else quantity(value, spec.metric.unit, DIGITS)

    starter = score(sum(numbers.starter) / len(numbers.starter) if numbers.starter else None)
    if spec.starter.state != "runs":
        starter = f"{spec.starter.state}; {spec.starter.predictor}: {score(numbers.baseline)}"
    elif timed:
        starter = "timed beside the submission"
    data = spec.data
    if data is not None:
        size = f"{data.download_mb:,} MB" if data.download_mb < 1000 else f"{number(data.download_mb / 1000, DIGITS)} GB"
        source = f"[{size}]({data.url}), {data.licence}" + (f", [terms]({data.consent}) to accept" if data.consent else "")
    else:
        source = "generated" if entry.task.preparer else "none"
    return {
        "task": f"`{spec.id}`" + ("†" if spec.answers_public else ""),
        "what": f"{spec.title} ({spec.modality})",
        "metric": f"{spec.metric.name} {'↑' if spec.metric.direction == 'maximize' else '↓'}",
        "starter": starter,
        "constant": score(numbers.constant),
        "solution": score(numbers.solution),
        "needs": ", ".join(spec.extras) or "—",
        "real data": source,
    }


def _table(rows: list[Mapping[str, str]]) -> str:
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(row[column].replace("|", "\\|") for column in COLUMNS) + " |" for row in rows]
    return "\n".join(lines) + "\n"
