"""Draw success rates at the paper's threshold of 10% and at others, at the last step or at the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import altair as alt

from mlagentbench.report.charts.palette import LIGHT, Palette, looks
from mlagentbench.report.charts.style import above, data, layered, line_styles, lines_and_points, short
from mlagentbench.report.charts.values import top_of
from mlagentbench.report.experiment import AtThreshold
from mlagentbench.report.wording import BEST_STEP
from mlagentbench.task.success import THRESHOLD

WIDTH, HEIGHT = 310, 230
"""The size of the plot without its axes, in pixels."""

WITH_INTERVALS = 6
"""Up to so many columns, intervals are drawn."""
ASIDE = 0.005
"""How far the marks of two columns are apart, in units of the threshold."""

At = Literal["last", "best"]


def success_by_threshold(
    found: Sequence[AtThreshold], at: At, palette: Palette = LIGHT, *, columns: Iterable[str] = ()
) -> alt.LayerChart | None:
    """Draw the success rate by the improvement that success needs, a line for each column.

    Args:
        found: the rates.
        at: whether success is judged at the last step, or at the best, which is chosen on the hidden test.
        palette: the colours.
        columns: all columns in order, including those without rates, for their names and colours.

    Returns:
        The chart; None if no column has rates, or if all are 0.
    """
    every = tuple(columns) or tuple(each.column for each in found)
    labels, by_column = short(every), looks(every, palette)
    rows: list[dict[str, Any]] = [
        {"column": labels[each.column], "threshold": each.threshold, "rate": rate.value, "low": rate.low, "high": rate.high}
        for each in found
        if (rate := each.last if at == "last" else each.best) is not None
    ]
    if not any(row["rate"] for row in rows):
        return None
    names = [label for label in labels.values() if any(row["column"] == label for row in rows)]
    present = [by_column[column] for column, label in labels.items() if label in names]
    # Marks are set side by side, so that intervals do not hide one another; the intervals of many columns would hide the lines.
    few = len(names) <= WITH_INTERVALS
    for row in rows:
        row["x"] = row["threshold"] + (ASIDE if few else 0) * (names.index(row["column"]) - (len(names) - 1) / 2)
    thresholds = sorted({each.threshold for each in found})
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, thresholds[-1] + 0.02], nice=False),
        axis=alt.Axis(title="improvement that a success needs", values=thresholds, format=".0%", grid=False),
    )
    step = "last step" if at == "last" else BEST_STEP
    y = alt.Y(
        "rate:Q",
        scale=alt.Scale(domain=[0, top_of(row["high"] for row in rows)], nice=False),
        axis=alt.Axis(**above(f"success at the {step}"), format=".0%", tickCount=5),
    )
    look = line_styles(dict(zip(names, present, strict=True)), legend=palette.legends)
    paper = alt.Chart(data([{"x": THRESHOLD}])).mark_rule(color=palette.muted, strokeDash=[2, 3]).encode(x=x)
    whiskers = alt.Chart(data(rows)).mark_rule(strokeWidth=1.5, opacity=0.35)
    intervals = [whiskers.encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high"), color=look["color"])] if few else []
    return layered([paper, *intervals, *lines_and_points(rows, x, y, look)], WIDTH, HEIGHT, palette, right=16)
