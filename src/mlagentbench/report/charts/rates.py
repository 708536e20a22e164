"""Make heat maps of success and improvement by task and column, as the paper's Tables 3 and 4."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from mlagentbench.report.charts.palette import LIGHT
from mlagentbench.report.charts.style import data, layered, name, quoted, short
from mlagentbench.report.formatting import interval_text, number, percentage, plural
from mlagentbench.report.tables.model import AVERAGE, Row, Table, pivot

CELL_WIDTH, CELL_HEIGHT = 104, 44
"""The size of a cell, in pixels."""
LINE = 16
"""The length of a line of a column's name, in characters."""
LABEL = 15
"""The height of such a line, in pixels."""
LEVELS = 10
"""How many levels of colour there are on either side of 0."""
GREATEST = 0.5
"""The improvement, either way, from which on the colour stays the same (`level`)."""
NEUTRAL, GOOD, BAD = "#f5f6f6", "#63bb8d", "#e79a55"

TITLES: Mapping[str, tuple[str, str]] = {
    "success": (
        "Success, % of runs",
        "With 95% intervals and the number of runs; averages over tasks.",
    ),
    "improvement": (
        "Improvement over the baseline at the last step, %",
        "Means of the valid submissions with 95% intervals, and their number; a cell without one counts 0 in the average.",
    ),
    "categories": ("Success by category, % of runs", "Means over the tasks of a category with 95% intervals, and the number of runs."),
}
"""Titles and explanations, by the names of tables."""


class HeatCell(NamedTuple):
    """A cell of a heat map."""

    text: str = "—"
    """The number in percent."""
    interval: str = ""
    of: str = ""
    """What the number is computed from, such as `n 8`."""
    not_counted: int = 0
    """How many runs are not counted; 0 in an average."""
    level: int | None = None
    """The level of colour, from -10 to 10; None without a number."""
    bounds: str = ""
    """What a rate would be if all runs that it leaves out had failed, and had succeeded: `25 to 75 with 2 left out`; empty for none."""


class HeatMap(NamedTuple):
    """A table of results as a heat map: a cell for each row (a task, or a group of tasks) and column, and the averages of the columns."""

    name: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, HeatCell]]
    averages: Mapping[str, HeatCell]


def heat(table: Table, columns: Iterable[str]) -> HeatMap:
    """Return a table of success rates or improvements as a heat map."""
    columns = tuple(columns)
    rows = {}
    for label, by_column in pivot(table).items():
        most = max(int(row["tasks"] or 0) for row in by_column.values())
        rows[label] = {column: _cell(by_column[column], most) if column in by_column else HeatCell() for column in columns}
    return HeatMap(table.name, columns, {label: cells for label, cells in rows.items() if label != AVERAGE}, rows.get(AVERAGE, {}))


def level(value: float, full: float = 1) -> int:
    """Return the level of colour of a number, from -10 to 10; 0 only for numbers that are nearly 0.

    Args:
        value: the number.
        full: the number, either way, from which on the colour stays the same.
    """
    share = value / full
    reached = min(LEVELS, math.ceil(abs(share) * LEVELS - 0.05))
    return reached if share > 0 else -reached


