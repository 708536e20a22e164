"""Draw what success costs: the success rate against mean tokens, minutes or dollars per run, as the paper's figure of efficiency."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import altair as alt

from mlagentbench.report.charts.palette import LIGHT, Palette, SeriesStyle, ground, looks
from mlagentbench.report.charts.style import above, data, layered, line_styles, short
from mlagentbench.report.charts.values import LOG_FROM, top_of
from mlagentbench.report.experiment import LeaderboardRow
from mlagentbench.results.statistics.intervals import Interval

WIDTH, HEIGHT = 310, 230
"""The size of the plot without its axes, in pixels."""
LETTER, LINE = 6.4, 15
"""About the width of a letter of a label and the height of its line, in pixels."""

MOST_NAMES, LONGEST = 6, 26
"""Up to so many columns, and names of so many characters, points are labelled by names."""

T = TypeVar("T")
Amount = Literal["tokens", "minutes", "dollars"]
TITLES: Mapping[Amount, str] = {"tokens": "tokens a run, mean", "minutes": "minutes a run, mean", "dollars": "US dollars a run, mean"}
AMOUNTS: Mapping[Amount, Callable[[LeaderboardRow], Interval | None]] = {
    "tokens": lambda row: row.tokens,
    "minutes": lambda row: _scaled(row.seconds, 1 / 60),
    # A mean over some of the runs would not be comparable with other columns.
    "dollars": lambda row: row.cost if row.priced == row.runs else None,
}


class _Point(NamedTuple):
    column: str
    name: str
    label: str
    """The text beside the point: the column's name, or its number."""
    amount: Interval
    rate: Interval


class _LabelBox(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _LabelBox) -> float:
        """Return the area that both rectangles cover, in square pixels."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, wide) * max(0.0, high)


def on_front(leaderboard: Sequence[LeaderboardRow], amount: Amount) -> list[str]:
    """Return the columns on the Pareto front, from the least amount on: none of the others succeeds as often for less or as much."""
    known = [(each.value, row.rate.value, row.column) for row in leaderboard if row.rate and (each := AMOUNTS[amount](row)) is not None]
    return [column for _, _, column in _undominated(known, lambda each: (each[0], each[1]))]


def tradeoff(
    leaderboard: Sequence[LeaderboardRow], amount: Amount, palette: Palette = LIGHT, *, columns: Iterable[str] = ()
) -> alt.LayerChart | None:
    """Draw success rates against what runs took, a point for each column.

    Args:
        leaderboard: the columns; one whose amount is not known for all its runs is left out.
        amount: what to draw success against.
        palette: the colours.
        columns: all columns in order, so that a column has the same colour in several charts.

    Returns:
        The chart; None if there are fewer than two points.
    """
    names = short(row.column for row in leaderboard)
    labels = {column: str(number) for number, column in enumerate(names, start=1)} if numbered(leaderboard) else names
    points = [
        _Point(row.column, names[row.column], labels[row.column], found, row.rate)
        for row in leaderboard
        if (found := AMOUNTS[amount](row)) is not None and row.rate is not None
    ]
    if len(points) < 2:
        return None
    span = _span(points)
    x = alt.X(
        "x:Q", scale=alt.Scale(type="log" if span.log else "linear", domain=[span.low, span.high], nice=False), axis=_axis(amount, span)
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, span.top], nice=False),
        axis=alt.Axis(**above("success, mean over tasks"), format=".0%", tickCount=5),
    )
    by_column = looks(columns or (row.column for row in leaderboard), palette)
    layers = [_front(points, palette, x, y), *(layer for point in points for layer in _rules(point, by_column[point.column], x, y))]
    layers.append(_points(points, [by_column[point.column] for point in points], x, y, key=palette.legends and numbered(leaderboard)))
    for point, place in zip(points, _places(points, span), strict=True):
        layers += _label(point, place, palette, x, y)
    return layered(layers, WIDTH, HEIGHT, palette, right=16)


def numbered(leaderboard: Sequence[LeaderboardRow]) -> bool:
    """Return whether points are labelled by numbers, since many or long names would cover one another."""
    names = short(row.column for row in leaderboard)
    return len(names) > MOST_NAMES or max(map(len, names.values()), default=0) > LONGEST


def left_out(leaderboard: Sequence[LeaderboardRow], amount: Amount) -> list[str]:
    """Return the columns that have a rate but are not drawn, since their amount is unknown."""
    return [row.column for row in leaderboard if row.rate is not None and AMOUNTS[amount](row) is None]


class _Span(NamedTuple):
    """The range of the axes: amounts from `low` to `high`, rates from 0 to `top`."""

    low: float
    high: float
    log: bool
    top: float

    def across(self, value: float) -> float:
        """Return the position of an amount, in pixels from the left."""
        if self.log:
            return WIDTH * math.log(value / self.low) / math.log(self.high / self.low)
        return WIDTH * (value - self.low) / (self.high - self.low)

    def down(self, rate: float) -> float:
        """Return the position of a rate, in pixels from the top."""
        return HEIGHT * (1 - rate / self.top)


def _span(points: Sequence[_Point]) -> _Span:
    top = top_of(point.rate.high for point in points)
    lows, highs = [point.amount.low for point in points], [point.amount.high for point in points]
    if min(lows) > 0 and max(highs) / min(lows) >= LOG_FROM:
        return _Span(min(lows) / 1.5, max(highs) * 1.5, log=True, top=top)
    return _Span(0.0, max(highs) * 1.08 or 1.0, log=False, top=top)


def _axis(amount: Amount, span: _Span) -> alt.Axis:
    short = "format(datum.value, '~s')" if amount == "tokens" else "format(datum.value, ',~g')"
    return alt.Axis(
        title=TITLES[amount] + (", logarithmic" if span.log else ""), tickCount=6, grid=False, labelExpr=short, labelOverlap=True
    )


def _front(points: Sequence[_Point], palette: Palette, x: alt.X, y: alt.Y) -> alt.Chart:
    """Draw the Pareto front: the success that some column reaches for each amount or less."""
    front = _undominated(points, lambda point: (point.amount.value, point.rate.value))
    rows = [{"x": point.amount.value, "y": point.rate.value} for point in front]
    mark = alt.Chart(data(rows)).mark_line(interpolate="step-after", color=palette.muted, strokeDash=[3, 3], strokeWidth=1.25)
    drawn: alt.Chart = mark.encode(x=x, y=y)
    return drawn


def _undominated(found: Iterable[T], values: Callable[[T], tuple[float, float]]) -> list[T]:
    """Return what no other has more success than for less or as much, by amount."""
    front: list[T] = []
    for each in sorted(found, key=lambda each: (values(each)[0], -values(each)[1])):
        if not front or values(each)[1] > values(front[-1])[1]:
            front.append(each)
    return front


def _scaled(interval: Interval | None, factor: float) -> Interval | None:
    return None if interval is None else Interval(*(bound * factor for bound in interval))


def _rules(point: _Point, look: SeriesStyle, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Draw the two intervals of a point."""
    row = {"x": point.amount.value, "y": point.rate.value}
    across = {**row, "x": point.amount.low, "x2": point.amount.high}
    upright = {**row, "y": point.rate.low, "y2": point.rate.high}
    rule: dict[str, Any] = {"color": look.color, "strokeWidth": 1.5, "opacity": 0.5}
    return [
        alt.Chart(data([across])).mark_rule(**rule).encode(x=x, y=y, x2=alt.X2("x2")),
        alt.Chart(data([upright])).mark_rule(**rule).encode(x=x, y=y, y2=alt.Y2("y2")),
    ]


