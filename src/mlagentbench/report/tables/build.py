"""Build the tables of an experiment, which `mlab report` prints and writes to files.

Success is as in the paper's Table 3 (arXiv 2310.03302), improvements as in its Table 4; each number has its 95% interval and the number of
runs that it is computed from. Runs that are not counted are in no rate and no mean; a table of their own lists them by name.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlagentbench.report import formatting
from mlagentbench.report.experiment import Experiment, LeaderboardRow
from mlagentbench.report.tables.model import AVERAGE, Kind, Row, Table, TextColumn, Value, named
from mlagentbench.report.wording import ENDED, VERDICTS, ended_briefly, price_words
from mlagentbench.results.cells import Cell
from mlagentbench.results.compare import AFTER, BEFORE, UNKNOWN_DATE, Comparison, TaskGroup, by_cutoff
from mlagentbench.results.counts import DAMAGED, UNFINISHED, counts
from mlagentbench.results.inference import Inference
from mlagentbench.results.statistics import Interval

INTERVAL: Mapping[str, Kind] = {"low": "number", "high": "number"}
COLUMN: Mapping[str, Kind] = {"column": "text", "agent": "text", "model": "text"}
RUNS: Mapping[str, Kind] = {"runs": "count", "tasks": "count", "not_counted": "count"}


def tables(experiment: Experiment, cutoffs: Mapping[str, datetime.date | None]) -> list[Table]:
    """Return all tables that have rows; if no run is counted, only those of verdicts, endings and runs that are not counted.

    Args:
        experiment: the runs.
        cutoffs: the last day of each model's training data, by the model's name; None where it is not known.
    """
    whatever = [verdicts(experiment), endings(experiment), not_counted(experiment)]
    of_counted = [success(experiment), improvement(experiment), cost(experiment)]
    of_groups = [categories(experiment), periods(experiment, cutoffs), compared(experiment)]
    found = (*of_counted, *whatever, *of_groups) if experiment.counted else whatever
    return [table for table in found if table.rows]


def ranks(experiment: Experiment) -> Mapping[str, Sequence[Value]]:
    """Return the order in which people see tasks and columns: by success, the most successful first; averages are below all tasks."""
    return {"task": [*experiment.tasks_by_success, None], "column": experiment.ranking}


def success(experiment: Experiment) -> Table:
    """Return the table of success rates, by task and column, with their means over tasks."""
    return _by_task(
        experiment,
        "rate",
        lambda cell: {**interval("rate", cell.rate), "successes": cell.successes},
        lambda row: {**interval("rate", row.rate), "successes": None},
        name="success",
        title="Success rate, % [95% interval], n runs that count",
        of="runs",
        note="A success is more than 10% better than the baseline at the last step.",
    )


def improvement(experiment: Experiment) -> Table:
    """Return the table of improvements over the baseline, by task and column.

    As in the paper, a cell with counted runs but without a valid submission counts 0.
    """

    def of_cell(cell: Cell) -> Row:
        found = cell.improvement or (Interval(0.0, 0.0, 0.0) if cell.counted else None)
        return {**interval("improvement", found), "valid": len(cell.improvements)}

    return _by_task(
        experiment,
        "improvement",
        of_cell,
        lambda row: {**interval("improvement", row.improvement), "valid": row.valid},
        name="improvement",
        title="Improvement over the baseline, % [95% interval], n valid submissions",
        of="valid",
        note="Means over valid submissions at the last step; a cell with runs and no valid submission is 0.",
    )


def cost(experiment: Experiment) -> Table:
    """Return the table of what a run took: mean steps, time, tokens and cost over each column's counted runs."""

    def values(row: LeaderboardRow) -> Row:
        amounts = {"tokens": row.tokens, "seconds": row.seconds, "steps": row.steps, "cost": row.cost}
        amounts["cost_per_success"] = row.cost_per_success
        found = {f"{name}{bound}": value for name, mean in amounts.items() for bound, value in bounds(mean).items()}
        return {**identity(experiment, row.column), "runs": row.runs, **found, "priced": row.priced}

    def mean(name: str, formatted: Callable[[float], str]) -> Callable[[Row], str]:
        return lambda row: formatting.NONE if row[name] is None else formatted(_number(row[name]))

    amounts: dict[str, Kind] = {f"{name}{bound}": "number" for name in AMOUNTS for bound in BOUNDS}
    return Table(
        name="cost",
        title="What a run took, on average",
        columns={**COLUMN, "runs": "count", **amounts, "priced": "count"},
        rows=[values(row) for row in experiment.leaderboard],
        down=NAME,
        shown=[
            TextColumn("runs", lambda row: str(row["runs"])),
            TextColumn("steps", mean("steps", lambda steps: f"{steps:.1f}")),
            TextColumn("time", mean("seconds", formatting.duration)),
            TextColumn("tokens", mean("tokens", lambda tokens: formatting.tokens(round(tokens)))),
            TextColumn("cost", lambda row: _price(row, "cost")),
            TextColumn("cost per success", lambda row: _price(row, "cost_per_success") if row["cost_per_success"] else formatting.NONE),
        ],
        notes=_priced(experiment),
        ranks=ranks(experiment),
    )


