"""Build the tables of what the audit found, and of where plans of several changes break."""

from __future__ import annotations

from mlagentbench.report import formatting
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.model import Kind, Row, Table, TextColumn, named
from mlagentbench.report.tables.values import COLUMN, INTERVAL, estimate, identity, interval, number
from mlagentbench.report.wording import LOST
from mlagentbench.results.audited import LogEffect, log_effects, past_changes
from mlagentbench.results.statistics.intervals import average_rate

ALL = "all"
"""The name of the line over all agents and models."""


def unfounded(experiment: Experiment) -> Table:
    """Return the table of how many audited runs end on a claim that the evidence does not bear out, as means over tasks."""
    rows: list[Row] = []
    for column, by_task in experiment.columns.items():
        answers = [[run.unfounded_answer for run in cell.runs if run.unfounded_answer is not None] for cell in by_task.values()]
        audited = [each for each in answers if each]
        if audited:
            rate = average_rate([(sum(each), len(each)) for each in audited])
            counted = {"runs": sum(map(len, audited)), "tasks": len(audited)}
            rows.append({**identity(experiment, column), **interval("rate", rate), **counted})
    return Table(
        name="unfounded-answers",
        title="Runs whose final answer holds an unfounded claim, % [95% interval], n audited runs",
        columns={**COLUMN, "rate": "number", **INTERVAL, "runs": "count", "tasks": "count"},
        rows=rows,
        down=NAME,
        shown=[TextColumn("", lambda row: estimate(row, "rate", of="runs"))],
        ranks={"column": experiment.ranking},
    )


def changes(experiment: Experiment) -> Table:
    """Return the table of the share of runs that got past each change, of the tasks that consist of dependent changes."""
    rows: list[Row] = [
        {
            "change": each.change,
            **identity(experiment, each.column),
            **interval("share", each.share),
            "tasks": each.tasks,
            "runs": each.runs,
        }
        for each in past_changes(experiment.columns)
    ]
    return Table(
        name="changes",
        title="Runs that got past each of several dependent changes, % [95% interval], n runs",
        columns={"change": "count", **COLUMN, "share": "number", **INTERVAL, "tasks": "count", "runs": "count"},
        rows=sorted(rows, key=lambda row: number(row["change"])),
        down=TextColumn("change", lambda row: str(row["change"]), number=False),
        shown=[TextColumn("", lambda row: estimate(row, "share", of="runs"))],
        across="column",
        notes=[
            "Means over the tasks that consist of so many changes, each of which needs those before it; a run counts by the submission that"
            " came farthest of those that were graded."
        ],
        ranks={"column": experiment.ranking},
    )


def log_losses(experiment: Experiment) -> Table:
    """Return the table of success where the research log lost something, and where it did not."""
    difference: dict[str, Kind] = dict.fromkeys(("difference", "low", "high", "p"), "number")
    rates: dict[str, Kind] = {f"{kind}{part}": "number" for kind in ("with", "without") for part in ("_rate", "_low", "_high")}
    return Table(
        name="research-log",
        title="Success where the research log lost something and where it did not, % [95% interval], n runs with a log",
        columns={**COLUMN, "lost": "text", **rates, **difference, "with_runs": "count", "without_runs": "count", "cells": "count"},
        rows=[_effect(experiment, each) for each in log_effects(experiment.columns)],
        down=TextColumn("agent, model", lambda row: named(row["column"]) if row["column"] else ALL, number=False),
        shown=[
            TextColumn("lost", lambda row: LOST[str(row["lost"])], number=False),
            TextColumn("lost it", lambda row: _rate(row, "with")),
            TextColumn("did not", lambda row: _rate(row, "without")),
            TextColumn("difference", _difference),
        ],
        notes=[
            "The difference is within tasks, in percentage points (Mantel-Haenszel); p is not adjusted. It is an association: a longer run"
            " writes more summaries, and so has more to lose."
        ],
        ranks={"column": [*experiment.ranking, None]},
    )


NAME = TextColumn("agent, model", lambda row: named(row["column"]), number=False)


def _effect(experiment: Experiment, found: LogEffect) -> Row:
    inference = found.inference
    return {
        **(identity(experiment, found.column) if found.column else dict.fromkeys(COLUMN)),
        "lost": found.lost,
        **dict(zip(("with_rate", "with_low", "with_high"), found.with_loss, strict=True)),
        **dict(zip(("without_rate", "without_low", "without_high"), found.without, strict=True)),
        **interval("difference", inference.difference if inference else None),
        **{"p": inference.p if inference else None, "cells": found.cells},
        **{"with_runs": found.runs_with, "without_runs": found.runs_without},
    }


def _rate(row: Row, kind: str) -> str:
    values = {"rate": row[f"{kind}_rate"], "low": row[f"{kind}_low"], "high": row[f"{kind}_high"], "runs": row[f"{kind}_runs"]}
    return estimate(values, "rate", of="runs")


def _difference(row: Row) -> str:
    if row["p"] is None:
        return formatting.NONE
    return f"{estimate(row, 'difference', signed=True)} {formatting.p_text(number(row['p']))}"
