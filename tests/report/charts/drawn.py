"""What tests of charts share: experiments and scores made by hand, and what a drawing says."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

from mlagentbench.records import Baseline, StepScore
from mlagentbench.report.charts.style import Chart, to_svg
from mlagentbench.report.experiment import Experiment
from mlagentbench.results.cells import Cell

SVG = "{http://www.w3.org/2000/svg}"


def experiment(columns: Mapping[str, Mapping[str, Cell]]) -> Experiment:
    """An experiment of cells made by hand."""
    return Experiment((), {task: () for by_task in columns.values() for task in by_task}, columns, {})


def steps(*values: float | None) -> tuple[StepScore, ...]:
    return tuple(StepScore(step=step, value=value) for step, value in enumerate(values, start=1))


def baseline(value: float) -> Baseline:
    return Baseline(value=value, source="measured")


def texts(chart: Chart | None) -> list[str]:
    """All texts of a drawing; lines of one text are separate."""
    assert chart is not None
    found = []
    for element in ElementTree.fromstring(to_svg(chart)).iter():
        if element.tag in (f"{SVG}text", f"{SVG}tspan") and element.text:
            found.append(element.text)
    return found


def colors(chart: Chart | None) -> set[str]:
    """The colours of a drawing's shapes."""
    assert chart is not None
    return {
        value
        for element in ElementTree.fromstring(to_svg(chart)).iter(f"{SVG}path")
        for key in ("fill", "stroke")
        if (value := element.get(key, "none")) not in ("none", "transparent")
    }
