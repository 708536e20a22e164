"""Compute rates of what the audit and the graders say beside success: where plans of several changes break, and what research logs lose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mlagentbench.audit.record import LogLosses
from mlagentbench.results.cells import Cell
from mlagentbench.results.statistics import intervals
from mlagentbench.results.statistics.inference import Inference, TaskCounts, on_these_tasks
from mlagentbench.results.statistics.intervals import Interval


class PastChange(NamedTuple):
    """The share of a column's runs that got past one of the changes that tasks consist of, averaged over tasks."""

    column: str
    change: int
    """The change, from 1; each needs those before it."""
    share: Interval
    """With the interval of success rates (`intervals.average_rate`)."""
    tasks: int
    """The tasks that consist of so many changes."""
    runs: int


class LogEffect(NamedTuple):
    """The success of runs whose research log lost something, compared with those of the same cells whose log did not."""

    column: str | None
    """None for all columns together."""
    lost: str
    """A key of `LOSSES`."""
    with_loss: Interval
    """The success rate of the runs that lost it, with Wilson's interval."""
    without: Interval
    runs_with: int
    runs_without: int
    inference: Inference | None
    """The difference within cells (`inference.on_these_tasks`); None if no cell has runs of both kinds."""
    cells: int
    """How many cells have runs of both kinds."""


LOSSES: Mapping[str, Callable[[LogLosses], bool]] = {
    "dropped_numbers": lambda log: log.dropped_numbers > 0,
    "dropped_errors": lambda log: log.dropped_errors > 0,
    "altered_numbers": lambda log: log.altered_numbers > 0,
    "anything": lambda log: log.dropped_numbers + log.dropped_errors + log.altered_numbers > 0,
}
"""What a research log may have lost."""


def past_changes(columns: Mapping[str, Mapping[str, Cell]]) -> list[PastChange]:
    """Return how many of each column's counted runs got past each change, of the tasks of dependent changes (`Counts.rungs`)."""
    found = []
    for column, by_task in columns.items():
        tasks = [runs for cell in by_task.values() if (runs := [run for run in cell.counted if run.rungs is not None])]
        most = max((run.rungs or 0 for runs in tasks for run in runs), default=0)
        for change in range(1, most + 1):
            long_enough = [kept for runs in tasks if (kept := [run for run in runs if (run.rungs or 0) >= change])]
            past = [(sum(run.broke_at is None or run.broke_at > change for run in runs), len(runs)) for runs in long_enough]
            share = intervals.average_rate(past)
            if share is not None:
                found.append(PastChange(column, change, share, len(past), sum(runs for _, runs in past)))
    return found


def log_effects(columns: Mapping[str, Mapping[str, Cell]]) -> list[LogEffect]:
    """Return the effects of each loss, by column and over all columns; none where all runs with a log lost it, or none did."""
    groups: list[tuple[str | None, list[Cell]]] = [(column, list(by_task.values())) for column, by_task in columns.items()]
    if len(groups) > 1:
        groups.append((None, [cell for _, cells in groups for cell in cells]))
    return [found for column, cells in groups for lost in LOSSES if (found := _effect(column, lost, cells)) is not None]


def _effect(column: str | None, lost: str, cells: Iterable[Cell]) -> LogEffect | None:
    counted = [_tallies(cell, LOSSES[lost]) for cell in cells]
    with_successes, runs_with, successes, runs_without = (sum(values) for values in zip(*counted, strict=True))
    if not runs_with or not runs_without:
        return None
    both = [each for each in counted if each.first_runs and each.second_runs]
    return LogEffect(
        column,
        lost,
        intervals.success_rate(with_successes, runs_with),
        intervals.success_rate(successes, runs_without),
        runs_with,
        runs_without,
        on_these_tasks(both),
        len(both),
    )


def _tallies(cell: Cell, lost: Callable[[LogLosses], bool]) -> TaskCounts:
    """Count the successes and runs of a cell with a loss, and those without it; runs without a research log are neither."""
    logged = [(run.success, lost(run.log)) for run in cell.counted if run.log is not None]
    losing = [success for success, loses in logged if loses]
    keeping = [success for success, loses in logged if not loses]
    return TaskCounts(sum(losing), len(losing), sum(keeping), len(keeping))
