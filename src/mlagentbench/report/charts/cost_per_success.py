"""Draw the cost of a success of each column, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from mlagentbench.report.charts.palette import LIGHT, Palette, looks
from mlagentbench.report.charts.style import data, layered, line_styles, quoted, short
from mlagentbench.report.experiment import LeaderboardRow
from mlagentbench.report.formatting import cost

WIDTH, ROW = 250, 34
"""The width of the plot and the height of a column's row, in pixels."""
LETTER = 7.2
"""About the width of a letter, in pixels; browsers may have wider ones than the converter measures."""


def cost_per_success(leaderboard: Sequence[LeaderboardRow], palette: Palette = LIGHT, *, columns: Iterable[str]) -> alt.LayerChart | None:
    """Draw a point with its interval for each column, the cheapest first; an interval without an end runs to the edge of the chart.

    Args:
        leaderboard: the columns; those whose cost or success is unknown, or that have no success or cost nothing, are left out.
        palette: the colours.
        columns: all columns in order, so that a column has the same colour in several charts.

    Returns:
        The chart; None with fewer than two points.
    """
    found = sorted(
        ((each, row.column) for row in leaderboard if (each := row.cost_per_success) is not None and each.value > 0),
        key=lambda pair: pair[0],
    )
    if len(found) < 2:
        return None
    names, by_column = short(column for _, column in found), looks(columns, palette)
    bounds = [bound for each, _ in found for bound in each if 0 < bound < math.inf]
    low, high = min(bounds) / 1.3, max(bounds) * 1.3
    rows: list[dict[str, Any]] = [
        {
            **{"row": place, "column": names[column], "value": each.value, "text": cost(each.value, 1)},
            **{"low": max(low, each.low), "high": min(high, each.high)},
        }
        for place, (each, column) in enumerate(found)
    ]
    longest = max(len(row["column"]) for row in rows)
    listed = f"[{', '.join(quoted(row['column']) for row in rows)}][datum.value]"
    y = alt.Y("row:O", axis=alt.Axis(title=None, domain=False, ticks=False, labelExpr=listed, labelLimit=300, minExtent=LETTER * longest))
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [value for power in powers for factor in (1, 3) if low <= (value := factor * 10.0**power) <= high]
    dollars = "'$' + format(datum.value, ',~g')"
    axis = alt.Axis(title="US dollars for a success, logarithmic", labelExpr=dollars, labelOverlap=True, values=ticks)
    x = alt.X("value:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=axis)
    look = line_styles({names[column]: by_column[column] for _, column in found}, legend=False)
    whiskers = (
        alt.Chart(data(rows)).mark_rule(strokeWidth=1.5, opacity=0.5).encode(x=alt.X("low:Q"), x2=alt.X2("high"), y=y, color=look["color"])
    )
    points = alt.Chart(data(rows)).mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=look["color"], shape=look["shape"])
    text = alt.Chart(data(rows)).mark_text(dy=-11, fontSize=11, color=palette.ink).encode(x=x, y=y, text="text:N")
    return layered([whiskers, points, text], WIDTH, ROW * len(rows), palette, right=16)
