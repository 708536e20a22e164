"""Print tables in a terminal of any width: a table that is too wide is split into several with the same lines, one below the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from mlagentbench.report.console import Item, Listing
from mlagentbench.report.formatting import visible
from mlagentbench.report.tables.model import AVERAGE, Table, TextTable, grid

LABEL = 34
"""The greatest width of the names of lines, in characters, before they are wrapped."""
SHORT_LABEL = 24
"""The width, in characters, to which the names may shrink if the table then need not be split."""
HEADING = 8
"""The width, in characters, that a heading may have where the cells below it are narrower."""
GAP = 2
"""Spaces between columns."""
MOST = 8
"""How many lines of a list are shown; the rest are counted."""


def shown(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield a table with its title and notes, for a terminal of this width in characters."""
    whole = grid(table)
    yield Text(visible(table.title), style="bold")
    if table.across is not None:
        for number, part in enumerate(_parts(whole, width)):
            if number:
                yield Text()
            yield _rich(part, _label(part, width))
    else:
        # Only lists need a limit: a table with columns across has a line for each task or agent, but a list may have one for each run.
        part = whole._replace(lines=whole.lines[:MOST])
        yield _listing(part) if table.down.copied else _rich(part, _label(whole, width))
        if len(whole.lines) > MOST:
            yield Text(f"and {len(whole.lines) - MOST} more: --tables writes all", style="dim")
    for note in table.notes:
        yield Text(visible(note), style="dim")


def _listing(part: TextTable) -> Listing:
    columns = [heading + ">" * number for heading, number in zip(part.headings, part.numbers, strict=True)]
    return Listing(columns[0], columns[1:], [Item(line[0], [visible(" ".join(cell.split())) for cell in line[1:]]) for line in part.lines])


def _parts(whole: TextTable, width: int) -> Iterator[TextTable]:
    """Split a grid into grids that fit the width, each with the names of the lines."""
    label = _label(whole, width)
    left = width - label
    places: list[int] = []
    for place in range(1, len(whole.headings)):
        needed = GAP + _width(whole, place)
        if places and left < needed:
            yield _part(whole, places)
            places, left = [], width - label
        places.append(place)
        left -= needed
    yield _part(whole, places)


def _label(whole: TextTable, width: int) -> int:
    """Return the width of the names of lines: narrower than the longest if the table then need not be split."""
    longest = min(LABEL, max(map(cell_len, (whole.headings[0], *(line[0] for line in whole.lines)))))
    left = width - sum(GAP + _width(whole, place) for place in range(1, len(whole.headings)))
    return left if SHORT_LABEL <= left < longest else longest


def _part(whole: TextTable, places: list[int]) -> TextTable:
    taken = [0, *places]
    return TextTable(
        [whole.headings[place] for place in taken],
        [[line[place] for place in taken] for line in whole.lines],
        [whole.numbers[place] for place in taken],
    )


def _width(whole: TextTable, place: int) -> int:
    """Return the width of a column: that of its cells, or of its heading broken into lines."""
    cells = max((cell_len(line[place]) for line in whole.lines), default=0)
    return max(cells, *map(cell_len, _heading_lines(whole.headings[place], max(cells, HEADING))))


def _heading_lines(heading: str, room: int) -> list[str]:
    """Break a heading where its parts end: an agent, a provider, its model."""
    lines: list[str] = []
    for part in visible(heading).split(", "):
        lines += [part] if cell_len(part) <= room else [piece.strip() for piece in re.findall(r"[^/ ]+[/ ]?", part)]
    return lines or [""]


def _rich(part: TextTable, label: int) -> RichTable:
    table = RichTable(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
    for place, (heading, number) in enumerate(zip(part.headings, part.numbers, strict=True)):
        room = max(HEADING, _width(part, place))
        table.add_column(
            Text("\n".join(_heading_lines(heading, room)) if number else visible(heading)),
            justify="right" if number else "left",
            overflow="fold",
            max_width=None if place else label,
            no_wrap=number,
        )
    for line in part.lines:
        total = line[0] == AVERAGE
        table.add_row(*(Text(visible(" ".join(cell.split()))) for cell in line), style="bold" if total else None)
    return table
