"""Cells as tables: the columns that agents and models make, and the paper's Tables 3 and 4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mlagentbench.results.cells import Cell
from mlagentbench.results.conditions import ANY
from mlagentbench.results.statistics import Interval

MOST_TASKS = 50
"""Up to how many tasks `divisors` tries."""


class Table(NamedTuple):
    """A number a task and column, as the paper's Tables 3 and 4 have them, in percent."""

    rows: Mapping[str, Mapping[str, float | None]]
    """By task, then column; None where there are no runs."""
    averages: Mapping[str, float | None]
    """By column, over the tasks that have a number."""
    averaged_over: Mapping[str, int]
    """By column: how many those are."""

    def lines(self) -> list[list[str]]:
        """The table as the paper prints it: one decimal where there is one."""
        columns = list(self.averages)
        body = [[task, *(printed(numbers.get(column)) for column in columns)] for task, numbers in self.rows.items()]
        return [["", *columns], *body, ["Average", *(printed(self.averages[column], always=True) for column in columns)]]

    def notices(self) -> list[str]:
        """Over how many tasks the averages are: in one line, or where columns lack tasks that others have in one each."""
        without = {column: [task for task, numbers in self.rows.items() if numbers.get(column) is None] for column in self.averages}
        if not any(without.values()):
            return [f"averages are over {_tasks(len(self.rows))}"] if without else []
        return [
            f"{column}: the average is over {self.averaged_over[column]} of {_tasks(len(self.rows))}"
            + (f", without {', '.join(tasks)}" if tasks else "")
            for column, tasks in without.items()
        ]

    def against(self, averages: Mapping[str, float]) -> list[str]:
        """What does not agree with averages printed elsewhere, a line each, with what they were divided by where that explains it.

        Args:
            averages: by column, in percent, with one decimal.
        """
        lines = []
        for column, theirs in averages.items():
            ours = self.averages.get(column)
            if ours is None or round(ours, 1) == round(theirs, 1):
                continue
            over = self.averaged_over[column]
            by = divisors(ours * over, theirs)
            # A total near 0 gives the same average by any number.
            explained = f", which divides by {' or '.join(map(str, by))}" if 0 < len(by) <= 2 else ""
            lines.append(f"{column}: the printed average is {theirs:.1f}{explained}; over {_tasks(over)} it is {ours:.1f}")
        return lines


def columns(cells: Iterable[Cell]) -> Mapping[str, Mapping[str, Cell]]:
    """Cells by column and task. A column is one agent with one model under one set of conditions, so that none is mixed with another's.

    It is named by its agent and model; by its variant, isolation and hardware too where the cells differ in them or mix them. Columns
    come in the order of their first cells.
    """
    cells = list(cells)
    places = [{cell.conditions[place] for cell in cells} for place in (1, 4, 5)]
    told = [True, True, *(len(values) > 1 or not values.isdisjoint(ANY.values()) for values in places)]
    found: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in cells:
        task, variant, agent, model, isolation, hardware = cell.conditions
        words = (agent, model, variant, isolation, hardware or "unknown hardware")
        found.setdefault(tuple(word for word, tell in zip(words, told, strict=True) if tell), {})[task] = cell
    named: dict[str, Mapping[str, Cell]] = {}
    for key, by_task in found.items():
        name = ", ".join(key)
        # Names with commas in them may read alike.
        while name in named:
            name += " (2)"
        named[name] = by_task
    return named


def success_table(by_column: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Success rates, as the paper's Table 3.

    Args:
        by_column: the cells by column and task.
    """
    return _table({column: {task: _percent(cell.rate) for task, cell in cells.items()} for column, cells in by_column.items()})


def improvement_table(by_column: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Average improvements over valid submissions, as the paper's Table 4: a cell with runs and no valid submission counts 0."""

    def number(cell: Cell) -> float | None:
        return None if not cell.counted else _percent(cell.improvement) or 0.0

    return _table({column: {task: number(cell) for task, cell in cells.items()} for column, cells in by_column.items()})


def divisors(total: float, average: float) -> list[int]:
    """The numbers of tasks by which a total of percents gives an average, as printed with one decimal."""
    return [count for count in range(1, MOST_TASKS + 1) if abs(total / count - average) <= 0.05 + 1e-9]


def printed(value: float | None, *, always: bool = False) -> str:
    """A percentage with one decimal, without it where it is zero (unless `always`); `-` for none."""
    if value is None:
        return "-"
    # A sum of floats that is 0 but for its last bits is no negative number.
    text = f"{round(value, 9) + 0.0:.1f}"
    return text if always else text.removesuffix(".0")


def _tasks(count: int) -> str:
    return f"{count} task{'' if count == 1 else 's'}"


def _percent(interval: Interval | None) -> float | None:
    return None if interval is None else 100 * interval.value


def _table(numbers: Mapping[str, Mapping[str, float | None]]) -> Table:
    tasks = list(dict.fromkeys(task for column in numbers.values() for task in column))
    rows = {task: {column: cells.get(task) for column, cells in numbers.items()} for task in tasks}
    known = {column: [value for value in cells.values() if value is not None] for column, cells in numbers.items()}
    averages: dict[str, float | None] = {column: sum(values) / len(values) if values else None for column, values in known.items()}
    return Table(rows, averages, {column: len(values) for column, values in known.items()})
