"""Define the colours, dashes and markers of charts.

A chart takes its colours from a `Palette`: fixed ones for files, or `THEMED`, whose colours are CSS variables of the page that shows the
SVG, so that one drawing serves the light and the dark theme.

Any two colours of a set differ by at least 10 in CIEDE2000, in either theme, for readers with and without a colour vision deficiency
(protan, deutan, tritan). Markers and dashes say the same a second time, for print without colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

DASHES: tuple[Sequence[int], ...] = ([], [5, 3], [2, 2])
"""The dashes of columns' lines: the next is used each time that the colours are used up."""
SHAPES: tuple[str, ...] = (
    "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0Z",
    "M-.9,-.9H.9V.9H-.9Z",
    "M0,-1.15L1.15,.9H-1.15Z",
    "M0,-1.25L1.25,0L0,1.25L-1.25,0Z",
    "M-.4,-1.15H.4V-.4H1.15V.4H.4V1.15H-.4V.4H-1.15V-.4H-.4Z",
    "M0,1.15L1.15,-.9H-1.15Z",
    "M1.15,0L-.9,1.15V-1.15Z",
    "M-1.15,0L.9,1.15V-1.15Z",
)
"""The markers of columns, as SVG paths about the origin with a radius of about 1: a disc, a square, triangles, a diamond, a cross."""


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
    """`transparent` on the page, whose background is `--paper`."""
    series: tuple[str, ...]
    """The colours of columns."""
    verdicts: Mapping[str, str]
    """The colours of verdicts, by the keys of `outcomes.VERDICTS`."""
    endings: Mapping[str, str]
    """The colours of what ended runs, by the keys of `outcomes.ENDINGS`."""
    modes: Mapping[str, str]
    """The colours of how runs came out, by the keys of `outcomes.MODES`."""
    on_bars: str
    """The colour of text in bars of any colour."""

    @property
    def legends(self) -> bool:
        """Whether charts name their columns; the page has one key for all of them."""
        return self.background != "transparent"


VERDICT_KEYS = ("success", "no_improvement", "invalid_submission", "no_submission", "apart")
ENDING_KEYS = ("final_answer", "limit_steps", "limit_time", "limit", "format_failure", "agent_error", "apart")
MODE_KEYS = (
    *("success", "small_improvement", "bad_plan", "hallucination", "debugging", "token_limit", "no_valid_submission", "stopped_early"),
    "apart",
)
LIGHT = Palette(
    *("#1f2328", "#5c636d", "#e6e4df", "#2f5bb7", "#5c636d", "#1a7f4b", "#b3261e", "#ffffff"),
    series=("#1a67ae", "#b54a00", "#059367", "#b47dae", "#cc7e00", "#1792fc", "#4d1f7c", "#1d2229"),
    verdicts=dict(zip(VERDICT_KEYS, ("#80c2a7", "#c8cbd6", "#fbbe86", "#dd847d", "#f9f2eb"), strict=True)),
    endings=dict(zip(ENDING_KEYS, ("#a9c3eb", "#e9e6ac", "#e6864a", "#e5ce47", "#f3a7bc", "#ba8c85", "#f0f6ee"), strict=True)),
    modes=dict(
        zip(
            MODE_KEYS,
            ("#80c2a7", "#d8faaa", "#b4b862", "#9581c2", "#a68467", "#789294", "#fbcff5", "#bbacfe", "#f9f2eb"),
            strict=True,
        )
    ),
    on_bars="#1f2328",
)
THEMED = Palette(
    *("var(--ink)", "var(--muted)", "var(--grid)", "var(--line)", "var(--muted)", "var(--good)", "var(--bad)", "transparent"),
    series=tuple(f"var(--series-{number})" for number in range(1, 9)),
    verdicts={key: f"var(--verdict-{key.replace('_', '-')})" for key in VERDICT_KEYS},
    endings={key: f"var(--ended-{key.replace('_', '-')})" for key in ENDING_KEYS},
    modes={key: f"var(--mode-{key.replace('_', '-')})" for key in MODE_KEYS},
    on_bars="var(--on-bars)",
)


class SeriesStyle(NamedTuple):
    """The style of one column's marks."""

    color: str
    dash: Sequence[int]
    shape: str
    """The marker, an SVG path as in `SHAPES`."""


def ground(palette: Palette) -> str:
    """Return the colour behind a chart, for gaps and halos."""
    return palette.background if palette.legends else "var(--paper)"


def looks(columns: Iterable[str], palette: Palette) -> Mapping[str, SeriesStyle]:
    """Return a style for each column: colours in order; each time that they are used up, other dashes and markers go with them."""
    count = len(palette.series)
    return {
        column: SeriesStyle(
            palette.series[number % count], DASHES[number // count % len(DASHES)], SHAPES[(number + number // count) % len(SHAPES)]
        )
        for number, column in enumerate(dict.fromkeys(columns))
    }
