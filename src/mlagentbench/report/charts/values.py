"""Make the axes of charts of scores: the range, the scale, and ticks in the metric's unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import altair as alt

from mlagentbench.report.charts.style import above, quoted
from mlagentbench.report.formatting import SECOND_UNITS
from mlagentbench.report.wording import direction_words, is_time
from mlagentbench.run_spec import RunInfo

LOG_FROM = 30
"""From this ratio of the largest to the smallest value on, the scale is logarithmic."""


PLAIN = "abs(datum.value) >= 1e4 && abs(datum.value) < 1e9 ? format(datum.value, ',.0f') : format(datum.value, '~g')"
"""The Vega expression that formats a number on an axis."""


class Range(NamedTuple):
    """The range of a chart's values, and whether its scale is logarithmic."""

    low: float
    high: float
    log: bool


def value_range(values: Sequence[float]) -> Range:
    """Return a range a little wider than these values; logarithmic if they are positive and differ by a factor of `LOG_FROM`."""
    low, high = min(values), max(values)
    if low > 0 and high / low >= LOG_FROM:
        return Range(low / 1.6, high * 1.8, log=True)
    margin = (high - low) * 0.12 or abs(high) * 0.1 or 1.0
    return Range(low - margin, high + margin, log=False)


def value_scale(span: Range) -> alt.Scale:
    """Return the scale of a range."""
    return alt.Scale(type="log" if span.log else "linear", domain=[span.low, span.high], nice=False, zero=False, clamp=True)


def value_axis(info: RunInfo, span: Range, ticks: int = 5) -> alt.Axis:
    """Return the axis of a metric, with its name above it.

    A logarithmic axis has ticks at powers of ten, and at three times them if there are two powers at most. Times are labelled with units.
    """
    unit = f" ({info.unit})" if info.unit and not is_time(info.unit) else ""
    scale = ", logarithmic" if span.log else ""
    title = f"{info.metric.replace('_', ' ')}{unit}{scale}: {direction_words(info.direction)}"
    options: dict[str, Any] = {"labelExpr": _seconds_label(info.unit, span) if is_time(info.unit) else PLAIN}
    if span.log:
        powers = range(math.ceil(math.log10(span.low)), math.floor(math.log10(span.high)) + 1)
        factors = (1,) if len(powers) > 2 else (1, 3)
        values = [factor * 10.0**power for power in (powers.start - 1, *powers) for factor in factors][
            :: math.ceil(len(powers) / (ticks + 2))
        ]
        options["values"] = [value for value in values if span.low <= value <= span.high]
    else:
        options["tickCount"] = ticks
    return alt.Axis(**above(title), **options)


def top_of(rates: Iterable[float]) -> float:
    """Return the upper end of an axis of rates: the greatest plus 0.02, rounded up to a tenth, at least 0.2 and at most 1."""
    return min(1.0, max(0.2, math.ceil(10 * max(rates) + 0.2) / 10))


def step_axis(steps: int, ticks: int = 10) -> alt.Axis:
    """Return an axis of whole steps."""
    return alt.Axis(title="step", tickMinStep=1, tickCount=min(max(steps, 1), ticks), format="d", grid=False)


def _seconds_label(unit: str, span: Range) -> str:
    """Return the expression that formats times: each in a unit of its size on a logarithmic scale, all in one unit on a linear scale."""
    per = unit[1:]
    sizes: Sequence[tuple[float, str]] = SECOND_UNITS
    if not span.log:
        sizes = (next(((size, name) for size, name in sizes if span.high >= size), sizes[-1]),)
    # The factor is there because computed ticks miss their power of ten by a rounding error.
    cases = [
        f"abs(datum.value) >= {size * 0.999} ? format(datum.value / {size}, '~g') + {quoted(f' {name}{per}')} : "
        for size, name in sizes[:-1]
    ]
    size, name = sizes[-1]
    return f"datum.value == 0 ? '0' : {''.join(cases)}format(datum.value / {size}, '~g') + {quoted(f' {name}{per}')}"
