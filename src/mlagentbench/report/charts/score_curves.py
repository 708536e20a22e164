"""Draw the chart of a task: the scores of all its runs after each step, with the baseline and the threshold of success."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import altair as alt

from mlagentbench.report.charts.style import LIGHT, Palette, SeriesStyle, across, config, data, looks, name, short
from mlagentbench.report.charts.values import Range, step_axis, value_axis, value_range, value_scale
from mlagentbench.report.experiment import ScoreCurve
from mlagentbench.report.text import plural, quantity, visible
from mlagentbench.report.words import threshold_value
from mlagentbench.run_spec import RunInfo
from mlagentbench.task.success import THRESHOLD

WIDTH, HEIGHT = 320, 170
"""The size of the plot without its axes, in pixels."""
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
    courses: Sequence[ScoreCurve],
    palette: Palette = LIGHT,
    *,
    columns: Iterable[str] = (),
    title: str = "",
    legend: bool = True,
) -> alt.LayerChart | None:
    """Draw the scores of a task's runs: a line for each run, with a point at its last valid score.

    Args:
        info: gives the metric, its unit and its direction.
        courses: the runs.
        palette: the colours.
        columns: all columns in order, so that a column has the same colour in several charts.
        title: the title of a chart that stands alone; such a chart also names the baseline and the threshold.
        legend: whether a legend names the columns.

    Returns:
        The chart; None where no run has a valid score.
    """
    info = info.model_copy(update={"metric": visible(info.metric), "unit": visible(info.unit)})
    drawn = [course for course in courses if course.values]
    if not drawn:
        return None
    values = [value for course in drawn for value in course.values]
    baselines = _baselines(drawn, values)
    threshold = threshold_value(baselines.middle, info.direction) if baselines and baselines.near else None
    shown = [baselines.low, baselines.high] if baselines and baselines.near else []
    span = value_range([*values, *shown, *([threshold] if threshold is not None else [])])
    steps = max(1, *(course.steps for course in drawn))
    x = alt.X("step:Q", scale=alt.Scale(domain=[0, steps], nice=False), axis=step_axis(steps, 5))
    y = alt.Y("value:Q", scale=value_scale(span), axis=value_axis(info, span, 4))
    layers: list[alt.Chart] = []
    if baselines and threshold is not None:
        layers += _references(info, baselines, threshold, span, y, palette)
        if title:
            layers += _margin(info, baselines.middle, threshold, y, palette)
    layers += _lines(drawn, looks(columns or (course.column for course in courses), palette), x, y, legend)
    return alt.LayerChart(
        layer=layers,
        width=WIDTH,
        height=HEIGHT,
        background=palette.background,
        padding={"left": 6, "right": 12, "top": 6, "bottom": 4},
        config=config(palette),
        title=alt.TitleParams(name(title), subtitle=f"{plural(len(drawn), 'run')} with a valid score", offset=24)
        if title
        else alt.Undefined,
    )


def describe_courses(info: RunInfo, courses: Sequence[ScoreCurve]) -> str:
    """Describe what the chart of `scores_of_task` shows and leaves out, for readers who cannot see it."""
    drawn = [course for course in courses if course.values]
    if not drawn:
        return f"None of {plural(len(courses), 'run')} has a valid score."
    ended = sum(_last(course) is not None for course in drawn)
    sentences = [f"{plural(len(drawn), 'run')} with a valid score, {'all' if ended == len(drawn) else ended} of them at the end."]
    if len(drawn) < len(courses):
        sentences.append(f"{plural(len(courses) - len(drawn), 'run')} without one.")
    values = [value for course in drawn for value in course.values]
    best = (min if info.direction == "minimize" else max)(values)
    sentences.append(f"Best score: {quantity(best, info.unit)}.")
    baselines = _baselines(drawn, values)
    if baselines is None:
        sentences.append("No baseline.")
    elif baselines.one:
        sentences.append(f"Baseline: {quantity(baselines.middle, info.unit)}{'' if baselines.near else ', far off this chart'}.")
    else:
        span = f"{quantity(baselines.low, info.unit)} to {quantity(baselines.high, info.unit)}"
        sentences.append(f"Baselines: {span}; each run is judged by its own.")
    return " ".join(sentences)


def _last(course: ScoreCurve) -> float | None:
    return course.scores[-1].value if course.scores else None


def _baselines(courses: Sequence[ScoreCurve], values: Sequence[float]) -> _Baselines | None:
    found = [course.baseline.value for course in courses if course.baseline and math.isfinite(course.baseline.value)]
    if not found:
        return None
    middle = statistics.median(found)
    sizes = [abs(value) for value in values if value]
    near = not sizes or not middle or min(sizes) / FAR <= abs(middle) <= max(sizes) * FAR
    return _Baselines(middle, min(found), max(found), near)


def _references(info: RunInfo, baselines: _Baselines, threshold: float, span: Range, y: alt.Y, palette: Palette) -> list[alt.Chart]:
    """Draw the baseline, the band of the runs' baselines where they differ, and the zone of success beyond the threshold."""
    edge = span.high if info.direction == "maximize" else span.low
    zone = alt.Chart(data([{"value": threshold, "edge": edge}])).mark_rect(color=palette.zone, opacity=0.09).encode(y=y, y2=alt.Y2("edge"))
    border = alt.Chart(data([{"value": threshold}])).mark_rule(color=palette.zone, strokeDash=[2, 3]).encode(y=y)
    rule = alt.Chart(data([{"value": baselines.middle}])).mark_rule(color=palette.baseline, strokeDash=[6, 4], strokeWidth=1.25).encode(y=y)
    layers: list[alt.Chart] = [zone, border, rule]
    if not baselines.one:
        row = {"value": baselines.low, "edge": baselines.high}
        layers.append(alt.Chart(data([row])).mark_rect(color=palette.baseline, opacity=0.16).encode(y=y, y2=alt.Y2("edge")))
    return layers


