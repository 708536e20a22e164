"""Make heat maps of success and improvement by task and column, as the paper's Tables 3 and 4."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from mlagentbench.report.charts.style import LIGHT, Palette, config, data, name, quoted, short
from mlagentbench.report.text import MINUS, plural
from mlagentbench.results import statistics
from mlagentbench.results.cells import Cell
from mlagentbench.results.compare import TaskGroup
from mlagentbench.results.statistics import Interval

CELL_WIDTH, CELL_HEIGHT = 104, 44
"""The size of a cell, in pixels."""
LINE = 16
"""The length of a line of a column's name, in characters."""
LABEL = 15
"""The height of such a line, in pixels."""
AVERAGE = "average"
LEVELS = 10
"""How many levels of colour there are on either side of 0."""
GREATEST = 0.5
"""The improvement, either way, from which on the colour stays the same."""
NEUTRAL, GOOD, BAD = "#f5f6f6", "#63bb8d", "#e79a55"

Measure = Literal["success", "improvement"]
TITLES: Mapping[Measure, tuple[str, str]] = {
    "success": (
        "Success, % of runs",
        "With 95% intervals and the number of runs; averages over tasks.",
    ),
    "improvement": (
        "Improvement over the baseline at the last step, %",
        "Means of the valid submissions with 95% intervals, and their number; a cell without one counts 0 in the average.",
    ),
}


class HeatCell(NamedTuple):
    """A cell of a heat map, with its number as a fraction."""

    value: float | None
    """None without a counted run."""
    interval: Interval | None
    of: str
    """What the number is computed from, such as `n 8`."""
    apart: int = 0
    """How many runs are not counted."""

    @property
    def shown(self) -> str:
        """The number in percent, with as many decimals as the paper's tables."""
        return "—" if self.value is None else hundredth(self.value)

    @property
    def bounds(self) -> str:
        """The interval in whole percent; empty where there is none."""
        return "" if self.interval is None else between(self.interval)


class HeatMap(NamedTuple):
    """A heat map: a cell for each row (a task, or a group of tasks) and column, and the averages of the columns."""

    measure: Measure
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, HeatCell]]
    averages: Mapping[str, HeatCell]


def hundredth(value: float) -> str:
    """Format a fraction in percent, with one decimal unless that is 0: `62.5`, `50`; without decimals from 1,000 % on."""
    shown = f"{100 * value:,.1f}" if abs(value) < 10 else f"{100 * value:,.0f}"
    shown = shown.removesuffix(".0")
    return "0" if shown == "-0" else shown.replace("-", MINUS)


def between(interval: Interval) -> str:
    """Format an interval's bounds in whole percent: `31 to 86`."""
    low, high = (f"{round(100 * bound):,}".replace("-", MINUS) for bound in (interval.low, interval.high))
    return f"{low} to {high}"


def level(value: float, measure: Measure) -> int:
    """Return the level of colour of a number, from -10 to 10; 0 only for numbers that are nearly 0."""
    share = value if measure == "success" else value / GREATEST
    reached = min(LEVELS, math.ceil(abs(share) * LEVELS - 0.05))
    return reached if share > 0 else -reached