def verdicts(experiment: Experiment) -> Table:
    """Return the table of all runs by verdict, including those that are not counted."""
    return _tally(experiment, "verdicts", "What submissions were worth, in runs", "verdict", VERDICTS)


def endings(experiment: Experiment) -> Table:
    """Return the table of all runs by what ended them, including those that are not counted."""
    names = {ended: ended_briefly(ended) for ended in (*ENDED, UNFINISHED, DAMAGED)}
    return _tally(experiment, "endings", "How runs ended, in runs", "ended", names)


def categories(experiment: Experiment) -> Table:
    """Return the table of success rates by category of task; without rows where `Experiment.categories` is empty."""
    rows = [_group(experiment, "category", column, group) for groups in experiment.categories.values() for column, group in groups.items()]
    return _groups(experiment, "categories", "Success rate by category, % [95% interval], n tasks", "category", rows)


def periods(experiment: Experiment, cutoffs: Mapping[str, datetime.date | None]) -> Table:
    """Return the table of success rates on tasks published before and after a model's cutoff, for models whose cutoff is known."""
    rows: list[Row] = []
    known: dict[str, datetime.date] = {}
    for column, by_task in experiment.columns.items():
        model = next(iter(by_task.values())).conditions.model
        cutoff = cutoffs.get(model)
        if cutoff is None:
            continue
        known[model] = cutoff
        rows += [_group(experiment, "published", column, group) for group in by_cutoff(by_task, cutoffs)]
    order = [kind for kind in (BEFORE, AFTER) if any(row["published"] == kind for row in rows)]
    # The table is empty where no task's date is known.
    rows = [row for kind in (*order, UNKNOWN_DATE) for row in rows if row["published"] == kind] if order else []
    table = _groups(experiment, "cutoffs", "Success rate by when tasks were published, % [95% interval], n tasks", "published", rows)
    notes = [f"The knowledge of {model} ends on {cutoff}." for model, cutoff in known.items()]
    return replace(table, notes=notes)


def compared(experiment: Experiment) -> Table:
    """Return the table that compares every pair of columns: on these tasks, and on other tasks of their kind."""
    found = [comparison for comparison in experiment.comparisons if comparison.tasks]
    lacking = sorted({task for comparison in found for task in comparison.left_out})
    few = any(comparison.other_tasks and not comparison.other_tasks.can_tell for comparison in found)
    inference: dict[str, Kind] = {name: "number" for name in ("difference", "low", "high", "p", "p_adjusted", "smallest_p")}
    return Table(
        name="comparisons",
        title="Success rates compared, in percentage points [95% interval] and p",
        columns={
            **{"first": "text", "second": "text"},
            **inference,
            **{f"other_{name}": kind for name, kind in inference.items()},
            **{"tasks": "count", "first_runs": "count", "second_runs": "count"},
            **{"first_rate": "number", "second_rate": "number", "runs_needed": "count", "left_out": "text"},
            **{f"improvement_{name}": "number" for name in ("difference", "low", "high")},
            "improvement_tasks": "count",
        },
        rows=[_comparison(comparison) for comparison in found],
        down=TextColumn("pair", lambda row: f"{named(row['first'])} less {named(row['second'])}", number=False),
        shown=[
            TextColumn("on these tasks", lambda row: _inferred(row, "")),
            TextColumn("on other tasks", lambda row: _inferred(row, "other_")),
            TextColumn("tasks", lambda row: str(row["tasks"])),
            TextColumn("runs needed", lambda row: formatting.NONE if row["runs_needed"] is None else f"{row['runs_needed']:,}"),
        ],
        notes=[
            "On these tasks: what other runs of the same tasks would say (Mantel-Haenszel, exact). On other tasks: what tasks of this kind"
            " would say, each counting once (sign flips).",
            *([f"p is adjusted for the {len(found)} pairs (Holm); the intervals are not."] if len(found) > 1 else []),
            *(["Too few: with these runs or fewer than six tasks, no difference could be significant."] if few else []),
            "Runs needed: of each task by both, to tell such rates apart on these tasks with a power of 80%.",
            *([f"Tasks that some pair does not share: {', '.join(lacking)}."] if lacking else []),
        ],
    )