def tint(level: int) -> str:
    """Return the colour of a level for a white background."""
    ends = [[int(color[place : place + 2], 16) for place in (1, 3, 5)] for color in (NEUTRAL, GOOD if level > 0 else BAD)]
    mixed = [round(one + (other - one) * abs(level) / LEVELS) for one, other in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def heat_map(heat: HeatMap) -> alt.LayerChart | None:
    """Draw a heat map for a file; the page shows heat maps as HTML tables.

    Returns:
        The chart; None if no cell has a number.
    """
    rows = [
        {
            "row": place,
            "column": number,
            "color": None if cell.level is None else tint(cell.level),
            "text": cell.text,
            "note": ", ".join(part for part in (cell.interval, cell.of) if part),
        }
        for place, by_column in enumerate([*heat.rows.values(), *([heat.averages] if heat.averages else [])])
        for number, cell in enumerate(by_column.values())
    ]
    if not any(row["color"] is not None for row in rows):
        return None
    names = [name(row) for row in heat.rows] + (["average"] if heat.averages else [])
    title, words = TITLES[heat.name]
    x = alt.X(
        "column:O", axis=_names(["\n".join(_lines(label)) for label in short(heat.columns).values()], "top"), scale=alt.Scale(padding=0.03)
    )
    y = alt.Y("row:O", axis=_names(names, "left"), scale=alt.Scale(padding=0.05))
    known = alt.Chart(data([row for row in rows if row["color"] is not None]))
    every = alt.Chart(data(rows))
    layers = [
        known.mark_rect(cornerRadius=3).encode(x=x, y=y, color=alt.Color("color:N", scale=None)),
        every.mark_text(dy=-6, fontSize=14, fontWeight=600, color=LIGHT.ink).encode(x=x, y=y, text="text:N"),
        every.mark_text(dy=11, fontSize=12, color=LIGHT.ink).encode(x=x, y=y, text="note:N"),
    ]
    heading = alt.TitleParams(title, subtitle=words, offset=18)
    return layered(layers, CELL_WIDTH * len(heat.columns), CELL_HEIGHT * len(names), LIGHT, title=heading)


def _cell(row: Row, most: int) -> HeatCell:
    """Return the cell of a row of values; it names the number of tasks if that is fewer than in other columns."""
    measure = "improvement" if "improvement" in row else "rate"
    value, low, high, tasks = row[measure], row["low"], row["high"], int(row["tasks"] or 0)
    count = row["valid"] if measure == "improvement" else row["runs"]
    not_counted = int(row.get("not_counted") or 0)
    if row.get("task", "") is None:
        of, not_counted = plural(tasks, "task") if tasks else "", 0
    else:
        of = f"n {count}" if count or value is None else "none valid"
        of += f", {plural(tasks, 'task')}" if tasks < most else ""
    without = _bounds(row)
    if not isinstance(value, float) or not isinstance(low, float) or not isinstance(high, float):
        gain = row.get("gain")
        text = f"{number(gain)} {row['unit'] or ''}".strip() if isinstance(gain, float) else HeatCell().text
        return HeatCell(text, of=of, not_counted=not_counted, bounds=without)
    shade = level(value, GREATEST if measure == "improvement" else 1)
    return HeatCell(percentage(value), interval_text(low, high), of, not_counted, shade, without)


def _bounds(row: Row) -> str:
    if_failed, if_succeeded, left_out = (row.get(name) for name in ("if_failed", "if_succeeded", "left_out"))
    if not left_out or not isinstance(if_failed, float) or not isinstance(if_succeeded, float):
        return ""
    return f"{percentage(if_failed, 0)} to {percentage(if_succeeded, 0)} with {left_out} left out"


def _lines(text: str) -> list[str]:
    """Break a name into short lines: after commas, and in long parts after slashes, or else anywhere."""
    lines: list[str] = []
    for part in text.split(", "):
        pieces = [part] if len(part) <= LINE else re.split(r"(?<=/)", part)
        lines += [piece[start : start + LINE] for piece in pieces for start in range(0, len(piece), LINE)]
    return lines


def _names(names: Sequence[str], orient: Literal["top", "left"]) -> alt.Axis:
    """Return an axis of names, whose values are numbers, so that two equal names stay two."""
    listed = f"[{', '.join(quoted(name) for name in names)}][datum.value]"
    options: dict[str, Any] = {"labelExpr": f"split({listed}, '\\n')", "labelFontSize": 12, "labelLimit": 190}
    if orient == "top":
        options |= {"labelBaseline": "top", "labelPadding": 6 + LABEL * max(name.count("\n") + 1 for name in names)}
    return alt.Axis(title=None, orient=orient, domain=False, ticks=False, labelAngle=0, **options)
