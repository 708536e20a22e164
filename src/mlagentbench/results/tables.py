"""Arrange cells as tables: one column for each agent with a model, and numbers as in the paper's Tables 3 and 4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mlagentbench.results.cells import Cell
from mlagentbench.results.conditions import ANY
from mlagentbench.results.statistics import Interval

MOST_TASKS = 50
"""The largest number of tasks that `divisors` tries."""


class TaskTable(NamedTuple):
    """A number for each task and column, in percent, as in the paper's Tables 3 and 4."""

    rows: Mapping[str, Mapping[str, float | None]]
    """The numbers by task, then column; None without counted runs."""
    averages: Mapping[str, float | None]
    """The averages by column, over the tasks that have a number."""
    averaged_over: Mapping[str, int]
    """How many tasks have a number, by column."""

    def lines(self) -> list[list[str]]:
        """Return the table's cells as the paper prints them: with one decimal unless it is 0, and averages always."""
        columns = list(self.averages)
        body = [[task, *(printed(numbers.get(column)) for column in columns)] for task, numbers in self.rows.items()]
        return [["", *columns], *body, ["Average", *(printed(self.averages[column], always=True) for column in columns)]]

    def notices(self) -> list[str]:
        """Say over how many tasks the averages are: in one line, or in one for each column if some lack tasks."""
        without = {column: [task for task, numbers in self.rows.items() if numbers.get(column) is None] for column in self.averages}
        if not any(without.values()):
            return [f"averages are over {_tasks(len(self.rows))}"] if without else []
        return [
            f"{column}: the average is over {self.averaged_over[column]} of {_tasks(len(self.rows))}"
            + (f", without {', '.join(tasks)}" if tasks else "")
            for column, tasks in without.items()
        ]

    def against(self, averages: Mapping[str, float]) -> list[str]:
        """Compare the averages with those printed elsewhere, and return a line for each difference.

        A line says by which number the other average was divided, if that explains the difference.

        Args:
            averages: the other averages by column, in percent, with one decimal.
        """
        lines = []
        for column, theirs in averages.items():
            ours = self.averages.get(column)
            if ours is None or round(ours, 1) == round(theirs, 1):
                continue
            over = self.averaged_over[column]
            by = divisors(ours * over, theirs)
            # A total near 0 gives the same average whatever it is divided by, so that many divisors explain nothing.
            explained = f", which divides by {' or '.join(map(str, by))}" if 0 < len(by) <= 2 else ""
            lines.append(f"{column}: the printed average is {theirs:.1f}{explained}; over {_tasks(over)} it is {ours:.1f}")
        return lines


def columns(cells: Iterable[Cell]) -> Mapping[str, Mapping[str, Cell]]:
    """Group cells by column and task. A column is one agent with one model under one set of conditions, so that cells are never mixed.

    Its name has the agent and the model, and also the variant, isolation and hardware if the cells differ in them or mix them. Columns come
    in the order of their first cells.
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
        # Different keys may give the same name if their words have commas in them.
        while name in named:
            name += " (2)"
        named[name] = by_task
    return named


def success_table(by_column: Mapping[str, Mapping[str, Cell]]) -> TaskTable:
    """Return the table of success rates, as the paper's Table 3.

    Args:
        by_column: the cells by column and task.
    """
    return _table({column: {task: _percent(cell.rate) for task, cell in cells.items()} for column, cells in by_column.items()})


def improvement_table(by_column: Mapping[str, Mapping[str, Cell]]) -> TaskTable:
    """Return the table of average improvements, as the paper's Table 4: a cell with counted runs and no valid submission is 0."""

    def number(cell: Cell) -> float | None:
        return None if not cell.counted else _percent(cell.improvement) or 0.0

    return _table({column: {task: number(cell) for task, cell in cells.items()} for column, cells in by_column.items()})


def divisors(total: float, average: float) -> list[int]:
    """Return the numbers of tasks by which a total, divided, gives an average as printed with one decimal."""
    return [count for count in range(1, MOST_TASKS + 1) if abs(total / count - average) <= 0.05 + 1e-9]


def printed(value: float | None, *, always: bool = False) -> str:
    """Format a percentage with one decimal, which is left out if 0 unless `always`; `-` for None."""
    if value is None:
        return "-"
    # A float sum may miss 0 by its last bits, and would be printed as -0.0.
    text = f"{round(value, 9) + 0.0:.1f}"
    return text if always else text.removesuffix(".0")


def _tasks(count: int) -> str:
    return f"{count} task{'' if count == 1 else 's'}"


def _percent(interval: Interval | None) -> float | None:
    return None if interval is None else 100 * interval.value


def _table(numbers: Mapping[str, Mapping[str, float | None]]) -> TaskTable:
    tasks = list(dict.fromkeys(task for column in numbers.values() for task in column))
    rows = {task: {column: cells.get(task) for column, cells in numbers.items()} for task in tasks}
    known = {column: [value for value in cells.values() if value is not None] for column, cells in numbers.items()}
    averages: dict[str, float | None] = {column: sum(values) / len(values) if values else None for column, values in known.items()}
    return TaskTable(rows, averages, {column: len(values) for column, values in known.items()})
