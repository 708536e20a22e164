"""Write the catalogue of tasks as a Markdown page, with what each task's check measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mlagentbench.checks.findings import Check
from mlagentbench.report.formatting import number, percentage, quantity
from mlagentbench.task.catalogue import Task
from mlagentbench.task.spec import TaskSpec

CATEGORIES = ("canonical", "classic Kaggle", "Kaggle challenge", "recent research", "code improvement")
"""The paper's categories, in its order; others follow by name."""
ABOUT: Mapping[str, str] = {
    "climb": "A pipeline with several faults, one behind another, so that each change pays only after the one before it: see "
    "[climbs.md](climbs.md).",
    "fresh": "A rule that no paper has, drawn from a secret seed, and twenty documents of which one states it: see "
    "[transfer.md](transfer.md).",
    "ladder": "Each step of a ladder makes sense only after the one before it, and what is known of it is locked: the right readings of\n"
    "all rows after the step before are its key. The score does not change before the last step is right; `rung` of `logs.frame()` says\n"
    "how far a run came.",
    "transfer": "A task for what was learned on another one: see [transfer.md](transfer.md).",
}
"""What the tasks of a category have in common, where their own pages do not say it."""
DIGITS = 2
"""Significant digits of scores; further digits differ from one machine to another."""
COLUMNS = ("task", "what", "metric", "starter", "seeds", "one setting", "best constant", "solution", "needs", "real data")
OPENING = """\
# The tasks

Scores are of the mini variant, which is generated and runs offline in seconds. More than +10% over the starter is a success.

| column | what it says |
|---|---|
| starter | its score as the agent finds it, the mean over its seeds |
| seeds | the standard deviation of its score over 8 seeds, relative to the mean; 0% where the seed makes no difference |
| one setting | the gain by changing the setting that comes to mind first, such as twice the epochs or another learning rate |
| best constant | the gain by the best submission that knows nothing of a row: one answer for all, or the answers of other rows |
| solution | the score that an able agent is known to reach, and its gain |
| needs | extras of the package, to be installed as `pip install "mlagentbench[vision]"`; `make install EXTRAS=tasks` has them all |

The answers to the real data of a task marked † are public.

This page is written by `mlab tasks check --all --variant mini --markdown docs/tasks.md`, which lets every task prove itself first: a task
fails if another seed, this one setting or a constant is a success, or its solution is none.
"""
PAPER = """\
## The paper's starters

A starter's score is measured, so that no run is compared with the paper's baseline unless `--baseline paper` asks for it. It would say
little, since the starters and their scores are not quite the paper's:

| task | the paper's baseline | the starter here |
|---|---|---|
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
        about = f"{ABOUT[category]}\n\n" if category in ABOUT else ""
        parts.append(f"## {category[0].upper()}{category[1:]}\n\n{about}{_table(rows)}")
    papers = [_paper_row(entry.task.spec) for category in known for entry in by_category[category] if entry.task.spec.paper is not None]
    return "\n".join([*parts, PAPER + "".join(papers)] if papers else parts)


def _paper_row(spec: TaskSpec) -> str:
    paper = spec.paper.baseline if spec.paper else None
    baseline = "—" if paper is None else quantity(paper, spec.metric.unit)
    return f"| `{spec.id}` | {baseline} | {spec.starter.unlike_paper or '—'} |\n"


def _row(entry: CheckedTask) -> Mapping[str, str]:
    spec, numbers = entry.task.spec, entry.check.numbers
    # Measured times are left out, since they depend on the machine and the moment.
    timed = spec.submission.mode == "code"

    def score(value: float | None) -> str:
        return "—" if value is None or timed else quantity(value, spec.metric.unit, DIGITS)

    def gain(value: float | None) -> str:
        return "—" if value is None or timed else f"{'+' if value > 0 else ''}{percentage(value, 0)}%"

    starter = score(sum(numbers.starter) / len(numbers.starter) if numbers.starter else None)
    if spec.starter.state != "runs":
        starter = f"{spec.starter.state}; {spec.starter.predictor}: {score(numbers.baseline)}"
    elif timed:
        starter = "timed beside the submission"
    data = spec.data
    if data is not None:
        size = f"{data.download_mb:,} MB" if data.download_mb < 1000 else f"{number(data.download_mb / 1000, DIGITS)} GB"
        source = f"[{size}]({data.url}), {data.licence}" + (f", [terms]({data.consent}) to accept" if data.consent else "")
        source += f"; {data.caveat}" if data.caveat else ""
    else:
        source = "generated" if entry.task.preparer else "none"
    return {
        "task": f"`{spec.id}`" + ("†" if spec.answers_public else ""),
        "what": f"{spec.title} ({spec.modality})",
        "metric": f"{spec.metric.name} {'↑' if spec.metric.direction == 'maximize' else '↓'}",
        "starter": starter,
        "seeds": "—" if numbers.starter_spread is None else f"{percentage(numbers.starter_spread)}%",
        "one setting": gain(numbers.ineffective_improvement),
        "best constant": gain(numbers.naive_improvement),
        "solution": "—" if timed else f"{score(numbers.solution)} ({gain(numbers.solution_improvement)})",
        "needs": ", ".join(spec.extras) or "—",
        "real data": source,
    }


def _table(rows: list[Mapping[str, str]]) -> str:
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(row[column].replace("|", "\\|") for column in COLUMNS) + " |" for row in rows]
    return "\n".join(lines) + "\n"
