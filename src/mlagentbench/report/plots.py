"""Charts, as pure functions from records to Altair charts, and their SVG without a browser.

A chart takes its colours from a `Palette`: fixed ones for files, or `THEMED`, whose colours are variables of the page that shows the SVG,
so that one drawing serves the light and the dark page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import altair as alt
import vl_convert

from mlagentbench.grading.success import THRESHOLD
from mlagentbench.records import Baseline, RunInfo, StepScore
from mlagentbench.report.text import SECOND_UNITS, plural, quantity, visible
from mlagentbench.report.words import change, direction_words, is_time, threshold_value

LOG_FROM = 30
"""Ratio of the largest to the smallest value from which a logarithmic scale is used."""

CROSS = "M-1,-1L1,1M-1,1L1,-1"
_LOADER_BASE = "https://vega.github.io/vega-datasets/"
"""Vega resolves every address against its own site, also one within the page."""

WIDTH, HEIGHT = 400, 215
"""Of the plot alone, in pixels."""


class Palette(NamedTuple):
    """The colours of a chart."""

    ink: str
    muted: str
    grid: str
    line: str
    baseline: str
    zone: str
    bad: str
    background: str


LIGHT = Palette("#1f2328", "#5c636d", "#e6e4df", "#2f5bb7", "#5c636d", "#1a7f4b", "#b3261e", "#ffffff")
DARK = Palette("#e8e6e1", "#a2a8b1", "#33373e", "#8fb0ff", "#a2a8b1", "#5fca91", "#ff9a8f", "#16181d")
THEMED = Palette(
    "var(--ink)", "var(--muted)", "var(--grid)", "var(--line)", "var(--muted)", "var(--good)", "var(--bad)", background="transparent"
)


class _Range(NamedTuple):
    """The values that a chart spans."""

    low: float
    high: float
    log: bool


def score_over_steps(
    info: RunInfo,
    scores: Sequence[StepScore],
    baseline: Baseline | None,
    steps: int,
    palette: Palette = LIGHT,
    link: Callable[[int], str] | None = None,
) -> alt.LayerChart | None:
    """The score after each step, against the baseline and what a success needs.

    Args:
        info: gives the metric, its unit and its direction.
        scores: the submission after each step that was graded; those without a valid score are crosses at the foot.
        baseline: the starter's score.
        steps: how many steps the run had: the length of the axis.
        palette: the colours.
        link: the address that a step's point leads to.

    Returns:
        The chart; None where there is no value to draw.
    """
    # The converter aborts the whole process on a character that XML forbids.
    info = info.model_copy(update={"metric": visible(info.metric), "unit": visible(info.unit)})
    baseline = baseline if baseline and math.isfinite(baseline.value) else None
    scores = [score if math.isfinite(score.value or 0.0) else score.model_copy(update={"value": None}) for score in scores]
    valid = [score for score in scores if score.value is not None]
    values = [score.value for score in valid if score.value is not None]
    threshold = threshold_value(baseline.value, info.direction) if baseline else None
    drawn = [*values, *([baseline.value] if baseline else []), *([threshold] if threshold is not None else [])]
    if not values:
        return None
    span = _range(drawn)
    x = alt.X("step:Q", scale=alt.Scale(domain=[0, max(steps, 1)], nice=False), axis=_step_axis(steps))
    y = alt.Y("value:Q", scale=_scale(span), axis=_value_axis(info, span))
    layers: list[alt.Chart] = []
    if baseline and threshold is not None:
        layers += _references(info, baseline.value, threshold, span, steps, y, palette)
    layers += _course(scores, x, y, palette, link)
    layers.append(_last_label(valid[-1], steps, info.unit, x, y, palette))
    return alt.LayerChart(
        layer=layers,
        width=WIDTH,
        height=HEIGHT,
        background=palette.background,
        padding={"left": 6, "right": 30, "top": 6, "bottom": 4},
        config=_config(palette),
    )


def describe_scores(info: RunInfo, scores: Sequence[StepScore], baseline: Baseline | None) -> str:
    """What the chart of `score_over_steps` shows, for who cannot see it."""
    valid = [score for score in scores if score.value is not None and math.isfinite(score.value)]
    if not valid:
        return "No step has a valid score."
    sign = min if info.direction == "minimize" else max
    best = sign(valid, key=lambda score: score.value or 0.0)
    last = valid[-1]
    assert best.value is not None and last.value is not None
    against = ""
    if baseline:
        against = f", against a baseline of {quantity(baseline.value, info.unit)}: "
        against += change(last.value, baseline.value, info.unit, info.direction)
    sentences = [f"Last: {quantity(last.value, info.unit)} after step {last.step}{against}."]
    if best.value != last.value:
        sentences.append(f"Best: {quantity(best.value, info.unit)} after step {best.step}.")
    if len(valid) < len(scores):
        sentences.append(f"{plural(len(scores) - len(valid), 'graded step')} had no valid score.")
    return " ".join(sentences) + (" The shaded zone is a success." if baseline else "")


def to_svg(chart: alt.LayerChart) -> str:
    """A chart as SVG, drawn in this process: no browser, no network. Addresses that begin with `#` stay within the page."""
    svg = str(vl_convert.vegalite_to_svg(chart.to_dict(validate=False)))
    return svg.replace(f'<a xlink:href="{_LOADER_BASE}#', '<a tabindex="-1" href="#')


def _references(info: RunInfo, baseline: float, threshold: float, span: _Range, steps: int, y: alt.Y, palette: Palette) -> list[alt.Chart]:
    """The baseline, the threshold, and the zone of success beyond it, named in the right margin."""
    up = info.direction == "maximize"
    edge = span.high if up else span.low
    zone = alt.Chart(_data([{"value": threshold, "edge": edge}])).mark_rect(color=palette.zone, opacity=0.09).encode(y=y, y2=alt.Y2("edge"))
    border = alt.Chart(_data([{"value": threshold}])).mark_rule(color=palette.zone, strokeDash=[2, 3]).encode(y=y)
    rule = alt.Chart(_data([{"value": baseline}])).mark_rule(color=palette.baseline, strokeDash=[6, 4], strokeWidth=1.25).encode(y=y)
    # Each name stands on its own side of its line, since the two lines may be a few pixels apart.
    away = -1 if up else 1
    names = [
        _margin_label(f"baseline {quantity(baseline, info.unit)}", palette.muted, y, -7 * away, baseline),
        _margin_label(f"{THRESHOLD * 100:g} % better", palette.zone, y, 7 * away, threshold),
    ]
    return [zone, border, rule, *names]


def _course(scores: Sequence[StepScore], x: alt.X, y: alt.Y, palette: Palette, link: Callable[[int], str] | None) -> list[alt.Chart]:
    """The scores themselves: a line that breaks where a step has none, a point a step, the last one ringed."""
    rows = [{"step": score.step, "value": score.value, **({"link": link(score.step)} if link else {})} for score in scores]
    valid = [row for row in rows if row["value"] is not None]
    invalid = [row for row in rows if row["value"] is None]
    href = {"href": alt.Href("link:N")} if link else {}
    line = alt.Chart(_data(rows)).mark_line(interpolate="step-after", color=palette.line, strokeWidth=2, opacity=0.75).encode(x=x, y=y)
    points = alt.Chart(_data(valid)).mark_circle(color=palette.line, size=34, opacity=1).encode(x=x, y=y, **href)
    ring = alt.Chart(_data(valid[-1:])).mark_point(color=palette.line, size=150, strokeWidth=2, opacity=1).encode(x=x, y=y)
    layers = [line, points, ring]
    if invalid:
        cross = alt.Chart(_data(invalid)).mark_point(shape=CROSS, color=palette.bad, size=46, strokeWidth=1.75, opacity=1)
        layers.append(cross.encode(x=x, y=alt.value(HEIGHT - 9), **href))
        layers.append(_margin_label("no valid score", palette.bad, alt.value(HEIGHT - 9)))
    return layers


def _last_label(score: StepScore, steps: int, unit: str, x: alt.X, y: alt.Y, palette: Palette) -> alt.Chart:
    """The last score's value, written beside its point on the side where there is room."""
    assert score.value is not None
    row = {"step": score.step, "value": score.value, "text": quantity(score.value, unit)}
    left = score.step > steps / 4
    mark = alt.Chart(_data([row])).mark_text(
        align="right" if left else "left", dx=-10 if left else 10, dy=-13, color=palette.ink, fontSize=14, fontWeight=600
    )
    label: alt.Chart = mark.encode(x=x, y=y, text=alt.Text("text:N"))
    return label


