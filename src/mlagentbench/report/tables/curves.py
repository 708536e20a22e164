"""Build the tables that are curves: written to files and JSON by `mlab report --tables`, and too long for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from mlagentbench.report import formatting
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.model import Kind, Row, Table, TextColumn, named
from mlagentbench.report.tables.values import COLUMN, INTERVAL, bounds, estimate, identity, interval
from mlagentbench.results.budget import Spent, at_attempts, at_budgets
from mlagentbench.results.profiles import profiles, superiorities

UNITS: Mapping[Spent, str] = {"steps": "{:,.0f} steps", "tokens": "{:,.0f} tokens", "dollars": "${:,.10g}", "hours": "{:,.10g} hours"}


def curves(experiment: Experiment) -> list[Table]:
    """Return the tables of curves that have rows."""
    found = [performance(experiment), probability(experiment), budgets(experiment), attempts(experiment)]
    return [table for table in found if table.rows]


def performance(experiment: Experiment) -> Table:
    """Return the table of performance profiles: the share of runs that improve by more than each level."""
    rows: list[Row] = [
        {
            "level": point.level,
            **identity(experiment, point.column),
            **interval("share", point.share),
            "tasks": point.tasks,
            "runs": point.runs,
        }
        for point in profiles(experiment.columns)
    ]
    return Table(
        name="profiles",
        title="Performance profiles: runs that improve by more than a level, % [95% interval]",
        columns={"level": "number", **COLUMN, "share": "number", **INTERVAL, "tasks": "count", "runs": "count"},
        rows=sorted(rows, key=lambda row: float(row["level"] or 0)),
        down=TextColumn("improvement, %", lambda row: f"> {formatting.percentage(float(row['level'] or 0))}", number=False),
        shown=[TextColumn("", lambda row: estimate(row, "share"))],
        across="column",
        ranks={"column": experiment.ranking},
        notes=["Shares are averaged over tasks; at 10% they are the success rates. A run without a valid submission is below every level."],
    )


def probability(experiment: Experiment) -> Table:
    """Return the table of the probability that one column's run improves more than another's, for every pair."""
    rows: list[Row] = [
        {"first": each.first, "second": each.second, **interval("probability", each.probability), "tasks": each.tasks}
        for each in superiorities(experiment.columns)
    ]
    return Table(
        name="probability-of-improvement",
        title="Probability that a run of the first improves more than one of the second, % [95% interval]",
        columns={"first": "text", "second": "text", "probability": "number", **INTERVAL, "tasks": "count"},
        rows=rows,
        down=TextColumn("pair", lambda row: f"{named(row['first'])} over {named(row['second'])}", number=False),
        shown=[TextColumn("probability", lambda row: estimate(row, "probability")), TextColumn("tasks", lambda row: str(row["tasks"]))],
        notes=[
            "Averaged over the tasks of which both have runs; a tie counts half. A run without a valid submission is worse than any other."
        ],
    )


def budgets(experiment: Experiment) -> Table:
    """Return the table of success and improvement by the steps, tokens, dollars and hours that a run may spend."""
    rows: list[Row] = [
        {
            **{"spent": each.spent, "budget": each.budget, **identity(experiment, each.column), **interval("rate", each.rate)},
            **{f"improvement{bound}": value for bound, value in bounds(each.improvement).items()},
            **{"tasks": each.tasks, "runs": each.runs},
        }
        for each in at_budgets(experiment.columns)
    ]
    amounts: dict[str, Kind] = {
        "rate": "number",
        **INTERVAL,
        **dict.fromkeys(("improvement", "improvement_low", "improvement_high"), "number"),
    }
    return Table(
        name="budgets",
        title="Success rate by what a run may spend, % [95% interval]",
        columns={"spent": "text", "budget": "number", **COLUMN, **amounts, "tasks": "count", "runs": "count"},
        rows=rows,
        down=TextColumn("budget", lambda row: UNITS[row["spent"]].format(row["budget"]), number=False),  # type: ignore[index]
        shown=[TextColumn("", lambda row: estimate(row, "rate"))],
        across="column",
        ranks={"column": experiment.ranking},
        notes=["Of the submissions as they stood when the budget was spent, averaged over tasks."],
    )


def attempts(experiment: Experiment) -> Table:
    """Return the table of pass@k and of the expected best of k runs."""
    rows: list[Row] = [
        {
            **{"k": each.k, **identity(experiment, each.column), **interval("pass_at_k", each.pass_at_k)},
            **{f"best_of_k{bound}": value for bound, value in bounds(each.best_of_k).items()},
            "tasks": each.tasks,
        }
        for each in at_attempts(experiment.columns)
    ]
    best: dict[str, Kind] = dict.fromkeys(("best_of_k", "best_of_k_low", "best_of_k_high"), "number")
    return Table(
        name="attempts",
        title="pass@k: success of at least one of k runs, % [95% interval]",
        columns={"k": "count", **COLUMN, "pass_at_k": "number", **INTERVAL, **best, "tasks": "count"},
        rows=sorted(rows, key=lambda row: int(row["k"] or 0)),
        down=TextColumn("k", lambda row: str(row["k"]), number=False),
        shown=[TextColumn("", lambda row: estimate(row, "pass_at_k"))],
        across="column",
        ranks={"column": experiment.ranking},
        notes=["Unbiased estimates (Chen et al. 2021), averaged over tasks, for as many runs as every task of a column has."],
    )
