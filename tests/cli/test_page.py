"""Pages of runs: a command's own, and what becomes of a fault in making one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from mlagentbench.cli.main import run as mlab
from mlagentbench.cli.output.page import PAGES, drawing, print_own_page
from mlagentbench.errors import ReportFailed
from tests.example_runs import write_run


def printed(logs: Path, *names: str) -> str:
    """Write three runs, and what `print_own_page` prints for some of them."""
    found = {name: write_run(logs, name) for name in ("one", "two", "other")}
    console = Console(file=io.StringIO(), width=80)
    print_own_page(console, [found[name] for name in names])
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_command_writes_a_page_of_its_own_runs_alone(tmp_path: Path) -> None:
    told = printed(tmp_path, "one", "two")

    page = tmp_path / PAGES / "one.html"
    assert told.split() == ["page", str(page)]
    html = page.read_text(encoding="utf-8")
    assert "one-runs/one.html" in html and "one-runs/two.html" in html and "other.html" not in html
    assert sorted(path.name for path in page.with_name("one-runs").iterdir()) == ["one.html", "two.html"]
    assert not (tmp_path / "report.html").exists(), "the overview of all runs is for mlab report"


def test_a_page_that_cannot_be_written_is_one_line_and_no_error(tmp_path: Path) -> None:
    (tmp_path / PAGES).write_text("no folder")

    told = printed(tmp_path, "one")

    assert told.count("\n") == 1 and "No page of the runs was written: cannot write the report to" in told


def test_any_fault_in_drawing_is_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(ReportFailed, match=r"the page could not be made: KeyError: 'research'; the runs are as they were"),
        drawing("the page"),
    ):
        {}["research"]


def test_an_agent_without_a_counted_run_has_a_page_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "refused", agent="act", ended="infrastructure", verdict="ungraded", reason="401: wrong key")
    for number in range(4):
        write_run(tmp_path, f"good-{number}")

    assert mlab(["report", str(tmp_path), "--figures", str(tmp_path / "figures")]) == 0

    assert "5 runs of 1 task by 2 agents; 4 counted" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file() and (tmp_path / "figures" / "thresholds-last-step.svg").is_file()