def not_counted(experiment: Experiment) -> Table:
    """Return the table of runs that are not counted, each with the reason."""
    rows: list[Row] = []
    for run in experiment.runs:
        apart = counts(run).apart
        if apart is not None:
            reason = run.result.outcome.reason if run.result else None
            rows.append({"run": run.name, "task": run.info.spec.task, "column": experiment.column(run), "apart": apart, "reason": reason})
    return Table(
        name="not-counted",
        title="Runs that are not counted in any rate or mean",
        columns={"run": "text", "task": "text", "column": "text", "apart": "text", "reason": "text"},
        rows=rows,
        down=TextColumn("run", lambda row: str(row["run"]), number=False, copied=True),
        shown=[
            TextColumn("why", lambda row: str(row["apart"]).replace("_", " "), number=False),
            TextColumn("reason", lambda row: str(row["reason"] or ""), number=False),
        ],
    )


NAME = TextColumn("agent, model", lambda row: named(row["column"]), number=False)
TASK = TextColumn("task", lambda row: AVERAGE if row["task"] is None else str(row["task"]), number=False)
BOUNDS = ("", "_low", "_high")
AMOUNTS = ("tokens", "seconds", "steps", "cost", "cost_per_success")


def _by_task(
    experiment: Experiment,
    measure: str,
    of_cell: Callable[[Cell], Row],
    of_column: Callable[[LeaderboardRow], Row],
    *,
    name: str,
    title: str,
    of: str,
    note: str,
) -> Table:
    """Return a table with a row for each cell, and one for each column's average over tasks, in which `task` is null."""
    rows: list[Row] = []
    for task, column, cell in experiment.cells:
        counts = {"runs": len(cell.counted), "tasks": 1, "not_counted": sum(cell.apart.values())}
        rows.append({"task": task, **identity(experiment, column), **of_cell(cell), **counts})
    for row in experiment.leaderboard:
        counts = {"runs": row.runs, "tasks": len(row.tasks), "not_counted": row.apart.total()}
        rows.append({"task": None, **identity(experiment, row.column), **of_column(row), **counts})
    kinds: dict[str, Kind] = {measure: "number", **INTERVAL, "successes" if measure == "rate" else "valid": "count"}
    return Table(
        name=name,
        title=title,
        columns={"task": "text", **COLUMN, **kinds, **RUNS},
        rows=rows,
        down=TASK,
        shown=[TextColumn("", lambda row: estimate(row, measure, of=of, signed=measure == "improvement"))],
        across="column",
        notes=[note, *_averaged_over(experiment)],
        ranks=ranks(experiment),
    )


def identity(experiment: Experiment, column: str) -> dict[str, Value]:
    """Return the values of `COLUMN`: a column's name, its agent and its model."""
    shared = next(iter(experiment.columns[column].values())).conditions
    return {"column": column, "agent": shared.agent, "model": shared.model}


def interval(name: str, found: Interval | None) -> dict[str, Value]:
    """Return an estimate under its name, and its bounds as `low` and `high`; None where they are not known."""
    values = [None if value is None or math.isnan(value) else value for value in found or (None, None, None)]
    return dict(zip((name, "low", "high"), values, strict=True))


def bounds(found: Interval | None) -> dict[str, Value]:
    """Return an estimate and its bounds by `BOUNDS`, which are to be appended to its name."""
    return dict(zip(BOUNDS, found or (None, None, None), strict=True))


def _averaged_over(experiment: Experiment) -> list[str]:
    """Say over how many tasks the averages are: in one sentence, or in one for each column if some lack tasks."""
    every = formatting.plural(len(experiment.tasks), "task")
    lacking = {row.column: [task for task in experiment.tasks if task not in row.tasks] for row in experiment.leaderboard}
    if not any(lacking.values()):
        return [f"Averages are over {every}."]
    return [
        f"{column}: the average is over {len(experiment.tasks) - len(tasks)} of {every}{', without ' * bool(tasks)}{', '.join(tasks)}."
        for column, tasks in lacking.items()
    ]


