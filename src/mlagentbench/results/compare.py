"""Compare agents and models: two columns task by task, and one column by groups of tasks."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from mlagentbench.results import statistics
from mlagentbench.results.cells import Cell
from mlagentbench.results.statistics import Difference, Interval

Column = Mapping[str, Cell]
"""The cells of one agent with one model, by task (`cells.columns`)."""

UNKNOWN_CATEGORY = "unknown category"
BEFORE, AFTER = "published before the cutoff", "published after the cutoff"
UNKNOWN_DATE, UNKNOWN_CUTOFF = "unknown date of the task", "unknown cutoff of the model"


class Comparison(NamedTuple):
    """One column compared with another, over the tasks of which both have counted runs."""

    first: str
    second: str
    success: Difference | None
    """The first column's success rate minus the second's, as fractions; None if they share no task."""
    improvement: Difference | None
    """The first column's average improvement minus the second's, over the tasks for which both have one; None if there are none."""
    first_rate: float | None
    """The first column's mean success rate over the shared tasks; None if there are none."""
    second_rate: float | None
    tasks: tuple[str, ...]
    """The shared tasks, over which the columns are compared."""
    left_out: Mapping[str, str]
    """The other tasks, each with the reason: which column has no run of it, or none that counts."""
    improvement_left_out: tuple[str, ...]
    """The shared tasks that `improvement` leaves out, since one column has no improvement to average there."""
    first_runs: int
    """How many counted runs of the shared tasks the first column has."""
    second_runs: int
    p: float | None
    """The p-value of the difference in success, adjusted for all pairs that were compared at once (`statistics.adjusted`); None if they
    share no task."""
    runs_needed: int | None
    """How many runs, of all tasks together, each column would need for a test to tell such rates apart (`statistics.runs_to_tell_apart`);
    None if the rates are equal or there are none."""


class TaskGroup(NamedTuple):
    """Some tasks of one column, counted together."""

    name: str
    tasks: tuple[str, ...]
    """The tasks with a counted run."""
    runs: int
    """The number of counted runs."""
    mean: Interval | None
    """The mean over tasks of their success rates, each task counting once as in the paper's averages (`statistics.average_rate`)."""
    improvement: Interval | None
    """The mean over tasks of their average improvements (`statistics.average`); tasks without a valid submission are left out."""
    left_out: tuple[str, ...] = ()
    """The tasks of which no run counts."""


def comparisons(by_column: Mapping[str, Column]) -> list[Comparison]:
    """Compare every pair of columns, in their order; adjust their p-values for one another."""
    found = [compare(first, by_column[first], second, by_column[second]) for first, second in combinations(by_column, 2)]
    ps = iter(statistics.adjusted([comparison.p for comparison in found if comparison.p is not None]))
    return [comparison if comparison.p is None else comparison._replace(p=next(ps)) for comparison in found]


def compare(first: str, ones: Column, second: str, others: Column) -> Comparison:
    """Compare two columns task by task, over the tasks of which both have counted runs.

    Args:
        first: the first column's name.
        ones: the first column's cells by task.
        second: the second column's name.
        others: the second column's cells by task.
    """
    one, other = _rates(ones), _rates(others)
    sides = ((first, ones, one), (second, others, other))
    tasks = tuple(task for task in ones if task in one and task in other)
    left_out = {
        task: "; ".join(f"{name} has {_lack(column.get(task))}" for name, column, rates in sides if task not in rates)
        for task in dict.fromkeys((*ones, *others))
        if task not in tasks
    }
    gains, other_gains = _improvements(ones), _improvements(others)
    first_rate, second_rate = (sum(rates[task] for task in tasks) / len(tasks) if tasks else None for rates in (one, other))
    success = statistics.paired_difference(one, other)
    return Comparison(
        first=first,
        second=second,
        success=success,
        improvement=statistics.paired_difference(gains, other_gains),
        first_rate=first_rate,
        second_rate=second_rate,
        tasks=tasks,
        left_out=left_out,
        improvement_left_out=tuple(task for task in tasks if task not in gains or task not in other_gains),
        first_runs=sum(len(ones[task].counted) for task in tasks),
        second_runs=sum(len(others[task].counted) for task in tasks),
        p=None if success is None else success.p,
        runs_needed=None if first_rate is None or second_rate is None else statistics.runs_to_tell_apart(first_rate, second_rate),
    )


def by_category(column: Column) -> list[TaskGroup]:
    """Group a column's tasks by category, in the order of each category's first task; those of unknown category come last."""
    return _groups(column, {task: cell.category or UNKNOWN_CATEGORY for task, cell in column.items()}, (UNKNOWN_CATEGORY,))


def by_cutoff(column: Column, cutoffs: Mapping[str, datetime.date | None]) -> list[TaskGroup]:
    """Group a column's tasks by whether they were published up to its model's knowledge cutoff, or later.

    Tasks of unknown date are a group of their own, and so are tasks of a model of unknown cutoff.

    Args:
        column: the cells by task.
        cutoffs: the last day that a model may know of, by the model's name.
    """

    def group(cell: Cell) -> str:
        cutoff = cutoffs.get(cell.conditions.model)
        if cutoff is None:
            return UNKNOWN_CUTOFF
        if cell.published is None:
            return UNKNOWN_DATE
        return BEFORE if cell.published <= cutoff else AFTER

    return _groups(column, {task: group(cell) for task, cell in column.items()}, (BEFORE, AFTER, UNKNOWN_DATE, UNKNOWN_CUTOFF))


def _groups(column: Column, names: Mapping[str, str], last: Iterable[str]) -> list[TaskGroup]:
    last = tuple(last)
    order = [*(name for name in dict.fromkeys(names.values()) if name not in last), *(name for name in last if name in names.values())]
    return [_group(name, {task: column[task] for task in column if names[task] == name}) for name in order]


def _group(name: str, column: Column) -> TaskGroup:
    rates = _rates(column)
    return TaskGroup(
        name=name,
        tasks=tuple(rates),
        runs=sum(len(cell.counted) for cell in column.values()),
        mean=statistics.average_rate([(cell.successes, len(cell.counted)) for cell in column.values() if cell.counted]),
        improvement=statistics.average([cell.improvements for cell in column.values() if cell.improvements]),
        left_out=tuple(task for task in column if task not in rates),
    )


def _lack(cell: Cell | None) -> str:
    if cell is None or not cell.runs:
        return "no run of it"
    return f"none that counts ({', '.join(f'{name} {count}' for name, count in cell.apart.items())})"


def _rates(column: Column) -> dict[str, float]:
    return {task: cell.rate.value for task, cell in column.items() if cell.rate is not None}


def _improvements(column: Column) -> dict[str, float]:
    return {task: sum(cell.improvements) / len(cell.improvements) for task, cell in column.items() if cell.improvements}
