"""Write tables for LaTeX that fit a page of the article class: wide ones are turned sideways or split, and so are long ones.

The width of a text is estimated from the widths of Computer Modern, generously, since no TeX is asked. great_tables, whose LaTeX is
experimental, has neither notes nor labels there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mlagentbench.report.formatting import MINUS, NONE, visible
from mlagentbench.report.tables.model import Table, TextTable, grid

UPRIGHT, SIDEWAYS = 345.0, 540.0
"""The width of a table on an upright and on a turned page, in points."""
UPRIGHT_LINES, SIDEWAYS_LINES = 42, 22
"""The most lines of a table on such pages, without its heading, caption and notes."""
SEPARATION = 8.0
"""The space between two columns, in points."""
NARROWEST = 95.0
"""The least width of a column whose text is broken into lines, in points."""
HEADING, WORD = 18, 14
"""The longest line of a heading and the longest stretch that is not broken in a broken text, in characters."""

ESCAPES: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"$\mathdollar$",  # in math, since the text fonts of a small TeX may lack it
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after a line's end, a bracket would be read as its argument
    "µ": r"$\mu$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    NONE: "--",
    MINUS: "$-$",
}


class _Part(NamedTuple):
    """A part of a table that fits a page."""

    shown: TextTable
    widths: Sequence[float | None]
    """The widths in points of columns whose text is broken into lines; None for the others."""
    sideways: bool


def latex(table: Table) -> str:
    """Return a table for LaTeX, which needs the packages array, booktabs and rotating: one float, or several if it does not fit a page."""
    parts = [page for part in _columns(grid(table), across=table.across is not None) for page in _pages(part)]
    floats = [_float(table, part, number, len(parts)) for number, part in enumerate(parts, start=1)]
    return "\n".join([r"% needs \usepackage{array,booktabs,rotating}", *floats, ""])


def _float(table: Table, part: _Part, number: int, count: int) -> str:
    name, shown = "sidewaystable" if part.sideways else "table", part.shown
    caption = _escaped(table.title) + (f" ({number} of {count})" if count > 1 else "")
    label = re.sub(r"[^a-z0-9]+", "-", table.name) + (f"-{number}" if number > 1 else "")
    align = "".join(
        rf">{{\raggedright\arraybackslash}}p{{{width:.0f}pt}}" if width is not None else "r" if right else "l"
        for right, width in zip(shown.numbers, part.widths, strict=True)
    )
    heads = [_stacked(heading, right) for heading, right in zip(shown.headings, shown.numbers, strict=True)]
    cells = [
        [_escaped(text) if width is None else _broken(text) for text, width in zip(line, part.widths, strict=True)] for line in shown.lines
    ]
    lines = [
        rf"\begin{{{name}}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{label}}}",
    ]
    lines += [rf"\begin{{tabular}}{{@{{}}{align}@{{}}}}", r"\toprule", " & ".join(heads) + r" \\", r"\midrule"]
    lines += [*(" & ".join(line) + r" \\" for line in cells), r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip {_broken(note)}" for note in table.notes] if number == count else []
    return "\n".join([*lines, rf"\end{{{name}}}"])


def _columns(shown: TextTable, *, across: bool) -> Iterator[_Part]:
    """Fit a table's columns to pages: upright, else sideways, else with broken texts, or in parts if its columns are alike (`across`)."""
    widths = _widths(shown)
    total = sum(widths)
    if total <= SIDEWAYS:
        yield _Part(shown, [None] * len(widths), sideways=total > UPRIGHT)
    elif across and len(widths) > 2:
        widest, columns = max(widths[1:]), len(widths) - 1
        upright, sideways = (math.ceil(columns / max(1, math.floor((page - widths[0]) / widest))) for page in (UPRIGHT, SIDEWAYS))
        size = math.ceil(columns / min(upright, sideways))
        for start in range(1, len(widths), size):
            places = [0, *range(start, min(start + size, len(widths)))]
            part = TextTable(
                [shown.headings[place] for place in places],
                [[line[place] for place in places] for line in shown.lines],
                [shown.numbers[place] for place in places],
            )
            yield from _columns(part, across=False)
    else:
        # What the numbers leave is shared by the texts, by their lengths.
        broken = [not number for number in shown.numbers]
        texts = sum(width for width, text in zip(widths, broken, strict=True) if text)
        left = SIDEWAYS - (total - texts)
        shares = [max(NARROWEST, left * width / texts) - SEPARATION if text else None for width, text in zip(widths, broken, strict=True)]
        yield _Part(shown, shares, sideways=True)


def _pages(part: _Part) -> Iterator[_Part]:
    """Split a part whose lines do not fit a page."""
    most = SIDEWAYS_LINES if part.sideways else UPRIGHT_LINES
    page: list[list[str]] = []
    taken = 0
    for line in part.shown.lines:
        needed = max(1 if width is None else math.ceil(1.15 * _width(text) / width) for text, width in zip(line, part.widths, strict=True))
        if page and taken + needed > most:
            yield part._replace(shown=part.shown._replace(lines=page))
            page, taken = [], 0
        page.append(line)
        taken += needed
    yield part._replace(shown=part.shown._replace(lines=page))


def _widths(shown: TextTable) -> list[float]:
    """Return about how wide the columns are, in points, with the space between them."""
    return [
        max(_width(text) for text in (*_lines(heading), *(line[place] for line in shown.lines))) + SEPARATION
        for place, heading in enumerate(shown.headings)
    ]


def _width(text: str) -> float:
    """Return about how wide a text of 8 points is, in points, and rather too much."""
    wide, narrow = len(re.findall(r"[A-Zmw%+=<>@\u2212\u2264]", text)), len(re.findall(r"[ijlIft.,;:'|()\[\] -]", text))
    other = len(text) - wide - narrow
    return 7.0 * wide + 3.6 * narrow + 4.75 * other


def _lines(heading: str) -> list[str]:
    """Break a heading where its parts end: an agent, a provider, its model; and where they are long."""
    pieces = [piece for part in _line(heading).split(", ") for piece in re.split(r"(?<=/)", part)]
    return [piece[start : start + HEADING] for piece in pieces for start in range(0, max(1, len(piece)), HEADING)]


def _stacked(heading: str, right: bool) -> str:
    lines = [_escaped(line) for line in _lines(heading)]
    if len(lines) == 1:
        return lines[0]
    return rf"\shortstack[{'r' if right else 'l'}]{{" + r" \\ ".join(lines) + "}"


def _broken(text: str) -> str:
    """Escape a text whose long words may be broken: after the marks in names, and anywhere in longer stretches without one."""
    words = []
    for word in _line(text).split():
        pieces = re.split(r"(?<=[-/_.:])(?=.)", word) if len(word) > WORD else [word]
        stretches = [piece[start : start + WORD] for piece in pieces for start in range(0, len(piece), WORD)]
        words.append(r"\allowbreak{}".join(map(_escaped, stretches)))
    return " ".join(words)


def _escaped(text: str) -> str:
    """Escape a text; what TeX's fonts lack is written as its code."""
    return "".join(ESCAPES.get(each, each if ord(each) < 0x180 else f"U+{ord(each):04X}") for each in _line(text))


def _line(text: str) -> str:
    return " ".join(visible(text).split())