def tint(level: int) -> str:
    """Return the colour of a level for a white background."""
    ends = [[int(color[place : place + 2], 16) for place in (1, 3, 5)] for color in (NEUTRAL, GOOD if level > 0 else BAD)]
    mixed = [round(one + (other - one) * abs(level) / LEVELS) for one, other in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def heat(measure: Measure, columns: Mapping[str, Mapping[str, Cell]]) -> HeatMap:
    """Return the heat map of success or improvement by task."""
    square = _success if measure == "success" else _improvement
    tasks = list(dict.fromkeys(task for by_task in columns.values() for task in by_task))
    rows = {task: {column: square(by_task.get(task)) for column, by_task in columns.items()} for task in tasks}
    averages = {column: _average(by_task, measure) for column, by_task in columns.items()}
    return HeatMap(measure, tuple(columns), rows, averages)


def heat_of_groups(groups: Mapping[str, Mapping[str, TaskGroup]], columns: Sequence[str]) -> HeatMap:
    """Return the heat map of success by groups of tasks, in which each run counts once."""
    rows = {}
    for group, by_column in groups.items():
        most = max(len(each.tasks) for each in by_column.values())
        rows[group] = {column: _pooled(by_column.get(column), most) for column in columns}
    return HeatMap("success", tuple(columns), rows, {})


def heat_map(heat: HeatMap, palette: Palette = LIGHT, *, title: str = "", words: str = "") -> alt.LayerChart | None:
    """Draw a heat map for a file; the page shows heat maps as HTML tables.

    Returns:
        The chart; None if no cell has a number.
    """
    rows = [
        {
            "row": place,
            "column": number,
            "color": None if square.value is None else tint(level(square.value, heat.measure)),
            "text": square.shown,
            "note": ", ".join(part for part in (square.bounds, square.of) if part),
        }
        for place, by_column in enumerate([*heat.rows.values(), *([heat.averages] if heat.averages else [])])
        for number, square in enumerate(by_column.values())
    ]
    if not any(row["color"] is not None for row in rows):
        return None
    names = [name(row) for row in heat.rows] + ([AVERAGE] if heat.averages else [])
    own_title, own_words = TITLES[heat.measure]
    x = alt.X(
        "column:O", axis=_names(["\n".join(_lines(label)) for label in short(heat.columns).values()], "top"), scale=alt.Scale(padding=0.03)
    )
    y = alt.Y("row:O", axis=_names(names, "left"), scale=alt.Scale(padding=0.05))
    known = alt.Chart(data([row for row in rows if row["color"] is not None]))
    every = alt.Chart(data(rows))
    return alt.LayerChart(
        layer=[
            known.mark_rect(cornerRadius=3).encode(x=x, y=y, color=alt.Color("color:N", scale=None)),
            every.mark_text(dy=-6, fontSize=14, fontWeight=600, color=palette.ink).encode(x=x, y=y, text="text:N"),
            every.mark_text(dy=11, fontSize=10.5, color=palette.ink).encode(x=x, y=y, text="note:N"),
        ],
        width=CELL_WIDTH * len(heat.columns),
        height=CELL_HEIGHT * len(names),
        background=palette.background,
        padding=10,
        config=config(palette),
        title=alt.TitleParams(title or own_title, subtitle=words or own_words, offset=18),
    )


def _success(cell: Cell | None) -> HeatCell:
    if cell is None:
        return HeatCell(None, None, "")
    rate, apart = cell.rate, sum(cell.apart.values())
    return HeatCell(rate and rate.value, rate, f"n {len(cell.counted)}", apart)


def _pooled(group: TaskGroup | None, most: int) -> HeatCell:
    """Return the cell of a group's runs; it names the number of tasks if that is fewer than in other columns."""
    if group is None or group.pooled is None:
        return HeatCell(None, None, "")
    fewer = f", {plural(len(group.tasks), 'task')}" if len(group.tasks) < most else ""
    return HeatCell(group.pooled.value, group.pooled, f"n {group.runs}{fewer}")


def _improvement(cell: Cell | None) -> HeatCell:
    if cell is None or not cell.counted:
        return HeatCell(None, None, "n 0" if cell else "", sum(cell.apart.values()) if cell else 0)
    found = cell.improvement
    if found is None:
        return HeatCell(0.0, None, "none valid", sum(cell.apart.values()))
    return HeatCell(found.value, found if len(cell.improvements) > 1 else None, f"n {len(cell.improvements)}", sum(cell.apart.values()))


def _average(by_task: Mapping[str, Cell], measure: Measure) -> HeatCell:
    """Return the mean over the tasks that have counted runs, as the paper's averages."""
    cells = [cell for cell in by_task.values() if cell.counted]
    if measure == "success":
        found = statistics.average_rate([(cell.successes, len(cell.counted)) for cell in cells])
    else:
        found = statistics.average([cell.improvements or [0.0] * len(cell.counted) for cell in cells])
    return HeatCell(found and found.value, found, plural(len(cells), "task") if cells else "")


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
    options: dict[str, Any] = {"labelExpr": f"split({listed}, '\\n')", "labelFontSize": 12, "labelLimit": 260}
    if orient == "top":
        options |= {"labelBaseline": "top", "labelPadding": 6 + LABEL * max(name.count("\n") + 1 for name in names)}
    return alt.Axis(title=None, orient=orient, domain=False, ticks=False, labelAngle=0, **options)
