"""What tests of charts share: cells made by hand, and what a drawing says."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence

from mlagentbench.records import Baseline, StepScore
from mlagentbench.report.charts.style import Chart, to_svg
from mlagentbench.results.cells import Cell, Trial
from mlagentbench.results.conditions import Conditions

SVG = "{http://www.w3.org/2000/svg}"


def won(improvement: float = 0.5, **more: object) -> Trial:
    return Trial("final_answer", "success", True, improvement)._replace(**more)


def lost(improvement: float | None = 0.0, **more: object) -> Trial:
    return Trial("limit_steps", "invalid_submission" if improvement is None else "no_improvement", False, improvement)._replace(**more)


def broken() -> Trial:
    return Trial("infrastructure", "ungraded", False, None)


def column(model: str = "vendor/model", category: str = "", **tasks: Sequence[Trial]) -> Mapping[str, Cell]:
    """A column's cells by task."""
    return {
        task: Cell(Conditions(task, "full", "research", model, "bubblewrap", "a machine"), tuple(trials), category)
        for task, trials in tasks.items()
    }


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