def _margin_label(text: str, color: str, y: Any, dy: int = 0, value: float = 0.0) -> alt.Chart:
    """A name in the right margin, beside what it names."""
    mark = alt.Chart(_data([{"value": value, "text": text}])).mark_text(
        align="left", baseline="middle", dx=12, dy=dy, color=color, fontSize=12
    )
    label: alt.Chart = mark.encode(x=alt.value(WIDTH), y=y, text=alt.Text("text:N"))
    return label


def _range(values: Sequence[float]) -> _Range:
    low, high = min(values), max(values)
    if low > 0 and high / low >= LOG_FROM:
        return _Range(low / 1.6, high * 1.8, log=True)
    margin = (high - low) * 0.12 or abs(high) * 0.1 or 1.0
    return _Range(low - margin, high + margin, log=False)


def _scale(span: _Range) -> alt.Scale:
    return alt.Scale(type="log" if span.log else "linear", domain=[span.low, span.high], nice=False, zero=False, clamp=True)


def _step_axis(steps: int) -> alt.Axis:
    return alt.Axis(title="step", tickMinStep=1, tickCount=min(max(steps, 1), 10), format="d", grid=False)


def _value_axis(info: RunInfo, span: _Range) -> alt.Axis:
    """Ticks at the decades of a logarithmic scale; labels of times with their unit, the axis named above it."""
    unit = f" ({info.unit})" if info.unit and not is_time(info.unit) else ""
    scale = ", logarithmic" if span.log else ""
    options: dict[str, Any] = {"title": f"{info.metric.replace('_', ' ')}{unit}{scale}: {direction_words(info.direction)}"}
    options["labelExpr"] = _seconds_label(info.unit, span) if is_time(info.unit) else "format(datum.value, '~g')"
    if span.log:
        powers = range(math.ceil(math.log10(span.low)), math.floor(math.log10(span.high)) + 1)
        factors = (1,) if len(powers) > 2 else (1, 3)
        values = [factor * 10.0**power for power in (powers.start - 1, *powers) for factor in factors][:: math.ceil(len(powers) / 7)]
        options["values"] = [value for value in values if span.low <= value <= span.high]
    else:
        options["tickCount"] = 5
    return alt.Axis(titleAngle=0, titleAlign="left", titleAnchor="start", titleX=0, titleY=-14, titleBaseline="bottom", **options)


