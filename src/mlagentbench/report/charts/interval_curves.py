"""Draw curves with bands of intervals: what columns reach by budget, by attempts, by improvement, and by dependent change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from mlagentbench.report.charts.palette import LIGHT, Palette, looks
from mlagentbench.report.charts.style import above, data, layered, line_styles, lines_and_points, short
from mlagentbench.results.audited import PastChange
from mlagentbench.results.budget import AtAttempts, AtBudget, Spent
from mlagentbench.results.profiles import ProfilePoint
from mlagentbench.results.statistics.intervals import Interval
from mlagentbench.task.success import THRESHOLD

WIDTH, HEIGHT = 310, 210
"""The size of the plot without its axes, in pixels."""
WITH_BANDS = 6
"""Up to so many columns, intervals are drawn; more bands would hide the lines."""
MOST_LEVEL = 1.0
"""The greatest improvement on the axis of performance profiles: twice the baseline."""

Measure = Literal["success", "improvement"]
SPENT: Mapping[Spent, str] = {
    "steps": "steps that a run may take",
    "tokens": "tokens that a run may use",
    "dollars": "US dollars that a run may cost",
    "hours": "hours that a run may take",
}


class CurvePoint(NamedTuple):
    """A point of a column's curve."""

    column: str
    x: float
    y: Interval


def by_budget(
    found: Sequence[AtBudget],
    spent: Spent,
    measure: Measure = "success",
    palette: Palette = LIGHT,
    *,
    columns: Iterable[str],
) -> alt.LayerChart | None:
    """Draw success rates or improvements by what a run may spend.

    Args:
        found: the values.
        spent: the kind of budget.
        measure: what to draw.
        palette: the colours.
        columns: all columns in order, so that a column has the same colour in several charts.

    Returns:
        The chart; None with fewer than three budgets, or if nothing is ever reached.
    """
    of_kind = [each for each in found if each.spent == spent]
    points = [
        CurvePoint(each.column, each.budget, value)
        for each in of_kind
        if (value := each.rate if measure == "success" else each.improvement) is not None
    ]
    ticks = [budget for budget in sorted({point.x for point in points}) if f"{budget:e}"[0] in "125" and f"{budget:e}"[2] == "0"]
    short_numbers = "format(datum.value, datum.value >= 1000 ? '~s' : '~g')"
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(title=SPENT[spent], grid=False, labelExpr=short_numbers, labelOverlap=True, values=ticks),
    )
    return _curves(points, x, "success, mean over tasks" if measure == "success" else "improvement, mean over tasks", palette, columns)


def by_attempts(
    found: Sequence[AtAttempts], measure: Measure = "success", palette: Palette = LIGHT, *, columns: Iterable[str]
) -> alt.LayerChart | None:
    """Draw what the best of k runs reaches: the probability that one succeeds (pass@k), or the expected improvement of the best.

    Returns:
        The chart; None if there are fewer than three numbers of attempts, or if nothing is ever reached.
    """
    points = [
        CurvePoint(each.column, each.k, value)
        for each in found
        if (value := each.pass_at_k if measure == "success" else each.best_of_k) is not None
    ]
    ks = sorted({point.x for point in points})
    x = alt.X(
        "x:Q",
        scale=alt.Scale(nice=False),
        axis=alt.Axis(title="k, attempts at each task", grid=False, format="d", tickMinStep=1, values=ks[:: max(1, len(ks) // 8)]),
    )
    title = "pass@k: success of at least one of k" if measure == "success" else "improvement of the best of k"
    return _curves(points, x, title, palette, columns)


def by_change(found: Sequence[PastChange], palette: Palette = LIGHT, *, columns: Iterable[str]) -> alt.LayerChart | None:
    """Draw where plans break: the share of runs that got past each of several dependent changes.

    Returns:
        The chart; None for fewer than three changes, or if no run got past the first.
    """
    points = [CurvePoint(each.column, each.change, each.share) for each in found]
    axis = alt.Axis(title="change, each needs those before it", grid=False, format="d", tickMinStep=1)
    return _curves(points, alt.X("x:Q", scale=alt.Scale(nice=False), axis=axis), "runs that got past it", palette, columns)


def profile_curves(found: Sequence[ProfilePoint], palette: Palette = LIGHT, *, columns: Iterable[str]) -> alt.LayerChart | None:
    """Draw performance profiles: the share of runs that improve by more than each level, up to `MOST_LEVEL`.

    Returns:
        The chart; None if no run has a valid submission.
    """
    points = [CurvePoint(each.column, each.level, each.share) for each in found if each.level <= MOST_LEVEL]
    x = alt.X(
        "x:Q", scale=alt.Scale(nice=False), axis=alt.Axis(title="improvement over the starter", grid=False, format="+.0%", tickCount=6)
    )
    return _curves(points, x, "runs that improve by more", palette, columns, rule=THRESHOLD)


def _curves(
    points: Sequence[CurvePoint], x: alt.X, title: str, palette: Palette, columns: Iterable[str], rule: float | None = None
) -> alt.LayerChart | None:
    """Draw a line for each column over the band of its intervals, and a dotted rule at some x; None where there is nothing to see."""
    if len({point.x for point in points}) < 3 or not any(point.y.value for point in points):
        return None
    by_column = looks(columns, palette)
    labels = short(by_column)
    present = [column for column in by_column if any(point.column == column for point in points)]
    look = line_styles({labels[column]: by_column[column] for column in present}, legend=palette.legends)
    rows: list[dict[str, Any]] = [
        {"column": labels[point.column], "x": point.x, "y": point.y.value, "low": point.y.low, "high": point.y.high} for point in points
    ]
    y = alt.Y("y:Q", scale=alt.Scale(nice=True), axis=alt.Axis(**above(title), format=".0%", tickCount=5))
    layers: list[alt.Chart] = []
    if rule is not None:
        layers.append(alt.Chart(data([{"x": rule}])).mark_rule(color=palette.muted, strokeDash=[2, 3]).encode(x=x))
    if len(present) <= WITH_BANDS:
        bands = alt.Chart(data(rows)).mark_area(opacity=0.12)
        layers.append(bands.encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high"), color=look["color"]))
    return layered([*layers, *lines_and_points(rows, x, y, look, 26)], WIDTH, HEIGHT, palette, right=16)
