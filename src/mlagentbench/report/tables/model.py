"""A table: rows of raw values with types, which programs read, and how people see the same.

The rows are tidy: a value's unit and meaning follow from its column alone, and what lies across the table for people, such as the agents,
is a column of its own. Everything that a file or a terminal shows is made from this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from mlagentbench.report.text import NONE
from mlagentbench.run_spec import NO_MODEL

Kind = Literal["text", "count", "number"]
"""What a column holds: words, whole numbers, or numbers. Rates and improvements are fractions, times seconds, costs US dollars."""

Value = str | int | float | None
Row = Mapping[str, Value]

AVERAGE = "average over tasks"
"""The name of the line below all tasks."""


class Shown(NamedTuple):
    """A column as people see it."""

    heading: str
    text: Callable[[Row], str]
    number: bool = True
    """Whether it stands to the right, as numbers do."""
    copied: bool = False
    """Whether it is copied from a terminal, as the ids of runs are, and so is never broken."""


@dataclass(frozen=True)
class Table:
    """Raw values, and how people see them."""

    name: str
    """Of its file and its place in JSON."""
    title: str
    columns: Mapping[str, Kind]
    rows: Sequence[Row]
    down: Shown
    """What stands at the left of each line."""
    shown: Sequence[Shown]
    """The other columns; the only one where values lie `across`."""
    across: str | None = None
    """The column whose values are people's columns; then rows with the same text `down` are one line."""
    words: Mapping[Any, str] = field(default_factory=dict)
    """What people read in the place of values across."""
    notes: Sequence[str] = ()
    """What must be said beside it, a sentence each."""


class Grid(NamedTuple):
    """A table as people see it: nothing but text."""

    headings: list[str]
    """The first is that of the lines' names."""
    lines: list[list[str]]
    numbers: list[bool]
    """Whether each column stands to the right."""


def grid(table: Table) -> Grid:
    """A table as people see it, as wide as it is."""
    if table.across is None:
        lines = [[table.down.text(row), *(shown.text(row) for shown in table.shown)] for row in table.rows]
        return Grid(
            [table.down.heading, *(shown.heading for shown in table.shown)], lines, [False, *(shown.number for shown in table.shown)]
        )
    (cell,) = table.shown
    names = list(dict.fromkeys(str(row[table.across]) for row in table.rows))
    by_line: dict[str, dict[str, str]] = {}
    for row in table.rows:
        by_line.setdefault(table.down.text(row), {})[str(row[table.across])] = cell.text(row)
    lines = [[label, *(cells.get(name, NONE) for name in names)] for label, cells in by_line.items()]
    headings = [table.words.get(name, named(name)) for name in names]
    return Grid([table.down.heading, *headings], lines, [False, *(cell.number for _ in names)])


def named(column: Value) -> str:
    """The name of an agent with its model, as people read it: an agent that asks no model has none."""
    return str(column).replace(f", {NO_MODEL}", "")
