"""Figures as files: which there are, and what they are called."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mlagentbench.errors import UsageError
from mlagentbench.report.charts.figures import figures, write_figures
from mlagentbench.results.load import load
from tests.example_experiment import CONTESTANTS, TASKS, write_experiment
from tests.example_runs import ExampleStep, write_run

COMPARING = [
    "success",
    "improvement",
    "success-by-category",
    "comparisons",
    "success-and-tokens",
    "success-and-time",
    "success-and-cost",
    "verdicts",
    "endings",
]


def test_an_experiment_has_a_figure_for_every_comparison_and_every_task(tmp_path: Path) -> None:
    write_experiment(tmp_path / "logs", tasks=TASKS[:4], contestants=CONTESTANTS[:3], runs=2, steps=4)

    names = [figure.name for figure in figures(load(tmp_path / "logs"))]

    assert names[: len(COMPARING)] == COMPARING
    assert names[len(COMPARING) :] == ["thresholds-last-step", "thresholds-best-step", *(f"scores-{task.id}" for task in TASKS[:4])]


def test_each_figure_is_an_svg_and_a_png_of_twice_its_size(tmp_path: Path) -> None:
    write_experiment(tmp_path / "logs", tasks=TASKS[:1], contestants=CONTESTANTS[:1], runs=4, steps=3)

    written = write_figures(load(tmp_path / "logs"), tmp_path / "new" / "figures")

    assert sorted(written) == sorted((tmp_path / "new" / "figures").iterdir())
    svg, png = next(zip(written[::2], written[1::2], strict=True))
    width = float(ElementTree.fromstring(svg.read_text(encoding="utf-8")).get("width", "0"))
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert struct.unpack(">I", png.read_bytes()[16:20])[0] == pytest.approx(2 * width, abs=2)


def test_few_runs_have_their_own_figures_only(tmp_path: Path) -> None:
    write_run(tmp_path / "logs", "one")
    write_run(tmp_path / "logs", "two", steps=[ExampleStep("Final Answer", reason="no submission")])

    assert [figure.name for figure in figures(load(tmp_path / "logs"))] == ["score-one"]


def test_a_name_from_a_run_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    for number, task in enumerate(("../../etc/passwd", "../../etc/passwd", "..//..//etc//passwd", "a\x00b\n" * 50)):
        write_run(tmp_path / "logs", f"run-{number}", task=task)

    written = write_figures(load(tmp_path / "logs"), tmp_path / "figures")

    assert {path.parent for path in written} == {tmp_path / "figures"}
    assert len(set(written)) == len(written)
    assert any(path.name == "scores-..-..-etc-passwd.svg" for path in written)


def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    write_run(tmp_path / "logs")
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="choose another folder with --figures"):
        write_figures(load(tmp_path / "logs"), tmp_path / "file")
