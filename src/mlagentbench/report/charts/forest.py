"""Draw how sure it is that one agent succeeds more often than another: a forest plot of the differences of all pairs.

Each pair has two differences with their intervals, one for each question: on these tasks, and on other tasks of this kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from mlagentbench.report.charts.palette import LIGHT, SHAPES
from mlagentbench.report.charts.style import across, data, layered, quoted, short
from mlagentbench.report.formatting import difference_text, p_text, plural
from mlagentbench.results.compare import Comparison
from mlagentbench.results.statistics.inference import Inference
from mlagentbench.results.statistics.intervals import LEVEL, Interval

WIDTH, ROW = 300, 34
"""The width of the plot and the height of a pair, in pixels."""
MOST = 28
"""Up to so many pairs, all are drawn: those of eight agents."""

Question = Literal["these", "other"]
OFFSETS: Mapping[Question, float] = {"these": -0.2, "other": 0.2}
"""How far the marks of a question are below the middle of their pair, in pairs."""
QUESTIONS: Mapping[Question, str] = {"these": "on these tasks", "other": "on other tasks of this kind"}


class Difference(NamedTuple):
    """By how much one agent's success rate is above another's, as the answer to one question."""

    interval: Interval
    p: float
    """Adjusted for all pairs."""
    can_tell: bool
    """Whether any result could have been significant with as few runs or tasks; the interval says nothing if not."""

    @property
    def sure(self) -> bool:
        """Whether the difference is significant."""
        return self.can_tell and self.p <= 1 - LEVEL

    @property
    def texts(self) -> tuple[str, ...]:
        """The difference with its interval, and the p-value: `+12.5, 3 to 22` and `p = 0.012`."""
        return (difference_text(self.interval), p_text(self.p)) if self.can_tell else ("too few to tell",)


class ForestRow(NamedTuple):
    """Two agents; the one with the higher success rate on their tasks is first."""

    better: str
    worse: str
    these: Difference
    other: Difference


def pairs(found: Sequence[Comparison], ranking: Sequence[str]) -> list[ForestRow]:
    """Return the pairs to draw that share a task, by the rank of the better agent and then of the other; `ranking` has the best first.

    Of more than `MOST` pairs, these are the pairs with the best agent and those of neighbours in the ranking.
    """
    rank = {column: place for place, column in enumerate(ranking)}
    shown = [pair for comparison in found if (pair := _pair(comparison)) is not None]
    if len(shown) > MOST:
        places = [sorted((rank[pair.better], rank[pair.worse])) for pair in shown]
        shown = [pair for pair, (low, high) in zip(shown, places, strict=True) if low == 0 or high == low + 1]
    return sorted(shown, key=lambda pair: (rank[pair.better], rank[pair.worse]))


def verdict(found: Sequence[Comparison]) -> str:
    """Say how many of the differences are significant, in a sentence for each question."""
    shown = [pair for comparison in found if (pair := _pair(comparison)) is not None]
    sentences = []
    for question, words in QUESTIONS.items():
        differences = [_of(pair, question) for pair in shown]
        sure = sum(difference.sure for difference in differences)
        if any(difference.can_tell for difference in differences):
            verb = "is" if sure == 1 else "are"
            sentences.append(f"{words[0].upper()}{words[1:]}, {sure or 'none'} of {plural(len(shown), 'difference')} {verb} significant.")
        else:
            sentences.append(f"{words[0].upper()}{words[1:]}, there are too few {'runs' if question == 'these' else 'tasks'} to tell.")
    return " ".join(sentences)


def span(shown: Sequence[ForestRow]) -> tuple[float, float]:
    """Return the range of the differences and their intervals, with 0 in it, in whole tenths."""
    drawn = [pair.these.interval for pair in shown] + [pair.other.interval for pair in shown if pair.other.can_tell]
    low, high = min(0.0, *(each.low for each in drawn)), max(0.0, *(each.high for each in drawn))
    return max(-1.0, math.floor(low * 10) / 10), min(1.0, math.ceil(high * 10) / 10)


def forest(shown: Sequence[ForestRow]) -> alt.LayerChart | None:
    """Draw the pairs for a file; the page shows them as an HTML table.

    Significant differences are filled. On the right are p-values, adjusted for all pairs.

    Returns:
        The chart; None if there is no pair.
    """
    if not shown:
        return None
    names = short([column for pair in shown for column in (pair.better, pair.worse)])
    low, high = span(shown)
    fills = dict(zip(QUESTIONS, LIGHT.series, strict=False))
    rows: list[dict[str, Any]] = []
    for place, pair in enumerate(shown):
        for question, offset in OFFSETS.items():
            difference = _of(pair, question)
            interval = difference.interval
            bounds = (interval.low, interval.high) if difference.can_tell else (interval.value, interval.value)
            rows.append(
                {
                    **{"y": place + offset, "value": interval.value, "low": bounds[0], "high": bounds[1]},
                    **{"question": QUESTIONS[question], "fill": fills[question] if difference.sure else LIGHT.background},
                    "p": p_text(difference.p) if difference.can_tell else "too few",
                }
            )
    labels = [f"{names[pair.better]} over {names[pair.worse]}" for pair in shown]
    listed = f"[{', '.join(quoted(label) for label in labels)}][datum.value]"
    y_axis = alt.Axis(title=None, domain=False, ticks=False, grid=False, values=list(range(len(shown))), labelExpr=listed, labelLimit=420)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[-0.6, len(shown) - 0.4], reverse=True, nice=False), axis=y_axis)
    x_axis = alt.Axis(title="difference of success rates, percentage points", labelExpr="round(100 * datum.value)", tickCount=6)
    x = alt.X("value:Q", scale=alt.Scale(domain=[low, high], nice=False), axis=x_axis)
    scale = alt.Scale(domain=list(QUESTIONS.values()), range=list(fills.values()))
    shapes = alt.Scale(domain=list(QUESTIONS.values()), range=[SHAPES[0], SHAPES[3]])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1, symbolFillColor=LIGHT.background)
    color = alt.Color("question:N", scale=scale, legend=legend)
    zero = alt.Chart(data([{"value": 0}])).mark_rule(color=LIGHT.muted).encode(x=x)
    whiskers = alt.Chart(data(rows)).mark_rule(strokeWidth=1.75).encode(x=alt.X("low:Q"), x2=alt.X2("high"), y=y, color=color)
    shape = alt.Shape("question:N", scale=shapes, legend=legend)
    points = alt.Chart(data(rows)).mark_point(size=50, opacity=1, strokeWidth=1.5)
    marks = points.encode(x=x, y=y, color=color, shape=shape, fill=alt.Fill("fill:N", scale=None))
    text = alt.Chart(data(rows)).mark_text(align="left", baseline="middle", dx=10, fontSize=12, color=LIGHT.ink)
    return layered([zero, whiskers, marks, text.encode(x=across(WIDTH), y=y, text="p:N")], WIDTH, ROW * len(shown), LIGHT, right=62)


def _pair(found: Comparison) -> ForestRow | None:
    if found.these_tasks is None or found.other_tasks is None or found.p_these_tasks is None or found.p_other_tasks is None:
        return None
    turned = found.these_tasks.difference.value < 0
    these, other = (
        _difference(inference, p, turned)
        for inference, p in ((found.these_tasks, found.p_these_tasks), (found.other_tasks, found.p_other_tasks))
    )
    first, second = (found.second, found.first) if turned else (found.first, found.second)
    return ForestRow(first, second, these, other)


def _difference(found: Inference, p: float, turned: bool) -> Difference:
    value, low, high = found.difference
    return Difference(Interval(-value, -high, -low) if turned else found.difference, p, found.can_tell)


def _of(pair: ForestRow, question: Question) -> Difference:
    return pair.these if question == "these" else pair.other
