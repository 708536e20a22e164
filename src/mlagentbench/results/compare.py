"""Compare agents and models: two columns task by task, and one column by groups of tasks."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from mlagentbench.errors import UsageError
from mlagentbench.results.cells import Cell, Moves, RateBounds, bounds_over_tasks, deviations, improvement_over_tasks, rate_over_tasks
from mlagentbench.results.statistics import intervals, robust
from mlagentbench.results.statistics.inference import Inference, TaskCounts, on_other_tasks, on_these_tasks, runs_needed
from mlagentbench.results.statistics.intervals import Interval
from mlagentbench.run_spec import NO_MODEL

Column = Mapping[str, Cell]
"""The cells of one agent with one model, by task (`cells.columns`)."""

UNKNOWN_CATEGORY = "unknown category"
BEFORE, AFTER = "published before the cutoff", "published after the cutoff"
UNKNOWN_DATE, UNKNOWN_CUTOFF = "unknown date of the task", "unknown cutoff of the model"


class Pair(NamedTuple):
    """The names of two columns."""

    first: str
    second: str


class Comparison(NamedTuple):
    """One column compared with another, over the tasks of which both have counted runs."""

    first: str
    second: str
    tasks: tuple[str, ...]
    """The shared tasks, over which the columns are compared."""
    left_out: Mapping[str, str]
    """The other tasks, each with the reason: which column has no run of it, or none that counts."""
    first_runs: int
    """How many counted runs of the shared tasks the first column has."""
    second_runs: int
    first_rate: float | None
    """The first column's mean success rate over the shared tasks; None if there are none."""
    second_rate: float | None
    these_tasks: Inference | None
    """Whether the first succeeds more often on these same tasks (`inference.on_these_tasks`); None if they share no task."""
    other_tasks: Inference | None
    """Whether it does on other tasks of this kind (`inference.on_other_tasks`)."""
    p_these_tasks: float | None
    """The p-value of `these_tasks`, adjusted for all pairs that were compared at once (`intervals.adjusted`)."""
    p_other_tasks: float | None
    """That of `other_tasks`, adjusted likewise."""
    runs_needed: int | None
    """How many runs of each shared task both columns would need for a difference to show on these tasks (`inference.runs_needed`)."""
    improvement: Interval | None
    """The first column's average improvement less the second's, over the shared tasks of which both have valid submissions."""
    improvement_tasks: tuple[str, ...]
    """These tasks."""


class TaskGroup(NamedTuple):
    """Some tasks of one column, counted together."""

    name: str
    tasks: tuple[str, ...]
    """The tasks with a counted run."""
    runs: int
    """The number of counted runs."""
    mean: Interval | None
    """The mean over tasks of their success rates, each task counting once as in the paper's averages (`intervals.average_rate`)."""
    bounds: RateBounds | None
    """What `mean` would be if all runs that it leaves out had failed, and had succeeded (`cells.bounds_over_tasks`)."""
    improvement: Interval | None
    """The mean over tasks of their average improvements (`robust.average`); as in the paper, a task without a valid submission counts 0."""
    left_out: tuple[str, ...] = ()
    """The tasks of which no run counts."""


def comparisons(by_column: Mapping[str, Column], pairs: Sequence[Pair] = ()) -> list[Comparison]:
    """Compare some pairs of columns, or without any every pair in their order, and adjust the p-values of each question together."""
    wanted = dict.fromkeys(pairs or (Pair(*each) for each in combinations(by_column, 2)))
    found = [compare(first, by_column[first], second, by_column[second]) for first, second in wanted]
    these = iter(intervals.adjusted([each.these_tasks.p for each in found if each.these_tasks]))
    others = iter(intervals.adjusted([each.other_tasks.p for each in found if each.other_tasks]))
    return [each._replace(p_these_tasks=next(these), p_other_tasks=next(others)) if each.tasks else each for each in found]


def find_pair(text: str, by_column: Mapping[str, Column]) -> Pair:
    """Return the two columns that `A,B` names, each by its name or by an agent or a model that only it has.

    Names of columns have commas in them, so that each comma is tried.

    Raises:
        UsageError: it names no two columns.
    """
    names: dict[str, set[str]] = {}
    for column, by_task in by_column.items():
        shared = next(iter(by_task.values())).conditions
        for name in (column, column.removesuffix(f", {NO_MODEL}"), shared.agent, shared.model):
            names.setdefault(name, set()).add(column)
    only = {name: next(iter(having)) for name, having in names.items() if len(having) == 1}
    parts = text.split(",")
    halves = [(",".join(parts[:place]).strip(), ",".join(parts[place:]).strip()) for place in range(1, len(parts))]
    found = {Pair(only[one], only[other]) for one, other in halves if one in only and other in only and only[one] != only[other]}
    if len(found) == 1:
        return found.pop()
    known = "; ".join(map(repr, by_column))  # a model's name may hold anything
    raise UsageError(f"--compare {text!r} does not name two columns; give two of these with a comma between them: {known}")


def compare(first: str, ones: Column, second: str, others: Column) -> Comparison:
    """Compare two columns task by task, over the tasks of which both have counted runs."""
    one, other = _rates(ones), _rates(others)
    sides = ((first, ones, one), (second, others, other))
    tasks = tuple(task for task in ones if task in one and task in other)
    left_out = {
        task: "; ".join(f"{name} has {_lack(column.get(task))}" for name, column, rates in sides if task not in rates)
        for task in dict.fromkeys((*ones, *others))
        if task not in tasks
    }
    first_rate, second_rate = (sum(rates[task] for task in tasks) / len(tasks) if tasks else None for rates in (one, other))
    these = on_these_tasks([TaskCounts(*_counted(ones[task]), *_counted(others[task])) for task in tasks])
    beyond = on_other_tasks([one[task] - other[task] for task in tasks])
    valid = tuple(task for task in tasks if ones[task].improvements and others[task].improvements)
    pairs = [(ones[task], others[task]) for task in valid]
    return Comparison(
        first=first,
        second=second,
        tasks=tasks,
        left_out=left_out,
        first_runs=sum(len(ones[task].counted) for task in tasks),
        second_runs=sum(len(others[task].counted) for task in tasks),
        first_rate=first_rate,
        second_rate=second_rate,
        these_tasks=these,
        other_tasks=beyond,
        p_these_tasks=these.p if these else None,
        p_other_tasks=beyond.p if beyond else None,
        runs_needed=runs_needed([(one[task], other[task]) for task in tasks]),
        improvement=robust.difference(
            [first.improvements for first, _ in pairs],
            [second.improvements for _, second in pairs],
            [deviations(_moves(first.moves, second.moves)) for first, second in pairs],
        ),
        improvement_tasks=valid,
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
        mean=rate_over_tasks(column.values()),
        bounds=bounds_over_tasks(column.values()),
        improvement=improvement_over_tasks(column.values()),
        left_out=tuple(task for task in column if task not in rates),
    )


def _lack(cell: Cell | None) -> str:
    if cell is None or not cell.runs:
        return "no run of it"
    return f"none that counts ({', '.join(f'{name} {count}' for name, count in cell.apart.items())})"


def _rates(column: Column) -> dict[str, float]:
    return {task: cell.rate.value for task, cell in column.items() if cell.rate is not None}


def _moves(first: Moves, second: Moves) -> Moves:
    """Return what a difference of improvements moves by with each baseline: of one that both share, what is left when both move."""
    return {values: first.get(values, 0.0) - second.get(values, 0.0) for values in dict.fromkeys((*first, *second))}


def _counted(cell: Cell) -> tuple[int, int]:
    return cell.successes, len(cell.counted)
