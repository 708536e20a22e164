"""Draw the chart of a task: the scores of all its runs after each step, with the baseline and the threshold of success."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import altair as alt

from mlagentbench.report.charts.palette import LIGHT, Palette, SeriesStyle, looks
from mlagentbench.report.charts.style import data, layered, line_styles, margin_label, name, references, short
from mlagentbench.report.charts.values import step_axis, value_axis, value_range, value_scale
from mlagentbench.report.experiment import ScoreCurve
from mlagentbench.report.formatting import plural, quantity, visible
from mlagentbench.report.wording import BEST_STEP, threshold_value
from mlagentbench.run_spec import RunInfo
from mlagentbench.task.success import THRESHOLD

WIDTH, HEIGHT = 320, 170
"""The size of the plot without its axes, in pixels."""
ALONE = 255
"""The width of the plot of a chart that stands alone, which has labels beside it."""
FAR = 1000.0
"""A baseline that differs from every score by this factor is not drawn, since it would press the scores into one line."""
SAME = 0.01
"""Baselines that differ by less than this share of their median are drawn as one line."""
FAINT_FROM = 12
"""From so many runs on, their lines are faint."""


class _Baselines(NamedTuple):
    """The baselines of a task's runs: their median and their range."""

    middle: float
    low: float
    high: float
    near: bool
    """Whether the baseline is near enough to the scores to be drawn."""

    @property
    def one(self) -> bool:
        """Whether all runs have nearly the same baseline."""
        return self.high - self.low <= SAME * abs(self.middle)


def scores_of_task(
    info: RunInfo,
    curves: Sequence[ScoreCurve],
    palette: Palette = LIGHT,
    *,
    columns: Iterable[str] = (),
    title: str = "",
) -> alt.LayerChart | None:
    """Draw the scores of a task's runs: a line for each run, with a point at its last valid score.

    Args:
        info: gives the metric, its unit and its direction.
        curves: the runs.
        palette: the colours.
        columns: all columns in order, so that a column has the same colour in several charts.
        title: the title of a chart that stands alone; such a chart also names the baseline and the threshold.

    Returns:
        The chart; None where no run has a valid score.
    """
    info = info.model_copy(update={"metric": visible(info.metric), "unit": visible(info.unit)})
    drawn = [curve for curve in curves if curve.values]
    if not drawn:
        return None
    values = [value for curve in drawn for value in curve.values]
    baselines = _baselines(drawn, values)
    threshold = threshold_value(baselines.middle, info.direction) if baselines and baselines.near else None
    shown = [baselines.low, baselines.high] if baselines and baselines.near else []
    span = value_range([*values, *shown, *([threshold] if threshold is not None else [])])
    steps = max(1, *(curve.steps for curve in drawn))
    x = alt.X("step:Q", scale=alt.Scale(domain=[0, steps], nice=False), axis=step_axis(steps, 5))
    y = alt.Y("value:Q", scale=value_scale(span), axis=value_axis(info, span, 4))
    layers: list[alt.Chart] = []
    if baselines and threshold is not None:
        up = info.direction == "maximize"
        layers += references(baselines.middle, threshold, span.high if up else span.low, y, palette)
        if not baselines.one:
            band = alt.Chart(data([{"value": baselines.low, "edge": baselines.high}]))
            layers.append(band.mark_rect(color=palette.baseline, opacity=0.16).encode(y=y, y2=alt.Y2("edge")))
        if title:
            # One label is above its line and the other below, since the lines may be close.
            layers.append(margin_label("baseline", palette.muted, ALONE, y, 6 if up else -6, baselines.middle))
            layers.append(margin_label(f"{THRESHOLD:.0%} better", palette.zone, ALONE, y, -6 if up else 6, threshold))
    layers += _lines(drawn, looks(columns or (curve.column for curve in curves), palette), x, y, palette.legends)
    shown_runs = f"{plural(len(drawn), 'run')} with a valid score"
    heading = alt.TitleParams(name(title), subtitle=shown_runs, offset=24) if title else None
    return layered(layers, ALONE if title else WIDTH, HEIGHT, palette, title=heading)


def describe_curves(info: RunInfo, curves: Sequence[ScoreCurve]) -> str:
    """Describe what the chart of `scores_of_task` shows and leaves out, for readers who cannot see it."""
    drawn = [curve for curve in curves if curve.values]
    if not drawn:
        return f"None of {plural(len(curves), 'run')} has a valid score."
    ended = sum(curve.scores[-1].value is not None for curve in drawn)
    sentences = [f"{plural(len(drawn), 'run')} with a valid score, {'all' if ended == len(drawn) else ended} of them at the end."]
    if len(drawn) < len(curves):
        sentences.append(f"{plural(len(curves) - len(drawn), 'run')} without one.")
    values = [value for curve in drawn for value in curve.values]
    best = (min if info.direction == "minimize" else max)(values)
    sentences.append(f"{BEST_STEP.capitalize()}: {quantity(best, info.unit)}.")
    baselines = _baselines(drawn, values)
    if baselines is None:
        sentences.append("No baseline.")
    elif baselines.one:
        sentences.append(f"Baseline: {quantity(baselines.middle, info.unit)}{'' if baselines.near else ', far off this chart'}.")
    else:
        span = f"{quantity(baselines.low, info.unit)} to {quantity(baselines.high, info.unit)}"
        sentences.append(f"Baselines: {span}; each run is judged by its own.")
    return " ".join(sentences)


def _baselines(curves: Sequence[ScoreCurve], values: Sequence[float]) -> _Baselines | None:
    found = [curve.baseline.value for curve in curves if curve.baseline and math.isfinite(curve.baseline.value)]
    if not found:
        return None
    middle = statistics.median(found)
    sizes = [abs(value) for value in values if value]
    near = not sizes or not middle or min(sizes) / FAR <= abs(middle) <= max(sizes) * FAR
    return _Baselines(middle, min(found), max(found), near)


def _lines(curves: Sequence[ScoreCurve], by_column: Mapping[str, SeriesStyle], x: alt.X, y: alt.Y, legend: bool) -> list[alt.Chart]:
    """Draw a line for each run, which breaks where a step has no valid score, and a point at its last valid score."""
    present = [column for column in by_column if any(curve.column == column for curve in curves)]
    labels = short(by_column)
    look = line_styles({labels[column]: by_column[column] for column in present}, legend=legend)
    rows, ends = [], []
    for number, curve in enumerate(curves):
        own = [
            {"run": number, "column": labels[curve.column], "step": score.step, "value": value}
            for score in curve.scores
            for value in [score.value if score.value is not None and math.isfinite(score.value) else None]
        ]
        rows += own
        ends.append({**[row for row in own if row["value"] is not None][-1], "link": curve.link})
    faint = len(curves) >= FAINT_FROM
    line = alt.Chart(data(rows)).mark_line(interpolate="step-after", strokeWidth=1.25 if faint else 1.75, opacity=0.4 if faint else 0.75)
    point = alt.Chart(data(ends)).mark_point(filled=True, size=26 if faint else 36, opacity=0.9)
    href = {"href": alt.Href("link:N")} if any(curve.link for curve in curves) else {}
    color, dash, shape = look["color"], look["strokeDash"], look["shape"]
    return [line.encode(x=x, y=y, detail="run:Q", color=color, strokeDash=dash), point.encode(x=x, y=y, color=color, shape=shape, **href)]
