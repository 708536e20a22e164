"""Define the style of charts, and convert charts to SVG and PNG.

A chart takes its colours from a `Palette`: fixed ones for files, or `THEMED`, whose colours are CSS variables of the page that shows the
SVG, so that one drawing serves the light and the dark theme.
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

from mlagentbench.report.formatting import visible

Chart = alt.LayerChart | alt.Chart | alt.HConcatChart | alt.VConcatChart
"""The types of Altair's charts that are used here."""

_LOADER_BASE = "https://vega.github.io/vega-datasets/"
"""Vega resolves every relative address against this site; `to_svg` removes it again."""

SCALE = 2.0
"""Pixels of a PNG for each pixel of the SVG, in either direction."""
DASHES: tuple[Sequence[int], ...] = ([], [5, 3], [2, 2])
"""The dashes of columns' lines: the next is used each time that the colours are used up."""
LONGEST_NAME = 44
"""The longest name in a chart, in characters."""


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
    """The colours of columns; chosen so that colour-blind people can tell them apart, as far as eight colours allow."""
    verdicts: Mapping[str, str]
    """The colours of verdicts, by the keys of `outcomes.VERDICTS`."""
    endings: Mapping[str, str]
    """The colours of what ended runs, by the keys of `outcomes.ENDINGS`."""
    on_bars: str
    """The colour of text in bars of any colour."""


VERDICT_KEYS = ("success", "no_improvement", "invalid_submission", "no_submission", "apart")
ENDING_KEYS = ("final_answer", "limit_steps", "limit_time", "limit", "format_failure", "agent_error", "apart")
LIGHT = Palette(
    *("#1f2328", "#5c636d", "#e6e4df", "#2f5bb7", "#5c636d", "#1a7f4b", "#b3261e", "#ffffff"),
    series=("#2f5bb7", "#b8530c", "#117a67", "#a3307f", "#806400", "#5b4bc4", "#47751b", "#a5413c"),
    verdicts=dict(zip(VERDICT_KEYS, ("#7cc29b", "#cdd2d9", "#eebd90", "#e39188", "#f1efea"), strict=True)),
    endings=dict(zip(ENDING_KEYS, ("#a9c1ea", "#f3d5a5", "#e5b782", "#d3caa0", "#e3b1cf", "#e39188", "#f1efea"), strict=True)),
    on_bars="#1f2328",
)
THEMED = Palette(
    *("var(--ink)", "var(--muted)", "var(--grid)", "var(--line)", "var(--muted)", "var(--good)", "var(--bad)", "transparent"),
    series=tuple(f"var(--series-{number})" for number in range(1, 9)),
    verdicts={key: f"var(--verdict-{key.replace('_', '-')})" for key in VERDICT_KEYS},
    endings={key: f"var(--ended-{key.replace('_', '-')})" for key in ENDING_KEYS},
    on_bars="var(--on-bars)",
)


def ground(palette: Palette) -> str:
    """Return the colour behind a chart, for gaps and halos."""
    return "var(--paper)" if palette.background == "transparent" else palette.background


class SeriesStyle(NamedTuple):
    """The style of one column's marks."""

    color: str
    dash: Sequence[int]


