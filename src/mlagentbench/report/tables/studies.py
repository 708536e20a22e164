"""Build the tables of studies: what each component of the research agent is worth, when its log helps, and what transfers."""

from __future__ import annotations

from mlagentbench.report import formatting
from mlagentbench.report.components import HIGH_LEVEL, LOG, SUMMARIES, Components
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.model import AVERAGE, Kind, Row, Table, TextColumn, Value, named
from mlagentbench.report.tables.values import estimate, interval, number
from mlagentbench.report.transfer import transfers
from mlagentbench.results.cells import Cell, rate_over_tasks
from mlagentbench.results.compare import Comparison

EVERY = "all categories"
DIFFERENCE: dict[str, Kind] = {name: "number" for name in ("difference", "low", "high", "p")}
IMPROVEMENT: dict[str, Kind] = {f"improvement_{name}": "number" for name in ("difference", "low", "high")}
PAIR: dict[str, Kind] = {"full": "text", "without": "text"}
AMOUNT_WORDS = {
    "steps": "steps",
    "complexity": "complexity (lines changed)",
    "experiments": "exploration (experiments)",
    "restarts": "exploration (restarts)",
}
COMPONENTS = ("Reflection", "Research Plan and Status", "Fact Check", "Thought", LOG, HIGH_LEVEL, SUMMARIES)


def studies(experiment: Experiment) -> list[Table]:
    """Return the tables of studies; without rows where no columns differ in one component, or in experience."""
    found = Components(experiment)
    return [
        components(found),
        components_improvement(found),
        log_trends(found),
        log_by_step(found),
        transfer(experiment),
    ]


def components(found: Components) -> Table:
    """Return the table of what each component is worth in each category: the success rate with it less that without it."""
    return _components(found, "components", "What each component is worth: success, in percentage points [95% interval]", "")


def components_improvement(found: Components) -> Table:
    """Return the same table of improvements."""
    title = "What each component is worth: improvement, in percentage points [95% interval]"
    return _components(found, "components-improvement", title, "improvement_")


def log_trends(found: Components) -> Table:
    """Return the table of how the benefit of the research log changes over tasks with steps, complexity and exploration."""
    several = len({(each.full, each.without) for each in found.log_trends}) > 1
    rows: list[Row] = [
        {
            **{"full": each.full, "without": each.without, "measure": each.measure, "amount": each.amount},
            **{**interval("slope", each.trend.slope), "p": each.trend.p, "p_adjusted": each.p_adjusted},
            **{"below": each.trend.below, "above": each.trend.above, "tasks": each.trend.tasks},
        }
        for each in found.log_trends
    ]
    kinds: dict[str, Kind] = {name: "number" for name in ("slope", "low", "high", "p", "p_adjusted", "below", "above")}
    return Table(
        name="research-log",
        title="When the research log helps: its benefit over tasks, in percentage points [95% interval]",
        columns={**PAIR, "measure": "text", "amount": "text", **kinds, "tasks": "count"},
        rows=rows,
        down=TextColumn(
            "by",
            lambda row: f"{AMOUNT_WORDS[str(row['amount'])]}, {row['measure']}{', ' + named(row['full']) if several else ''}",
            number=False,
        ),
        shown=[
            TextColumn("with each doubling", lambda row: estimate(row, "slope", signed=True)),
            TextColumn("p", lambda row: _p(row["p_adjusted"])),
            TextColumn("fewer: benefit", lambda row: _points(row["below"])),
            TextColumn("more: benefit", lambda row: _points(row["above"])),
            TextColumn("tasks", lambda row: str(row["tasks"])),
        ],
        notes=[
            "The benefit of a task is its success rate, or mean improvement, with the log less that without it. Amounts are means over the"
            " runs of both: steps, lines changed in files that the agent wrote, scripts executed after a change, changes taken back.",
            f"Each task is one observation. p is adjusted for the {len(rows)} rows (Holm); the intervals are not.",
        ],
    )


def log_by_step(found: Components) -> Table:
    """Return the table of the benefit of the research log after some steps of a run."""
    several = len({(each.first, each.second) for _, each in found.log_by_step}) > 1
    rows: list[Row] = [
        {"full": each.first, "without": each.second, "steps": steps, **_success(each), **_improvement(each), "tasks": len(each.tasks)}
        for steps, each in found.log_by_step
    ]
    return Table(
        name="research-log-by-step",
        title="What the research log is worth after some steps, in percentage points [95% interval]",
        columns={**PAIR, "steps": "count", **DIFFERENCE, **IMPROVEMENT, "tasks": "count"},
        rows=rows,
        down=TextColumn("steps", lambda row: f"{row['steps']}{', ' + named(row['full']) if several else ''}"),
        shown=[
            TextColumn("success", lambda row: estimate(row, "difference", signed=True)),
            TextColumn("improvement", lambda row: estimate(_renamed(row, "improvement_"), "difference", signed=True)),
            TextColumn("tasks", lambda row: str(row["tasks"])),
        ],
        notes=["Of the submissions as they stood after so many steps, on these tasks. A run that ended earlier keeps its last submission."],
    )


