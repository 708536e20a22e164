"""Print lists in a terminal of any width: words are not broken, and paths, ids and commands can be copied.

A path, an id or a command that is cut, broken or drawn into a frame cannot be copied. `unbroken` leaves wrapping to the terminal, which
copies the text as one line. Print the lists of this module with `crop=False`, so that long keys are not cut off.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

BESIDE = 36
"""The least width, in characters, of descriptions beside their terms; if less is left, they are printed below."""
LONGEST_TERM = 30
"""The longest term, in characters, that can have its description beside it."""
INDENT = 4
GAP = 2
"""Spaces between the columns of a table."""
PIPED = 160
"""The width, in characters, of output that does not go to a terminal."""


class Definitions:
    """A list of terms with descriptions: beside the terms where there is room, else below them."""

    def __init__(self, rows: Iterable[tuple[str, str | Text]]) -> None:
        self.rows = list(rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widest = max((cell_len(term) for term, _ in self.rows), default=0)
        if widest <= LONGEST_TERM and options.max_width - widest - 2 >= BESIDE:
            table = Table.grid(padding=(0, 2))
            table.add_column(style="cyan", no_wrap=True)
            table.add_column()
            for term, description in self.rows:
                table.add_row(Text(term), description if isinstance(description, Text) else Text(description))
            yield table
            return
        for term, description in self.rows:
            yield Text(term, style="cyan", overflow="ignore", no_wrap=True)
            yield Padding(description if isinstance(description, Text) else Text(description), (0, 0, 0, INDENT), expand=False)


class Item(NamedTuple):
    """A row of a `Listing`."""

    key: str
    """A text that users copy, such as a run's id."""
    cells: Sequence[str]
    style: str = ""


class Listing:
    """Items with keys that users copy: a table where all of it fits, else each key on a line of its own with its cells below it.

    Args:
        key: the heading of the keys.
        columns: the headings of the cells; headings of numbers end in `>`, and those columns are right-aligned.
        items: the rows.
    """

    def __init__(self, key: str, columns: Sequence[str], items: Iterable[Item]) -> None:
        self.key = key
        self.columns = [column.removesuffix(">") for column in columns]
        self.numbers = [column.endswith(">") for column in columns]
        self.items = list(items)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [[self.key, *self.columns], *([item.key, *item.cells] for item in self.items)]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        if sum(widths) + GAP * (len(widths) - 1) <= options.max_width:
            yield self._table()
            return
        for item in self.items:
            yield Text(item.key, style=item.style or "bold", overflow="ignore", no_wrap=True)
            named = [f"{column} {cell}" if column else cell for column, cell in zip(self.columns, item.cells, strict=True) if cell]
            yield Padding(Text(", ".join(named)), (0, 0, 0, INDENT), expand=False)

    def _table(self) -> Table:
        table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, GAP, 0, 0))
        table.add_column(Text(self.key), no_wrap=True)
        for column, number in zip(self.columns, self.numbers, strict=True):
            table.add_column(Text(column), justify="right" if number else "left", no_wrap=True)
        for item in self.items:
            table.add_row(*map(Text, (item.key, *item.cells)), style=item.style or None)
        return table


def command_console(*, stderr: bool = False) -> Console:
    """Return the console of a command: as wide as the terminal or $COLUMNS; without either, as in a pipe, `PIPED` characters."""
    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED
    return console


def unbroken(console: Console, *lines: tuple[str, str]) -> None:
    """Print texts that users copy, each on a line of its own after its label."""
    width = max((cell_len(label) for label, _ in lines), default=0)
    for label, text in lines:
        console.print(Text.assemble((f"{label:<{width}}  " if width else "", "dim"), text), soft_wrap=True)
