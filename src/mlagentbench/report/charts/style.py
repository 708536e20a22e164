"""How charts look, and how they become files.

A chart takes its colours from a `Palette`: fixed ones for files, or `THEMED`, whose colours are variables of the page that shows the SVG,
so that one drawing serves the light and the dark page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

from mlagentbench.report.text import visible

Chart = alt.LayerChart | alt.Chart | alt.HConcatChart | alt.VConcatChart
"""What the charts here are made of."""

_LOADER_BASE = "https://vega.github.io/vega-datasets/"
"""Vega resolves every address against its own site, also one within the page."""

SCALE = 2.0
"""Pixels of a PNG for each of its SVG."""
DASHES: tuple[Sequence[int], ...] = ([], [5, 3], [2, 2])
"""Of the lines of a column, once the colours are used up."""
LONGEST_NAME = 44
"""Characters of a name within a chart."""


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
    """`transparent` on the page, whose own ground is `--paper`."""
    series: tuple[str, ...]
    """Of what is compared: agents with their models. Told apart by people who see few colours, as far as eight can be."""
    verdicts: Mapping[str, str]
    """By the keys of `outcomes.VERDICTS`."""
    endings: Mapping[str, str]
    """By the keys of `outcomes.ENDINGS`."""
    on_bars: str
    """Of text within bars, whatever their colour."""


VERDICT_KEYS = ("success", "no_improvement", "invalid_submission", "no_submission", "apart")
ENDING_KEYS = ("final_answer", "limit_steps", "limit_time", "limit", "format_failure", "agent_error", "apart")
LIGHT = Palette(
    *("#1f2328", "#5c636d", "#e6e4df", "#2f5bb7", "#5c636d", "#1a7f4b", "#b3261e", "#ffffff"),
    series=("#2f5bb7", "#b8530c", "#117a67", "#a3307f", "#806400", "#5b4bc4", "#47751b", "#a5413c"),
    verdicts=dict(zip(VERDICT_KEYS, ("#7cc29b", "#cdd2d9", "#eebd90", "#e39188", "#f1efea"), strict=True)),
    endings=dict(zip(ENDING_KEYS, ("#a9c1ea", "#f3d5a5", "#e5b782", "#d3caa0", "#e3b1cf", "#e39188", "#f1efea"), strict=True)),
    on_bars="#1f2328",
)
DARK = Palette(
    *("#e8e6e1", "#a2a8b1", "#33373e", "#8fb0ff", "#a2a8b1", "#5fca91", "#ff9a8f", "#16181d"),
    series=("#8fb0ff", "#f0a063", "#5cc9b4", "#ec8fcb", "#d8bd5a", "#b3a6ff", "#a5cf72", "#f29a94"),
    verdicts=dict(zip(VERDICT_KEYS, ("#2a7450", "#4a515c", "#85562b", "#8c3d36", "#2b2f36"), strict=True)),
    endings=dict(zip(ENDING_KEYS, ("#3d5c9a", "#75561f", "#87501f", "#5f5628", "#7a3d62", "#8c3d36", "#2b2f36"), strict=True)),
    on_bars="#f3f1ec",
)
THEMED = Palette(
    *("var(--ink)", "var(--muted)", "var(--grid)", "var(--line)", "var(--muted)", "var(--good)", "var(--bad)", "transparent"),
    series=tuple(f"var(--series-{number})" for number in range(1, 9)),
    verdicts={key: f"var(--verdict-{key.replace('_', '-')})" for key in VERDICT_KEYS},
    endings={key: f"var(--ended-{key.replace('_', '-')})" for key in ENDING_KEYS},
    on_bars="var(--on-bars)",
)


def ground(palette: Palette) -> str:
    """What a chart stands on, for gaps and halos."""
    return "var(--paper)" if palette.background == "transparent" else palette.background


class Look(NamedTuple):
    """What sets the marks of one column apart."""

    color: str
    dash: Sequence[int]


def looks(columns: Iterable[str], palette: Palette) -> Mapping[str, Look]:
    """A look for each column: colours in order, and dashes once they are used up."""
    count = len(palette.series)
    return {
        column: Look(palette.series[number % count], DASHES[number // count % len(DASHES)])
        for number, column in enumerate(dict.fromkeys(columns))
    }


def name(text: str) -> str:
    """A name from a run as a chart may hold it: the converter aborts the whole process on a character that XML forbids."""
    text = " ".join(visible(text).split())
    # Names differ at either end.
    return text if len(text) <= LONGEST_NAME else f"{text[:27]}…{text[-(LONGEST_NAME - 28) :]}"


def short(columns: Iterable[str]) -> Mapping[str, str]:
    """Names of columns as charts have them: models without their providers, where that leaves them different."""
    columns = list(dict.fromkeys(columns))
    brief = [name(re.sub(r"(?<=, )(?:[^\s,/]+/)+", "", column)) for column in columns]
    full = [name(column) for column in columns]
    if len(set(brief)) < len(columns):
        # Names cut to the same beginning would be taken for one column.
        brief = full if len(set(full)) == len(columns) else [f"{number}. {each}" for number, each in enumerate(full, start=1)]
    return dict(zip(columns, brief, strict=True))


def data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as a chart's own data."""
    return alt.InlineData(values=[dict(row) for row in rows])


def config(palette: Palette) -> alt.Config:
    """Fonts, axes and legends of every chart."""
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
    legend = alt.LegendConfig(
        labelColor=palette.ink, labelFontSize=12, labelLimit=320, titleColor=palette.muted, titleFontSize=12, titleFontWeight="normal"
    )
    title = alt.TitleConfig(
        color=palette.ink, fontSize=13, fontWeight=600, anchor="start", subtitleColor=palette.muted, subtitleFontSize=12, offset=12
    )
    # The page names the picture itself: `aria` off.
    return alt.Config(aria=False, font="system-ui, sans-serif", axis=axis, legend=legend, title=title, view=alt.ViewConfig(stroke=None))


def above(title: str) -> Mapping[str, Any]:
    """A vertical axis' title, written above it from left to right."""
    return {
        "title": title,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "start",
        "titleX": 0,
        "titleY": -14,
        "titleBaseline": "bottom",
    }


@contextmanager
def unchecked() -> Iterator[None]:
    """Charts made within are not held against Vega-Lite's schema, which takes longer than drawing them: for many at once."""
    with debug_mode(False):
        yield


def across(pixels: int) -> alt.XValue:
    """A place so many pixels from the left: as `alt.value`, which takes a hundred times as long."""
    return alt.XValue(pixels)  # type: ignore[no-untyped-call]


def down(pixels: int) -> alt.YValue:
    """A place so many pixels from the top."""
    return alt.YValue(pixels)  # type: ignore[no-untyped-call]


def to_svg(chart: Chart) -> str:
    """A chart as SVG, drawn in this process: no browser, no network. Addresses that begin with `#` stay within the page."""
    svg = str(vl_convert.vegalite_to_svg(_spec(chart)))
    return svg.replace(f'<a xlink:href="{_LOADER_BASE}#', '<a tabindex="-1" href="#')


def to_png(chart: Chart) -> bytes:
    """A chart as PNG, in twice the size of its SVG."""
    return bytes(vl_convert.vegalite_to_png(_spec(chart), scale=SCALE))


def quoted(text: str) -> str:
    """A text as a literal of Vega's expressions."""
    return json.dumps(text)


def _spec(chart: Chart) -> str:
    # As a text, since handing over a dict takes the converter half as long again.
    return json.dumps(chart.to_dict(validate=False))