def looks(columns: Iterable[str], palette: Palette) -> Mapping[str, SeriesStyle]:
    """Return a style for each column: colours in order, with other dashes each time that they are used up."""
    count = len(palette.series)
    return {
        column: SeriesStyle(palette.series[number % count], DASHES[number // count % len(DASHES)])
        for number, column in enumerate(dict.fromkeys(columns))
    }


def name(text: str) -> str:
    """Make a name from a run safe and short enough for a chart: the converter aborts the whole process on characters that XML forbids."""
    text = " ".join(visible(text).split())
    # The middle is left out, since names differ at either end.
    return text if len(text) <= LONGEST_NAME else f"{text[:27]}…{text[-(LONGEST_NAME - 28) :]}"


def short(columns: Iterable[str]) -> Mapping[str, str]:
    """Return short names of columns for charts: models without their providers, if the names then still differ."""
    columns = list(dict.fromkeys(columns))
    brief = [name(re.sub(r"(?<=, )(?:[^\s,/]+/)+", "", column)) for column in columns]
    full = [name(column) for column in columns]
    if len(set(brief)) < len(columns):
        # Columns with the same name after cutting would be drawn as one, so they are numbered.
        brief = full if len(set(full)) == len(columns) else [f"{number}. {each}" for number, each in enumerate(full, start=1)]
    return dict(zip(columns, brief, strict=True))


def data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Return rows as a chart's inline data."""
    return alt.InlineData(values=[dict(row) for row in rows])


def layered(
    layers: Sequence[alt.Chart], width: int, height: int, palette: Palette, *, right: int = 12, title: alt.TitleParams | None = None
) -> alt.LayerChart:
    """Lay charts over one another, in the style that all share.

    Args:
        layers: the charts, from the lowest to the topmost.
        width: the width of the plot without its axes, in pixels.
        height: its height.
        palette: the colours.
        right: the margin on the right, in pixels.
        title: the title of a chart that stands alone.
    """
    return alt.LayerChart(
        layer=layers,
        width=width,
        height=height,
        background=palette.background,
        padding={"left": 6, "right": right, "top": 6, "bottom": 4},
        config=_config(palette),
        title=title or alt.Undefined,
    )


def line_styles(styles: Mapping[str, SeriesStyle], *, legend: bool) -> Mapping[str, Any]:
    """Return the encodings of lines by their `column`: colours, dashes, and with `legend` a legend if there are several.

    Args:
        styles: the style of each name in the data's `column`.
        legend: whether a legend names the columns.
    """
    names = list(styles)
    key = alt.Legend(title=None, orient="bottom", columns=1, symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1)
    color = alt.Scale(domain=names, range=[look.color for look in styles.values()])
    dash = alt.Scale(domain=names, range=[list(look.dash) or [1, 0] for look in styles.values()])
    return {
        "color": alt.Color("column:N", scale=color, legend=key if legend and len(names) > 1 else None),
        "strokeDash": alt.StrokeDash("column:N", scale=dash, legend=None),
    }


def references(baseline: float, threshold: float, edge: float, y: alt.Y, palette: Palette) -> list[alt.Chart]:
    """Draw the line of a baseline and the zone of success, from the threshold to the edge of a chart."""
    zone = alt.Chart(data([{"value": threshold, "edge": edge}])).mark_rect(color=palette.zone, opacity=0.09).encode(y=y, y2=alt.Y2("edge"))
    border = alt.Chart(data([{"value": threshold}])).mark_rule(color=palette.zone, strokeDash=[2, 3]).encode(y=y)
    rule = alt.Chart(data([{"value": baseline}])).mark_rule(color=palette.baseline, strokeDash=[6, 4], strokeWidth=1.25).encode(y=y)
    return [zone, border, rule]


def margin_label(text: str, color: str, width: int, y: Any, dy: int = 0, value: float = 0.0) -> alt.Chart:
    """Write a label in the right margin of a chart of this width, at a value and so many pixels below it."""
    mark = alt.Chart(data([{"value": value, "text": text}])).mark_text(
        align="left", baseline="middle", dx=12, dy=dy, color=color, fontSize=12
    )
    label: alt.Chart = mark.encode(x=across(width), y=y, text=alt.Text("text:N"))
    return label


def _config(palette: Palette) -> alt.Config:
    """Return the configuration of fonts, axes and legends that all charts share."""
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
    # `aria` is off, since the page labels the chart itself.
    return alt.Config(aria=False, font="system-ui, sans-serif", axis=axis, legend=legend, title=title, view=alt.ViewConfig(stroke=None))


def above(title: str) -> Mapping[str, Any]:
    """Return the options that write a vertical axis' title horizontally above the axis."""
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
    """Turn off the validation of charts by Vega-Lite's schema within the context, since it takes longer than drawing them."""
    with debug_mode(False):
        yield


def across(pixels: int) -> alt.XValue:
    """Return a position in pixels from the left: the same as `alt.value`, which takes a hundred times as long."""
    return alt.XValue(pixels)  # type: ignore[no-untyped-call]


def down(pixels: int) -> alt.YValue:
    """Return a position in pixels from the top."""
    return alt.YValue(pixels)  # type: ignore[no-untyped-call]


def to_svg(chart: Chart) -> str:
    """Convert a chart to SVG, in this process: no browser, no network. Relative addresses stay relative."""
    svg = str(vl_convert.vegalite_to_svg(_spec(chart)))
    return svg.replace(f'<a xlink:href="{_LOADER_BASE}', '<a tabindex="-1" href="')


def to_png(chart: Chart) -> bytes:
    """Convert a chart to PNG, at `SCALE` times the size of its SVG."""
    return bytes(vl_convert.vegalite_to_png(_spec(chart), scale=SCALE))


def quoted(text: str) -> str:
    """Return a text as a string literal for Vega's expressions."""
    return json.dumps(text)


def _spec(chart: Chart) -> str:
    # The converter gets a string, since with a dict it takes half as long again.
    return json.dumps(chart.to_dict(validate=False))