def _seconds_label(unit: str, span: _Range) -> str:
    """Ticks in seconds or parts of them: each in its own on a logarithmic scale, all in one on a linear scale."""
    per = unit[1:]
    sizes: Sequence[tuple[float, str]] = SECOND_UNITS
    if not span.log:
        sizes = (next(((size, name) for size, name in sizes if span.high >= size), sizes[-1]),)
    # Computed ticks miss their decade by a rounding error, hence the factor.
    cases = [
        f"abs(datum.value) >= {size * 0.999} ? format(datum.value / {size}, '~g') + {json.dumps(f' {name}{per}')} : "
        for size, name in sizes[:-1]
    ]
    size, name = sizes[-1]
    return f"datum.value == 0 ? '0' : {''.join(cases)}format(datum.value / {size}, '~g') + {json.dumps(f' {name}{per}')}"


def _data(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=list(rows))


def _config(palette: Palette) -> alt.Config:
    axis = alt.AxisConfig(
        labelColor=palette.muted,
        labelFontSize=12,
        labelPadding=6,
        titleColor=palette.muted,
        titleFontSize=12,
        titleFontWeight="normal",
        titlePadding=8,
        gridColor=palette.grid,
        domainColor=palette.grid,
        tickColor=palette.grid,
    )
    # The page names the picture itself: `aria` off.
    return alt.Config(aria=False, font="system-ui, sans-serif", axis=axis, view=alt.ViewConfig(stroke=None))