def _margin(info: RunInfo, baseline: float, threshold: float, y: alt.Y, palette: Palette) -> list[alt.Chart]:
    """Label the two lines in the right margin, one above and one below, since the lines may be close."""
    away = -1 if info.direction == "maximize" else 1
    names = (("baseline", baseline, -6 * away, palette.muted), (f"{THRESHOLD:.0%} better", threshold, 6 * away, palette.zone))
    return [
        alt.Chart(data([{"value": value, "text": text}]))
        .mark_text(align="left", baseline="middle", dx=8, dy=dy, color=color, fontSize=11)
        .encode(x=across(WIDTH), y=y, text="text:N")
        for text, value, dy, color in names
    ]


def _lines(courses: Sequence[ScoreCurve], by_column: Mapping[str, SeriesStyle], x: alt.X, y: alt.Y, legend: bool) -> list[alt.Chart]:
    """Draw a line for each run, which breaks where a step has no valid score, and a point at its last valid score."""
    present = [column for column in by_column if any(course.column == column for course in courses)]
    labels = short(by_column)
    names = [labels[column] for column in present]
    scale = alt.Scale(domain=names, range=[by_column[column].color for column in present])
    dashes = alt.Scale(domain=names, range=[list(by_column[column].dash) or [1, 0] for column in present])
    shown = (
        alt.Legend(title=None, orient="bottom", columns=1, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1)
        if legend and len(names) > 1
        else None
    )
    color = alt.Color("column:N", scale=scale, legend=shown)
    dash = (
        {"strokeDash": alt.StrokeDash("column:N", scale=dashes, legend=None)} if any(by_column[column].dash for column in present) else {}
    )
    rows, ends = [], []
    for number, course in enumerate(courses):
        own = [
            {"run": number, "column": labels[course.column], "step": score.step, "value": value}
            for score in course.scores
            for value in [score.value if score.value is not None and math.isfinite(score.value) else None]
        ]
        rows += own
        ends.append({**[row for row in own if row["value"] is not None][-1], "link": course.link})
    faint = len(courses) >= FAINT_FROM
    line = alt.Chart(data(rows)).mark_line(interpolate="step-after", strokeWidth=1.25 if faint else 1.75, opacity=0.4 if faint else 0.75)
    point = alt.Chart(data(ends)).mark_circle(size=26 if faint else 36, opacity=0.9)
    href = {"href": alt.Href("link:N")} if any(course.link for course in courses) else {}
    return [
        line.encode(x=x, y=y, color=color, detail="run:Q", **dash),
        point.encode(x=x, y=y, color=color, **href),
    ]
