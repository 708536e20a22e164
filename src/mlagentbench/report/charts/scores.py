"""Draw the chart of one run: its score after each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import altair as alt

from mlagentbench.records import Baseline, StepScore
from mlagentbench.report.charts.palette import LIGHT, Palette
from mlagentbench.report.charts.style import data, down, layered, margin_label, references
from mlagentbench.report.charts.values import step_axis, value_axis, value_range, value_scale
from mlagentbench.report.formatting import plural, quantity, visible
from mlagentbench.report.wording import BEST_STEP, change, threshold_value
from mlagentbench.run_spec import RunInfo
from mlagentbench.task.success import THRESHOLD

CROSS = "M-1,-1L1,1M-1,1L1,-1"
WIDTH, HEIGHT = 400, 215
"""The size of the plot without its axes, in pixels."""


def score_over_steps(
    info: RunInfo,
    scores: Sequence[StepScore],
    baseline: Baseline | None,
    steps: int,
    palette: Palette = LIGHT,
    link: Callable[[int], str] | None = None,
) -> alt.LayerChart | None:
    """Draw the score after each step, with the baseline and the threshold of success.

    Args:
        info: gives the metric, its unit and its direction.
        scores: the score after each graded step; invalid submissions are drawn as crosses at the bottom.
        baseline: the run's baseline; None draws neither it nor the threshold.
        steps: how many steps the run had, for the length of the axis.
        palette: the colours.
        link: returns the address that a step's point links to.

    Returns:
        The chart; None without a valid score.
    """
    # `visible`, since the converter aborts the whole process on a character that XML forbids.
    info = info.model_copy(update={"metric": visible(info.metric), "unit": visible(info.unit)})
    baseline = baseline if baseline and math.isfinite(baseline.value) else None
    scores = [score if math.isfinite(score.value or 0.0) else score.model_copy(update={"value": None}) for score in scores]
    valid = [score for score in scores if score.value is not None]
    values = [score.value for score in valid if score.value is not None]
    threshold = threshold_value(baseline.value, info.direction) if baseline else None
    drawn = [*values, *([baseline.value] if baseline else []), *([threshold] if threshold is not None else [])]
    if not values:
        return None
    span = value_range(drawn)
    x = alt.X("step:Q", scale=alt.Scale(domain=[0, max(steps, 1)], nice=False), axis=step_axis(steps))
    y = alt.Y("value:Q", scale=value_scale(span), axis=value_axis(info, span))
    layers: list[alt.Chart] = []
    if baseline and threshold is not None:
        up = info.direction == "maximize"
        layers += references(baseline.value, threshold, span.high if up else span.low, y, palette)
        # One label is above its line and the other below, since the two lines may be a few pixels apart.
        layers.append(
            margin_label(f"baseline {quantity(baseline.value, info.unit)}", palette.muted, WIDTH, y, 7 if up else -7, baseline.value)
        )
        layers.append(margin_label(f"{THRESHOLD * 100:g} % better", palette.zone, WIDTH, y, -7 if up else 7, threshold))
    layers += _course(scores, x, y, palette, link)
    layers.append(_last_label(valid[-1], steps, info.unit, x, y, palette))
    return layered(layers, WIDTH, HEIGHT, palette, right=30)


def describe_scores(info: RunInfo, scores: Sequence[StepScore], baseline: Baseline | None) -> str:
    """Describe what the chart of `score_over_steps` shows, for readers who cannot see it."""
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
        sentences.append(f"{BEST_STEP.capitalize()}: {quantity(best.value, info.unit)} after step {best.step}.")
    if len(valid) < len(scores):
        sentences.append(f"{plural(len(scores) - len(valid), 'graded step')} had no valid score.")
    return " ".join(sentences) + (" The shaded zone is a success." if baseline else "")


def _course(scores: Sequence[StepScore], x: alt.X, y: alt.Y, palette: Palette, link: Callable[[int], str] | None) -> list[alt.Chart]:
    """Draw the scores: a line that breaks at steps without one, a point for each step, and a ring around the last."""
    rows = [{"step": score.step, "value": score.value, **({"link": link(score.step)} if link else {})} for score in scores]
    valid = [row for row in rows if row["value"] is not None]
    invalid = [row for row in rows if row["value"] is None]
    href = {"href": alt.Href("link:N")} if link else {}
    line = alt.Chart(data(rows)).mark_line(interpolate="step-after", color=palette.line, strokeWidth=2, opacity=0.75).encode(x=x, y=y)
    points = alt.Chart(data(valid)).mark_circle(color=palette.line, size=34, opacity=1).encode(x=x, y=y, **href)
    ring = alt.Chart(data(valid[-1:])).mark_point(color=palette.line, size=150, strokeWidth=2, opacity=1).encode(x=x, y=y)
    layers = [line, points, ring]
    if invalid:
        cross = alt.Chart(data(invalid)).mark_point(shape=CROSS, color=palette.bad, size=46, strokeWidth=1.75, opacity=1)
        layers.append(cross.encode(x=x, y=down(HEIGHT - 9), **href))
        layers.append(margin_label("no valid score", palette.bad, WIDTH, down(HEIGHT - 9)))
    return layers


def _last_label(score: StepScore, steps: int, unit: str, x: alt.X, y: alt.Y, palette: Palette) -> alt.Chart:
    """Write the last score's value beside its point, on the side where there is room."""
    assert score.value is not None
    row = {"step": score.step, "value": score.value, "text": quantity(score.value, unit)}
    left = score.step > steps / 4
    mark = alt.Chart(data([row])).mark_text(
        align="right" if left else "left", dx=-10 if left else 10, dy=-13, color=palette.ink, fontSize=14, fontWeight=600
    )
    label: alt.Chart = mark.encode(x=x, y=y, text=alt.Text("text:N"))
    return label
