"""Define a table: typed rows of raw values, which programs read, and how they are formatted for people.

The rows are tidy: a value's unit and meaning follow from its column alone, and what people see as headings across the table, such as the
agents, is a column of its own. Everything that a file or a terminal shows is made from this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from mlagentbench.report.formatting import NONE
from mlagentbench.run_spec import NO_MODEL

Kind = Literal["text", "count", "number"]
"""The type of a column: text, whole numbers, or numbers. Rates and improvements are fractions, times seconds, costs US dollars."""

Value = str | int | float | None
Row = Mapping[str, Value]

AVERAGE = "average over tasks"
"""The name of the line below all tasks."""


class TextColumn(NamedTuple):
    """A column as it is formatted for people."""

    heading: str
    text: Callable[[Row], str]
    number: bool = True
    """Whether the column is right-aligned, as numbers are."""
    copied: bool = False
    """Whether users copy its texts from a terminal, as the ids of runs; such texts are never broken."""


@dataclass(frozen=True)
class Table:
    """Raw values, and how they are formatted for people."""

    name: str
    """The name of the table's file, without a suffix, and its key in JSON."""
    title: str
    columns: Mapping[str, Kind]
    rows: Sequence[Row]
    down: TextColumn
    """The first column for people: the names of the lines."""
    shown: Sequence[TextColumn]
    """The other columns for people; with `across`, exactly one, which formats the cells."""
    across: str | None = None
    """The column of raw values that become headings; rows with the same text of `down` are then one line."""
    words: Mapping[Any, str] = field(default_factory=dict)
    """The headings of values of `across`; others are their own headings."""
    notes: Sequence[str] = ()
    """Notes to show below the table, one or a few sentences each."""
    ranks: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    """For some columns, their values in the order in which people see them. Files for programs keep the order of `rows`."""

    @property
    def ranked(self) -> list[Row]:
        """The rows in the order in which people see them."""
        places = {column: {value: place for place, value in enumerate(order)} for column, order in self.ranks.items()}
        return sorted(self.rows, key=lambda row: [place.get(row.get(column), len(place)) for column, place in places.items()])


class TextTable(NamedTuple):
    """A table as people see it: text only."""

    headings: list[str]
    """The first is the heading of the lines' names."""
    lines: list[list[str]]
    numbers: list[bool]
    """Whether each column is right-aligned."""


def pivot(table: Table) -> Mapping[str, Mapping[str, Row]]:
    """Return the rows of a table with `across`, by the text of `down` and then by the value of `across`."""
    found: dict[str, dict[str, Row]] = {}
    for row in table.ranked:
        found.setdefault(table.down.text(row), {})[str(row[table.across or ""])] = row
    return found


def grid(table: Table) -> TextTable:
    """Format a table for people, at its full width."""
    if table.across is None:
        columns = [table.down, *table.shown]
        lines = [[column.text(row) for column in columns] for row in table.ranked]
        return TextTable([column.heading for column in columns], lines, [column.number for column in columns])
    (cell,) = table.shown
    names = list(dict.fromkeys(str(row[table.across]) for row in table.rows))
    order = [str(value) for value in table.ranks.get(table.across, ())]
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    lines = [[label, *(cell.text(by_name[name]) if name in by_name else NONE for name in names)] for label, by_name in pivot(table).items()]
    headings = [table.words.get(name, named(name)) for name in names]
    return TextTable([table.down.heading, *headings], lines, [False, *(cell.number for _ in names)])


def named(column: Value) -> str:
    """Return a column's name for people: without the model if the agent asks none."""
    return str(column).replace(f", {NO_MODEL}", "")
