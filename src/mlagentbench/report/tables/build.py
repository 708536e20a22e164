"""Build the tables of an experiment, which `mlab report` prints and writes to files.

Success is as in the paper's Table 3 (arXiv 2310.03302), improvements as in its Table 4; each number has its 95% interval and the number of
runs that it is computed from. Runs that are not counted are in no rate and no mean; a table of their own lists them by name.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlagentbench.report import formatting
from mlagentbench.report.experiment import Experiment, LeaderboardRow
from mlagentbench.report.tables.audited import NAME, changes, log_losses, unfounded
from mlagentbench.report.tables.compared import compared
from mlagentbench.report.tables.model import AVERAGE, Kind, Row, Table, TextColumn, Value
from mlagentbench.report.tables.studies import studies
from mlagentbench.report.tables.values import (
    BOUNDS,
    COLUMN,
    INTERVAL,
    RATE_BOUNDS,
    bounded,
    bounds,
    estimate,
    identity,
    interval,
    left_out_words,
    number,
    rate_bounds,
)
from mlagentbench.report.wording import ENDED, MODES, VERDICTS, ended_briefly, price_words
from mlagentbench.results.cells import Cell, deviations, together
from mlagentbench.results.compare import AFTER, BEFORE, UNKNOWN_DATE, TaskGroup, by_cutoff
from mlagentbench.results.counts import DAMAGED, UNFINISHED
from mlagentbench.results.statistics import robust
from mlagentbench.results.statistics.intervals import Interval

RUNS: Mapping[str, Kind] = {"runs": "count", "tasks": "count", "not_counted": "count"}


def tables(experiment: Experiment, cutoffs: Mapping[str, datetime.date | None]) -> list[Table]:
    """Return all tables that have rows; if no run is counted, only those of verdicts, endings, audits and runs that are not counted.

    Args:
        experiment: the runs.
        cutoffs: the last day of each model's training data, by the model's name; None where it is not known.
    """
    whatever = [verdicts(experiment), endings(experiment), modes(experiment), unfounded(experiment), not_counted(experiment)]
    of_counted = [success(experiment), improvement(experiment), summaries(experiment), cost(experiment)]
    of_groups = [categories(experiment), periods(experiment, cutoffs), changes(experiment), log_losses(experiment), compared(experiment)]
    of_groups += studies(experiment)
    found = (*of_counted, *whatever, *of_groups) if experiment.counted else whatever
    return [table for table in found if table.rows]


def ranks(experiment: Experiment) -> Mapping[str, Sequence[Value]]:
    """Return the order in which people see tasks and columns: by success, the most successful first; averages are below all tasks."""
    return {"task": [*experiment.tasks_by_success, None], "column": experiment.ranking}


def success(experiment: Experiment) -> Table:
    """Return the table of success rates, by task and column, with their means over tasks."""
    table = _by_task(
        experiment,
        lambda cell: {**interval("rate", cell.rate), "successes": cell.successes, **rate_bounds(cell.bounds)},
        lambda row: {**interval("rate", row.rate), "successes": None, **rate_bounds(row.bounds)},
        {"rate": "number", **INTERVAL, "successes": "count", **RATE_BOUNDS},
        TextColumn("", lambda row: bounded(row, of="runs")),
    )
    note = "A success is more than 10% better than the baseline at the last step."
    return replace(
        table,
        name="success",
        title="Success rate, % [95% interval], n runs that count",
        notes=[note, *left_out_words(table.rows), *table.notes],
    )


def improvement(experiment: Experiment) -> Table:
    """Return the table of improvements over the baseline, by task and column.

    As in the paper, a cell with counted runs but without a valid submission counts 0. Over a baseline of 0, a cell has a gain in the
    metric's unit, and is in no average.
    """

    def of_cell(cell: Cell) -> Row:
        found = cell.improvement or (Interval(0.0, 0.0, 0.0) if cell.averaged else None)
        groups, shared = ([cell.averaged], [deviations(cell.moves)]) if cell.averaged else ([], [])
        gain = {f"gain{bound}": value for bound, value in bounds(cell.gain).items()}
        return {
            **interval("improvement", found),
            **_middle(robust.median(groups, shared), robust.interquartile_mean(groups, shared)),
            **{**gain, "unit": cell.unit, "valid": len(cell.valid), "clipped": cell.clipped},
        }

    def of_column(row: LeaderboardRow) -> Row:
        nothing = {**{f"gain{bound}": None for bound in BOUNDS}, "unit": None}
        return {
            **{**interval("improvement", row.improvement), **_middle(row.median, row.interquartile_mean)},
            **{**nothing, "valid": row.valid, "clipped": row.clipped},
        }

    middle: dict[str, Kind] = {f"{name}{bound}": "number" for name in ("median", "iqm", "gain") for bound in BOUNDS}
    table = _by_task(
        experiment,
        of_cell,
        of_column,
        {"improvement": "number", **INTERVAL, **middle, "unit": "text", "valid": "count", "clipped": "count"},
        TextColumn("", _improved),
    )
    low, high = (formatting.percentage(bound) for bound in robust.CLIP)
    zero = dict.fromkeys(str(row["task"]) for row in table.rows if row["task"] and row["improvement"] is None and row["valid"])
    notes = [
        f"Means over valid submissions at the last step, each clipped to {low}% and +{high}%; a cell with runs and without one is 0.",
        *([f"{', '.join(zero)}: the baseline is 0, so that gains are in the metric's unit, and in no average."] if zero else []),
        *[f"{row.column}: {formatting.plural(row.clipped, 'improvement')} clipped." for row in experiment.leaderboard if row.clipped],
    ]
    title = "Improvement over the baseline, % [95% interval], n valid submissions"
    return replace(table, name="improvement", title=title, notes=[*notes, *table.notes])


def summaries(experiment: Experiment) -> Table:
    """Return the table of each column's mean improvement beside its median and its interquartile mean."""

    def values(row: LeaderboardRow) -> Row:
        found = {"mean": row.improvement, "median": row.median, "iqm": row.interquartile_mean}
        amounts = {f"{name}{bound}": value for name, each in found.items() for bound, value in bounds(each).items()}
        return {**identity(experiment, row.column), **amounts, "valid": row.valid, "clipped": row.clipped, "tasks": len(row.tasks)}

    def text(name: str) -> Callable[[Row], str]:
        return lambda row: estimate({name: row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}, name, signed=True)

    names = {"mean": "mean", "median": "median", "iqm": "interquartile mean"}
    amounts: dict[str, Kind] = {f"{name}{bound}": "number" for name in names for bound in BOUNDS}
    return Table(
        name="improvement-summaries",
        title="Improvement over tasks, % [95% interval]: its mean, median and interquartile mean",
        columns={**COLUMN, **amounts, "valid": "count", "clipped": "count", "tasks": "count"},
        rows=[values(row) for row in experiment.leaderboard if row.improvement is not None],
        down=NAME,
        shown=[*(TextColumn(heading, text(name)) for name, heading in names.items()), TextColumn("valid", lambda row: str(row["valid"]))],
        ranks=ranks(experiment),
        notes=["The median and the interquartile mean, of the middle half, are of all runs, each task counting once."],
    )