def transfer(experiment: Experiment) -> Table:
    """Return the table of success by the experience that runs were given: related, unrelated and none."""
    found = transfers(experiment)
    several = len({(each.agent, each.model) for each in found}) > 1
    rows: list[Row] = []
    for each in found:
        row: dict[str, Value] = {"task": each.task, "agent": each.agent, "model": each.model}
        row |= {"related": each.related, "unrelated": each.unrelated}
        for kind, column in (("none", each.none_column), ("unrelated", each.unrelated_column), ("related", each.related_column)):
            row |= {f"{kind}_{name}": value for name, value in _rate(column).items()}
        for kind, comparison in (("none", each.over_none), ("unrelated", each.over_unrelated)):
            row |= {f"over_{kind}_{name}": value for name, value in {**_success(comparison), **_improvement(comparison)}.items()}
        rows.append(row)
    rates: dict[str, Kind] = {"rate": "number", "low": "number", "high": "number", "runs": "count"}
    columns: dict[str, Kind] = {"task": "text", "agent": "text", "model": "text", "related": "text", "unrelated": "text"}
    columns |= {f"{kind}_{name}": of for kind in ("none", "unrelated", "related") for name, of in rates.items()}
    columns |= {f"over_{kind}_{name}": of for kind in ("none", "unrelated") for name, of in {**DIFFERENCE, **IMPROVEMENT}.items()}
    return Table(
        name="transfer",
        title="What experience of other tasks is worth: success, % [95% interval], n runs",
        columns=columns,
        rows=rows,
        down=TextColumn("task", lambda row: _transferred(row, several), number=False),
        shown=[
            TextColumn("no experience", lambda row: estimate(_renamed(row, "none_"), "rate", of="runs")),
            TextColumn("unrelated", lambda row: estimate(_renamed(row, "unrelated_"), "rate", of="runs")),
            TextColumn("related", lambda row: estimate(_renamed(row, "related_"), "rate", of="runs")),
            TextColumn("related less none", lambda row: estimate(_renamed(row, "over_none_"), "difference", signed=True)),
            TextColumn("related less unrelated", lambda row: estimate(_renamed(row, "over_unrelated_"), "difference", signed=True)),
        ],
        notes=[
            "Experience is related if it is of the same task or of one of its domain, and unrelated if it is of other tasks.",
            "Related less unrelated is what transfers: reading any experience costs steps, and may help by its mere form.",
        ],
    )


def _components(found: Components, name: str, title: str, prefix: str) -> Table:
    several = len({each.full for each in found.ablations}) > 1
    rows: list[Row] = [
        {
            **{"component": each.component, "category": each.category, "full": each.full, "without": each.without},
            **(_improvement(each.comparison) if prefix else {**_success(each.comparison), "p_adjusted": each.p_adjusted}),
            "tasks": len(each.comparison.improvement_tasks if prefix else each.comparison.tasks),
            **{"full_runs": each.comparison.first_runs, "without_runs": each.comparison.second_runs},
            "runs_needed": each.comparison.runs_needed,
        }
        for each in sorted(found.ablations, key=lambda each: COMPONENTS.index(each.component))
    ]
    kinds: dict[str, Kind] = IMPROVEMENT if prefix else {**DIFFERENCE, "p_adjusted": "number"}
    few = [row for row in rows if row["category"] is None and row["runs_needed"] is not None]
    needed = [f"{row['component']} {row['runs_needed']}" for row in few]
    return Table(
        name=name,
        title=title,
        columns={
            **{"component": "text", "category": "text", **PAIR, **kinds},
            **{"tasks": "count", "full_runs": "count", "without_runs": "count", "runs_needed": "count"},
        },
        rows=rows,
        down=TextColumn("component", lambda row: f"{row['component']}{', of ' + named(row['full']) if several else ''}", number=False),
        shown=[TextColumn("", lambda row: _worth(row, prefix))],
        across="category",
        words={"None": EVERY},
        ranks={"category": [None]},
        notes=[
            "The agent with the component less the same agent without it, paired by task, as means over the tasks of a category: what other"
            " runs of these tasks would say.",
            *(["A star: p ≤ 0.05, adjusted for all components, and for all categories where there is one (Holm)."] if not prefix else []),
            *([f"Runs needed of each task, to see such a difference: {'; '.join(needed)}."] if few and not prefix else []),
        ],
    )


def _worth(row: Row, prefix: str) -> str:
    text = estimate(_renamed(row, prefix), "difference", of="tasks", signed=True)
    return f"{text} *" if not prefix and row["p_adjusted"] is not None and number(row["p_adjusted"]) <= 0.05 else text


def _success(found: Comparison) -> dict[str, Value]:
    these = found.these_tasks
    return {**interval("difference", these.difference if these else None), "p": these.p if these else None}


def _improvement(found: Comparison) -> dict[str, Value]:
    return {f"improvement_{name}": value for name, value in interval("difference", found.improvement).items()}


def _rate(column: dict[str, Cell]) -> dict[str, Value]:
    return {**interval("rate", rate_over_tasks(column.values())), "runs": sum(len(cell.counted) for cell in column.values())}


def _renamed(row: Row, prefix: str) -> Row:
    """Return the values whose names begin with a prefix, without it, and all others."""
    return {**row, **{name.removeprefix(prefix): value for name, value in row.items() if prefix and name.startswith(prefix)}}


def _transferred(row: Row, several: bool) -> str:
    given = " and ".join(f"{kind} {row[kind]}" for kind in ("related", "unrelated") if row[kind])
    who = f", {row['agent']}, {row['model']}" if several else ""
    return (AVERAGE if row["task"] is None else f"{row['task']} ({given})") + who


def _points(value: Value) -> str:
    return f"{'+' if number(value) > 0 else ''}{formatting.percentage(number(value))}"


def _p(value: Value) -> str:
    p = number(value)
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
