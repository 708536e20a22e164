"""How lists stand in a terminal, however narrow: words are not broken, and what is to be copied stands on a line of its own.

A path, an id or a command that is cut, broken or drawn into a box cannot be copied; `unbroken` leaves it to the terminal to wrap it, which
copies it as one line.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

BESIDE = 36
"""Columns that descriptions have at least beside their terms; with fewer they stand below them."""
LONGEST_TERM = 30
"""Columns of a term at most that has its description beside it."""
INDENT = 4


class Definitions:
    """Terms with their descriptions: beside them where there is room for that, else below.

    Args:
        rows: each term with its description.
    """

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
            yield Padding(description if isinstance(description, Text) else Text(description), (0, 0, 0, INDENT))


def unbroken(console: Console, *lines: tuple[str, str]) -> None:
    """Print what is to be copied, each on a line of its own after its label.

    Args:
        console: where to.
        lines: labels and what stands after each.
    """
    width = max((cell_len(label) for label, _ in lines), default=0)
    for label, text in lines:
        console.print(Text.assemble((f"{label:<{width}}  " if width else "", "dim"), text), soft_wrap=True)