def cost(experiment: Experiment) -> Table:
    """Return the table of what a run took: mean steps, time, tokens and cost over each column's counted runs."""

    def values(row: LeaderboardRow) -> Row:
        amounts = {"tokens": row.tokens, "seconds": row.seconds, "steps": row.steps, "cost": row.cost}
        amounts["cost_per_success"] = row.cost_per_success
        found = {f"{name}{bound}": value for name, mean in amounts.items() for bound, value in bounds(mean).items()}
        return {**identity(experiment, row.column), "runs": row.runs, **found, "priced": row.priced}

    def mean(name: str, formatted: Callable[[float], str]) -> Callable[[Row], str]:
        return lambda row: formatting.NONE if row[name] is None else formatted(number(row[name]))

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
            TextColumn("tokens", _tokens),
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


def modes(experiment: Experiment) -> Table:
    """Return the table of all audited runs by how they came out."""
    return _tally(experiment, "modes", "How runs came out, by the audit, in runs", "mode", MODES)


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
    notes = [*table.notes, *(f"The knowledge of {model} ends on {cutoff}." for model, cutoff in known.items())]
    return replace(table, notes=notes)


def not_counted(experiment: Experiment) -> Table:
    """Return the table of runs that are not counted, each with the reason."""
    rows: list[Row] = []
    for run, (_, counted) in zip(experiment.runs, together(experiment.runs), strict=True):
        apart = counted.apart
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


