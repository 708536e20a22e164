"""Colours: whatever colours a reader sees, and in both themes, no two marks look alike, and text on bars can be read."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
import pytest

from mlagentbench.report.charts.palette import ENDING_KEYS, LIGHT, MODE_KEYS, SHAPES, VERDICT_KEYS, looks

cspace_convert = pytest.importorskip("colorspacious", reason="colorspacious, a development dependency, is not installed").cspace_convert

FEWEST = 10.0
"""The CIEDE2000 difference that any two colours have at least."""
CSS = files("mlagentbench.report.page").joinpath("report.css").read_text(encoding="utf-8")
SERIES = [f"series-{number}" for number in range(1, 9)]
VERDICTS = [f"verdict-{key.replace('_', '-')}" for key in VERDICT_KEYS]
MODES = [f"mode-{key.replace('_', '-')}" for key in MODE_KEYS]
ENDINGS = [f"ended-{key.replace('_', '-')}" for key in ENDING_KEYS]


def themed(name: str, theme: str) -> str:
    """The colour of a CSS variable, as `#rrggbb`."""
    found = re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\);", CSS)
    assert found is not None, name
    return found.group(1 if theme == "light" else 2)


def ciede2000(one: Sequence[float], other: Sequence[float]) -> float:
    """The difference of two colours in CIELAB, by the formula of Sharma, Wu and Dalal 2005."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    seventh = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * math.sqrt(seventh / (seventh + 25**7))
    c1, c2 = math.hypot(stretch * a1, b1), math.hypot(stretch * a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, stretch * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    weight = 1 - 0.17 * cos(hue - 30) + 0.24 * cos(2 * hue) + 0.32 * cos(3 * hue + 6) - 0.2 * cos(4 * hue - 63)
    by_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    by_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    by_hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    rotation = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2))))
    return math.sqrt(by_light**2 + by_chroma**2 + by_hue**2 + rotation * by_chroma * by_hue)


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def seen(color: str, deficiency: str | None) -> list[float]:
    """A colour in CIELAB as someone sees it; deficiencies are those of Machado, Oliveira and Fernandes 2009, at their severest."""
    rgb = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    if deficiency is not None:
        rgb = cspace_convert(rgb, {"name": "sRGB1+CVD", "cvd_type": deficiency, "severity": 100}, "sRGB1").clip(0, 1)
    return list(cspace_convert(rgb, "sRGB1", "CIELab"))


def closest(colors: Sequence[str], deficiency: str | None) -> float:
    """The difference of the two colours that are most alike."""
    return min(ciede2000(*pair) for pair in itertools.combinations([seen(color, deficiency) for color in colors], 2))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, by WCAG 2."""
    lights = []
    for color in (one, other):
        parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_formula_gives_the_published_differences(one: Sequence[float], other: Sequence[float], difference: float) -> None:
    assert ciede2000(one, other) == pytest.approx(difference, abs=5e-5)
    assert ciede2000(other, one) == pytest.approx(difference, abs=5e-5)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("deficiency", [None, "protanomaly", "deuteranomaly", "tritanomaly"])
@pytest.mark.parametrize("names", [SERIES, VERDICTS, ENDINGS, MODES], ids=["columns", "verdicts", "endings", "modes"])
def test_any_two_colours_can_be_told_apart(names: Sequence[str], deficiency: str | None, theme: str) -> None:
    assert closest([themed(name, theme) for name in names], deficiency) > FEWEST


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_stand_out_from_the_page_and_text_from_its_bar(theme: str) -> None:
    """The ratios of WCAG 2: 3 for graphics, 4.5 for text."""
    assert [name for name in SERIES if contrast(themed(name, theme), themed("paper", theme)) < 3] == []
    assert [name for name in VERDICTS + ENDINGS + MODES if contrast(themed(name, theme), themed("on-bars", theme)) < 4.5] == []


def test_files_have_the_colours_of_the_light_page() -> None:
    drawn = [*LIGHT.series, *LIGHT.verdicts.values(), *LIGHT.endings.values(), *LIGHT.modes.values()]
    assert drawn == [themed(name, "light") for name in (*SERIES, *VERDICTS, *ENDINGS, *MODES)]


def test_columns_differ_in_their_markers_too() -> None:
    styles = list(looks([f"agent {number}" for number in range(24)], LIGHT).values())
    assert len({style.shape for style in styles[:8]}) == len(SHAPES) == 8
    assert len({(style.color, tuple(style.dash), style.shape) for style in styles}) == 24
    assert styles[0].color == styles[8].color and styles[0].shape != styles[8].shape