def _points(points: Sequence[_Point], by_point: Sequence[SeriesStyle], x: alt.X, y: alt.Y, *, key: bool) -> alt.Chart:
    """Draw the points at the means, and with `key` a legend that names them."""
    rows: list[dict[str, Any]] = [
        {"x": point.amount.value, "y": point.rate.value, "column": f"{point.label}  {point.name}"} for point in points
    ]
    look = line_styles({row["column"]: style for row, style in zip(rows, by_point, strict=True)}, legend=key)
    mark = alt.Chart(data(rows)).mark_point(filled=True, size=70, opacity=1)
    found: alt.Chart = mark.encode(x=x, y=y, color=look["color"], shape=look["shape"])
    return found


class _Place(NamedTuple):
    """The position of a label relative to its point, in pixels."""

    dx: int
    dy: int
    align: Literal["left", "right", "center"]


PLACES = (
    *(_Place(9, -10, "left"), _Place(-9, -10, "right"), _Place(9, 11, "left"), _Place(-9, 11, "right")),
    *(_Place(9, -25, "left"), _Place(-9, -25, "right"), _Place(9, 26, "left"), _Place(-9, 26, "right")),
    *(_Place(0, -40, "center"), _Place(0, 41, "center")),
)
"""The positions that are tried for a label: the first of those that cover least is chosen."""


def _places(points: Sequence[_Point], span: _Span) -> list[_Place]:
    """Choose a position for each label, from left to right, where it covers as little of other labels and points as possible."""
    taken = [box for point in points for box in _crosshair(point, span)]
    found: dict[int, _Place] = {}
    frame = _LabelBox(0, -8, WIDTH + 12, HEIGHT)
    for number, point in sorted(enumerate(points), key=lambda each: each[1].amount.value):
        boxes = [_box(point, place, span) for place in PLACES]
        # The area outside the chart counts as much as the area that covers something else.
        costs = [
            sum(box.overlap(other) for other in taken) + ((box.right - box.left) * (box.bottom - box.top) - box.overlap(frame))
            for box in boxes
        ]
        best = min(range(len(PLACES)), key=lambda place: (costs[place], place))
        found[number] = PLACES[best]
        taken.append(boxes[best])
    return [found[number] for number in range(len(points))]


def _crosshair(point: _Point, span: _Span) -> list[_LabelBox]:
    """Return the rectangles that a point and its intervals cover."""
    across, down = span.across(point.amount.value), span.down(point.rate.value)
    return [
        _LabelBox(across - 6, down - 6, across + 6, down + 6),
        _LabelBox(span.across(point.amount.low), down - 1, span.across(point.amount.high), down + 1),
        _LabelBox(across - 1, span.down(point.rate.high), across + 1, span.down(point.rate.low)),
    ]


def _box(point: _Point, place: _Place, span: _Span) -> _LabelBox:
    wide = LETTER * len(point.label)
    at = span.across(point.amount.value) + place.dx
    left = {"left": at, "right": at - wide, "center": at - wide / 2}[place.align]
    middle = span.down(point.rate.value) + place.dy
    return _LabelBox(left, middle - LINE / 2, left + wide, middle + LINE / 2)


def _label(point: _Point, place: _Place, palette: Palette, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Write a label beside its point, on a halo that keeps it legible over lines."""
    halo = ground(palette)
    row = {"x": point.amount.value, "y": point.rate.value, "text": point.label}
    options: dict[str, Any] = {"align": place.align, "baseline": "middle", "dx": place.dx, "dy": place.dy, "fontSize": 12}
    marks = [
        alt.Chart(data([row])).mark_text(color=halo, stroke=halo, strokeWidth=4, strokeJoin="round", **options),
        alt.Chart(data([row])).mark_text(color=palette.ink, **options),
    ]
    return [mark.encode(x=x, y=y, text=alt.Text("text:N")) for mark in marks]