def _group(experiment: Experiment, name: str, column: str, group: TaskGroup) -> Row:
    return {name: group.name, **identity(experiment, column), **interval("rate", group.mean), "tasks": len(group.tasks), "runs": group.runs}


def _groups(experiment: Experiment, name: str, title: str, down: str, rows: Sequence[Row]) -> Table:
    return Table(
        name=name,
        title=title,
        columns={down: "text", **COLUMN, "rate": "number", **INTERVAL, "tasks": "count", "runs": "count"},
        rows=rows,
        down=TextColumn(down, lambda row: str(row[down]), number=False),
        shown=[TextColumn("", lambda row: estimate(row, "rate", of="tasks"))],
        across="column",
        ranks=ranks(experiment),
    )


def _tally(experiment: Experiment, name: str, title: str, what: str, words: Mapping[Any, str]) -> Table:
    """Return a table that counts the runs of each column by an attribute of their counts."""
    rows: list[Row] = []
    for column, by_task in experiment.columns.items():
        together = Counter(getattr(run, what) for cell in by_task.values() for run in cell.runs)
        rows += [{**identity(experiment, column), what: kind, "runs": together[kind]} for kind in words if together[kind]]
    there = [kind for kind in words if any(row[what] == kind for row in rows)]
    rows.sort(key=lambda row: there.index(str(row[what])))
    return Table(
        name=name,
        title=title,
        columns={**COLUMN, what: "text", "runs": "count"},
        rows=rows,
        down=NAME,
        shown=[TextColumn("", lambda row: str(row["runs"]))],
        across=what,
        words=words,
        ranks=ranks(experiment),
    )


def _comparison(found: Comparison) -> Row:
    return {
        **{"first": found.first, "second": found.second},
        **_inference("", found.these_tasks, found.p_these_tasks),
        **_inference("other_", found.other_tasks, found.p_other_tasks),
        **{"tasks": len(found.tasks), "first_runs": found.first_runs, "second_runs": found.second_runs},
        **{"first_rate": found.first_rate, "second_rate": found.second_rate, "runs_needed": found.runs_needed},
        "left_out": "; ".join(f"{task}: {why}" for task, why in found.left_out.items()) or None,
        **{f"improvement_{name}": value for name, value in interval("difference", found.improvement).items()},
        "improvement_tasks": len(found.improvement_tasks),
    }


def _inference(prefix: str, found: Inference | None, adjusted: float | None) -> dict[str, Value]:
    assert found is not None
    values = {**interval("difference", found.difference), "p": found.p, "p_adjusted": adjusted, "smallest_p": found.smallest_p}
    return {f"{prefix}{name}": value for name, value in values.items()}


def _inferred(row: Row, prefix: str) -> str:
    """Format a difference with its interval and adjusted p: `+12.5 [3, 22] p = 0.012`."""
    if _number(row[f"{prefix}smallest_p"]) > 0.05:
        return "too few"
    own = {name: row[f"{prefix}{name}"] for name in ("difference", "low", "high")}
    p = _number(row[f"{prefix}p_adjusted"])
    return f"{estimate(own, 'difference', signed=True)} {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"


def _price(row: Row, name: str) -> str:
    return formatting.cost(None if row[name] is None else _number(row[name]), _number(row["tokens"]) if row["tokens"] else 0)


def _priced(experiment: Experiment) -> list[str]:
    part = [row for row in experiment.leaderboard if 0 < row.priced < row.runs]
    sources = price_words(price for run in experiment.runs for price in run.info.spec.prices.values())
    return [
        *(f"{row.column}: the cost of {row.priced} of {row.runs} runs is known." for row in part),
        *([f"Costs are counted {sources}."] if sources else []),
    ]


def estimate(row: Row, name: str, *, of: str = "", signed: bool = False) -> str:
    """Format a fraction in percent with its interval and the number it is computed from: `62.5 [31, 86] n=8`."""
    if row[name] is None:
        return formatting.NONE
    value, low, high = (_number(row[key]) for key in (name, "low", "high"))
    # The interval of a mean of equal numbers, or of one number, is empty, and left out.
    digits = 0 if high - low >= 0.05 else 1
    interval = f" [{formatting.percentage(low, digits)}, {formatting.percentage(high, digits)}]" if low != high else ""
    count = f" n={row[of]}" if of else ""
    return f"{'+' if signed and value > 0 else ''}{formatting.percentage(value)}{interval}{count}"


def _number(value: Value) -> float:
    assert isinstance(value, (int, float))
    return float(value)
