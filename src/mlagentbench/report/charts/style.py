"""Define the style of charts, and convert charts to SVG, PNG and PDF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

from mlagentbench.report.charts.palette import Palette, SeriesStyle
from mlagentbench.report.formatting import visible

Chart = alt.LayerChart | alt.Chart | alt.HConcatChart | alt.VConcatChart
"""The types of Altair's charts that are used here."""

_LOADER_BASE = "https://vega.github.io/vega-datasets/"
"""Vega resolves every relative address against this site; `to_svg` removes it again."""

COLUMN, PAGE = 3.25, 6.75
"""The widths of figures in files, in inches: those of a journal's column and of its page."""
DPI = 300
"""Pixels per inch of a PNG."""
LEAST, MOST = 7 / 12, 3 / 4
"""The scales of charts in files, in points per pixel, so that text of 12 pixels has from 7 to 9 points."""
LONGEST_NAME = 44
"""The longest name in a chart, in characters."""


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
    """Return the encodings of lines and points by the names in their `column`, with `legend` also a legend if there are several.

    `color` is of both, `strokeDash` of lines and `shape` of points; the legend is that of the points.
    """
    names = list(styles)
    key = alt.Legend(title=None, orient="bottom", columns=1, symbolOpacity=1) if legend and len(names) > 1 else None
    color = alt.Scale(domain=names, range=[look.color for look in styles.values()])
    dash = alt.Scale(domain=names, range=[list(look.dash) or [1, 0] for look in styles.values()])
    shape = alt.Scale(domain=names, range=[look.shape for look in styles.values()])
    return {
        "color": alt.Color("column:N", scale=color, legend=key),
        "strokeDash": alt.StrokeDash("column:N", scale=dash, legend=None),
        "shape": alt.Shape("column:N", scale=shape, legend=key),
    }


def lines_and_points(
    rows: Sequence[Mapping[str, Any]], x: alt.X, y: alt.Y, encodings: Mapping[str, Any], size: int = 44
) -> list[alt.Chart]:
    """Draw a line for each `column` of the rows, with its marker, of `size` square pixels, at each of them."""
    line, point = ({name: each for name, each in encodings.items() if name != other} for other in ("shape", "strokeDash"))
    return [
        alt.Chart(data(rows)).mark_line(strokeWidth=2).encode(x=x, y=y, **line),
        alt.Chart(data(rows)).mark_point(filled=True, size=size, opacity=1).encode(x=x, y=y, **point),
    ]


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
    # The converter gets a string, since with a dict it takes half as long again.
    svg = str(vl_convert.vegalite_to_svg(json.dumps(chart.to_dict(validate=False))))
    return svg.replace(f'<a xlink:href="{_LOADER_BASE}', '<a tabindex="-1" href="')


class Printed(NamedTuple):
    """A chart in the formats of files, all of one size: `COLUMN` or `PAGE` wide."""

    svg: str
    pdf: bytes
    png: bytes
    """At `DPI`."""


def printed(chart: Chart) -> Printed:
    """Convert a chart to files, as wide as a column if its text then has at least 7 points, else as wide as a page.

    A chart that would have larger text than 9 points is centred on its page.
    """
    svg = to_svg(chart)
    root = re.search(r'width="([\d.]+)" height="([\d.]+)" viewBox="0 0 [\d. ]+">', svg)
    assert root is not None, "the converter's SVG has another form"
    wide, high = map(float, root.groups())
    inches = COLUMN if wide * LEAST <= COLUMN * 72 else PAGE
    scale = min(MOST, inches * 72 / wide)
    across, left = inches * 72 / scale, (wide - inches * 72 / scale) / 2
    ground = f'<rect x="{left:.3f}" y="0" width="{across:.3f}" height="{high}" fill="{chart.background}"/>'

    def of_size(width: str, height: str) -> str:
        size = f'width="{width}" height="{height}" viewBox="{left:.3f} 0 {across:.3f} {high}">'
        return svg[: root.start()] + size + ground + svg[root.end() :]

    points = of_size(f"{inches * 72:g}", f"{high * scale:.2f}")
    pdf, png = vl_convert.svg_to_pdf(points), vl_convert.svg_to_png(points, scale=1, ppi=DPI)
    return Printed(of_size(f"{inches}in", f"{high * scale / 72:.3f}in"), bytes(pdf), bytes(png))


def quoted(text: str) -> str:
    """Return a text as a string literal for Vega's expressions."""
    return json.dumps(text)