TASK = TextColumn("task", lambda row: AVERAGE if row["task"] is None else str(row["task"]), number=False)
AMOUNTS = ("tokens", "seconds", "steps", "cost", "cost_per_success")


def _by_task(
    experiment: Experiment,
    of_cell: Callable[[Cell], Row],
    of_column: Callable[[LeaderboardRow], Row],
    columns: Mapping[str, Kind],
    shown: TextColumn,
) -> Table:
    """Return a table with a row for each cell, and one for each column's average over tasks, in which `task` is null."""
    rows: list[Row] = []
    for task, column, cell in experiment.cells:
        counts = {"runs": len(cell.counted), "tasks": 1, "not_counted": sum(cell.apart.values())}
        rows.append({"task": task, **identity(experiment, column), **of_cell(cell), **counts})
    for row in experiment.leaderboard:
        counts = {"runs": row.runs, "tasks": len(row.tasks), "not_counted": row.apart.total()}
        rows.append({"task": None, **identity(experiment, row.column), **of_column(row), **counts})
    return Table(
        name="",
        title="",
        columns={"task": "text", **COLUMN, **columns, **RUNS},
        rows=rows,
        down=TASK,
        shown=[shown],
        across="column",
        notes=_averaged_over(experiment),
        ranks=ranks(experiment),
    )


def _middle(median: Interval | None, iqm: Interval | None) -> dict[str, Value]:
    found = {"median": median, "iqm": iqm}
    return {f"{name}{bound}": value for name, each in found.items() for bound, value in bounds(each).items()}


def _improved(row: Row) -> str:
    """Format an improvement in percent, or over a baseline of 0 a gain in the metric's unit: `+0.250 accuracy [0.1, 0.4] n=8`."""
    if row["improvement"] is not None or row["gain"] is None:
        return estimate(row, "improvement", of="valid", signed=True)
    value, low, high = (number(row[f"gain{bound}"]) for bound in BOUNDS)
    within = f" [{formatting.number(low)}, {formatting.number(high)}]" if low != high else ""
    return f"{'+' if value > 0 else ''}{formatting.number(value)} {row['unit']}{within} n={row['valid']}"


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
    return {
        name: group.name,
        **identity(experiment, column),
        **interval("rate", group.mean),
        **rate_bounds(group.bounds),
        "tasks": len(group.tasks),
        "runs": group.runs,
    }


def _groups(experiment: Experiment, name: str, title: str, down: str, rows: Sequence[Row]) -> Table:
    return Table(
        name=name,
        title=title,
        columns={down: "text", **COLUMN, "rate": "number", **INTERVAL, **RATE_BOUNDS, "tasks": "count", "runs": "count"},
        rows=rows,
        down=TextColumn(down, lambda row: str(row[down]), number=False),
        shown=[TextColumn("", lambda row: bounded(row, of="tasks"))],
        across="column",
        notes=left_out_words(rows),
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


def _tokens(row: Row) -> str:
    return formatting.tokens(None if row["tokens"] is None else round(number(row["tokens"]))) if row["runs"] else formatting.NONE


def _price(row: Row, name: str) -> str:
    asked = 0 if not row["runs"] else None if row["tokens"] is None else number(row["tokens"])
    return formatting.cost(None if row[name] is None else number(row[name]), asked)


def _priced(experiment: Experiment) -> list[str]:
    part = [row for row in experiment.leaderboard if 0 < row.priced < row.runs]
    sources = price_words(price for run in experiment.runs for price in run.info.spec.prices.values())
    return [
        *(f"{row.column}: the cost of {row.priced} of {row.runs} runs is known." for row in part),
        *([f"Costs are counted {sources}."] if sources else []),
    ]
