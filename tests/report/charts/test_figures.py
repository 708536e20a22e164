"""Figures as files: which there are, and what they are called."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mlagentbench.errors import UsageError
from mlagentbench.report.charts.figures import figures, write_figures
from mlagentbench.results.load import load
from tests.example_experiment import CONTESTANTS, TASKS, Contestant, write_experiment
from tests.example_runs import ExampleStep, write_run

OTHERS = [Contestant(f"agent-{number}", "vendor/model-of-some-length", 0.3, 3000, 20, 0.01) for number in range(3)]
COMPARING = [
    *("success", "improvement", "success-by-category", "comparisons"),
    *("success-and-tokens", "success-and-time", "success-and-cost", "cost-per-success", "verdicts", "endings"),
    *("thresholds-last-step", "thresholds-best-step", "profiles"),
    *(f"{measure}-by-{spent}" for spent in ("steps", "tokens", "dollars", "hours") for measure in ("success", "improvement")),
    *("pass-at-k", "best-of-k"),
]


def test_an_experiment_has_a_figure_for_every_comparison_and_every_task(tmp_path: Path) -> None:
    write_experiment(tmp_path / "logs", tasks=TASKS[:4], contestants=CONTESTANTS[:3], runs=4, steps=4, seed=2)

    found = list(figures(load(tmp_path / "logs")))

    assert [figure.name for figure in found] == [*COMPARING, *(f"scores-{task.id}" for task in TASKS[:4])]
    assert [figure.name for figure in found if not (figure.chart.title and figure.chart.title["text"])] == [], "every figure has a title"
    by_name = {figure.name: figure.chart for figure in found}
    assert all("chosen on the hidden test" in by_name[name].title["subtitle"] for name in ("thresholds-best-step", "best-of-k"))


def test_what_would_say_nothing_with_so_few_runs_is_not_drawn(tmp_path: Path) -> None:
    write_experiment(tmp_path / "logs", tasks=TASKS[:1], contestants=CONTESTANTS[:2], runs=2, steps=4)

    names = {figure.name for figure in figures(load(tmp_path / "logs"))}

    assert "comparisons" in names and names.isdisjoint({"pass-at-k", "best-of-k", "cost-per-success", "success-by-category"})


def test_files_have_a_journals_widths_and_text_of_at_least_7_points(tmp_path: Path) -> None:
    write_experiment(tmp_path / "logs", tasks=TASKS[:3], contestants=[*CONTESTANTS, *OTHERS], runs=2, steps=3)
    folder = tmp_path / "new" / "figures"

    written = write_figures(load(tmp_path / "logs"), folder)

    assert sorted(written) == sorted(folder.iterdir())
    widths = set()
    for svg, pdf, png in zip(written[::3], written[1::3], written[2::3], strict=True):
        assert (svg.suffix, pdf.suffix, png.suffix) == (".svg", ".pdf", ".png")
        root = ElementTree.fromstring(svg.read_text(encoding="utf-8"))
        inches = float(root.attrib["width"].removesuffix("in"))
        widths.add(inches)
        [box] = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", pdf.read_bytes())
        assert [float(length) / 72 for length in box] == pytest.approx([inches, float(root.attrib["height"].removesuffix("in"))], abs=0.01)
        picture = png.read_bytes()
        assert struct.unpack(">I", picture[16:20])[0] == pytest.approx(300 * inches, abs=1.5)
        density = picture.index(b"pHYs") + 4
        assert struct.unpack(">IIB", picture[density : density + 9]) == (11811, 11811, 1), "300 dots per inch, in metres"
        scale = inches * 72 / float(root.attrib["viewBox"].split()[2])
        sizes = [float(each.attrib["font-size"].removesuffix("px")) * scale for each in root.iter() if "font-size" in each.attrib]
        assert min(sizes) >= 6.99, (svg.name, min(sizes))
    assert widths == {3.25, 6.75}


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
