"""Agents and models compared: two columns task by task, and one column by groups of tasks."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from mlagentbench.results import statistics
from mlagentbench.results.cells import Cell
from mlagentbench.results.statistics import Difference, Interval

Column = Mapping[str, Cell]
"""The cells of one agent with one model, by task (`tables.columns`)."""

UNKNOWN_CATEGORY = "unknown category"
BEFORE, AFTER = "published before the cutoff", "published after the cutoff"
UNKNOWN_DATE, UNKNOWN_CUTOFF = "unknown date of the task", "unknown cutoff of the model"


class Comparison(NamedTuple):
    """One column against another, over the tasks that both have counted runs of."""

    first: str
    second: str
    success: Difference | None
    """The first one's success rate less the second's, as fractions; None where they share no task."""
    improvement: Difference | None
    """The same of average improvements, over the tasks on which both have a valid submission."""
    first_rate: float | None
    """Its mean success rate over the shared tasks."""
    second_rate: float | None
    tasks: tuple[str, ...]
    """Those they were paired on."""
    left_out: Mapping[str, str]
    """The others, by task, and why: who has no run of it, or none that counts."""
    improvement_left_out: tuple[str, ...]
    """The shared tasks on which one of the two has no valid submission, so that `improvement` says nothing of them."""
    first_runs: int
    """Its counted runs on the shared tasks, together."""
    second_runs: int
    p: float | None
    """How probable so large a difference of success is where there is none, adjusted for all the pairs that were compared at once
    (`statistics.adjusted`); None where they share no task."""
    runs_needed: int | None
    """Runs each would need, all tasks together, for a test to tell rates such as these apart (`statistics.runs_to_tell_apart`); None
    where the rates are equal or there are none."""


class Group(NamedTuple):
    """Some tasks of one column together."""

    name: str
    tasks: tuple[str, ...]
    """Those with a counted run."""
    runs: int
    """The counted ones."""
    pooled: Interval | None
    """Success over all runs, each counting once, with Wilson's interval; None where no run counts."""
    mean: Interval | None
    """The mean over tasks of their success rates, each task counting once as in the paper's averages (`statistics.average_rate`)."""
    improvement: Interval | None
    """The mean over tasks of their average improvements (`statistics.average`); tasks without a valid submission are left out."""
    left_out: tuple[str, ...] = ()
    """Tasks of which no run counts."""


def comparisons(by_column: Mapping[str, Column]) -> list[Comparison]:
    """Every pair of columns compared, in their order; their p are adjusted for one another."""
    found = [compare(first, by_column[first], second, by_column[second]) for first, second in combinations(by_column, 2)]
    ps = iter(statistics.adjusted([comparison.p for comparison in found if comparison.p is not None]))
    return [comparison if comparison.p is None else comparison._replace(p=next(ps)) for comparison in found]


def compare(first: str, ones: Column, second: str, others: Column) -> Comparison:
    """Two columns compared task by task, over the tasks that both have counted runs of.

    Args:
        first: the first one's name.
        ones: its cells by task.
        second: the second one's name.
        others: its cells by task.
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


def overall(column: Column) -> Group:
    """All tasks of a column together."""
    return _group("all tasks", column)


def by_category(column: Column) -> list[Group]:
    """A column by its tasks' categories, in the order of their first; those of unknown category are a group of their own, the last."""
    return _groups(column, {task: cell.category or UNKNOWN_CATEGORY for task, cell in column.items()}, (UNKNOWN_CATEGORY,))


def by_cutoff(column: Column, cutoffs: Mapping[str, datetime.date | None]) -> list[Group]:
    """A column by whether its tasks were published by the day of its model's knowledge cutoff, or later.

    Tasks whose date is unknown, and those of a model whose cutoff is, are groups of their own.

    Args:
        column: the cells by task.
        cutoffs: the last day that a model may know of, by its name.
    """

    def group(cell: Cell) -> str:
        cutoff = cutoffs.get(cell.conditions.model)
        if cutoff is None:
            return UNKNOWN_CUTOFF
        if cell.published is None:
            return UNKNOWN_DATE
        return BEFORE if cell.published <= cutoff else AFTER

    return _groups(column, {task: group(cell) for task, cell in column.items()}, (BEFORE, AFTER, UNKNOWN_DATE, UNKNOWN_CUTOFF))


def _groups(column: Column, names: Mapping[str, str], last: Iterable[str]) -> list[Group]:
    last = tuple(last)
    order = [*(name for name in dict.fromkeys(names.values()) if name not in last), *(name for name in last if name in names.values())]
    return [_group(name, {task: column[task] for task in column if names[task] == name}) for name in order]


def _group(name: str, column: Column) -> Group:
    rates = _rates(column)
    runs = sum(len(cell.counted) for cell in column.values())
    successes = sum(cell.successes for cell in column.values())
    return Group(
        name=name,
        tasks=tuple(rates),
        runs=runs,
        pooled=statistics.success_rate(successes, runs) if runs else None,
        mean=statistics.average_rate([(cell.successes, len(cell.counted)) for cell in column.values() if cell.counted]),
        improvement=statistics.average([cell.improvements for cell in column.values() if cell.improvements]),
        left_out=tuple(task for task in column if task not in rates),
    )


def _lack(cell: Cell | None) -> str:
    if cell is None or not cell.trials:
        return "no run of it"
    return f"none that counts ({', '.join(f'{name} {count}' for name, count in cell.apart.items())})"


def _rates(column: Column) -> dict[str, float]:
    return {task: cell.rate.value for task, cell in column.items() if cell.rate is not None}


def _improvements(column: Column) -> dict[str, float]:
    return {task: sum(cell.improvements) / len(cell.improvements) for task, cell in column.items() if cell.improvements}
