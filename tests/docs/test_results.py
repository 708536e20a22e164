"""The page on results: its example prints what it says, and its tables name every column and every flag."""

from __future__ import annotations

import contextlib
import datetime
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from mlagentbench.records import Flag
from mlagentbench.results.frames import RUNS, STEPS
from tests.example_runs import vectorization_steps, write_run

PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    facts: dict[str, Any] = {"agent_options": {}, "models": {"agent": "scripted/demo"}, "snapshots": False}
    facts |= {"category": "code improvement", "published": datetime.date(2023, 10, 5)}
    write_run(tmp_path / "runs", "a-run", started=1.0, **facts)
    write_run(tmp_path / "runs", "b-run", vectorization_steps(fast=1.1), verdict="no_improvement", started=2.0, **facts)
    write_run(tmp_path / "runs", "c-run", vectorization_steps()[:3], finished=False, agent="react", started=3.0, **facts)

    names: dict[str, Any] = {}
    tried = 0
    for (language, code), (_, expected) in zip(BLOCKS[::2], BLOCKS[1::2], strict=True):
        assert language == "python"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/results.md", "exec"), names)
        assert printed.getvalue() == expected
        tried += 1
    assert tried == 5


def test_the_papers_agents_are_compared_as_the_benchmark_does() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "paper_comparisons.py"
    made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout

    assert made.count("\n") == 2 + 28 and made in PAGE
    assert "| Claude v3 Opus less Mixtral | +33.7 [23 to 45] | < 0.00001 |" in made


@pytest.mark.parametrize(("heading", "columns"), [("logs.frame()", RUNS), ("logs.steps_frame()", STEPS)])
def test_every_column_is_on_the_page(heading: str, columns: dict[str, Any]) -> None:
    table = PAGE.split(f"| `{heading}` | |\n|---|---|\n")[1].split("\n\n")[0]
    named = [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])]

    assert sorted(named) == sorted(columns)


def test_every_flag_is_on_the_page() -> None:
    table = PAGE.split("## Flags")[1].split("##")[0]

    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set(get_args(Flag))
