"""docs/your-own-agent.md: everything on the page is carried out, in its order."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from mlagentbench import Environment
from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests import commands

PAGE = Path(__file__).parents[2] / "docs" / "your-own-agent.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def run(arguments: list[str]) -> int:
    """The exit status of `mlab` with arguments."""
    return commands.run([*commands.MLAB, *arguments], stdin=subprocess.DEVNULL).returncode


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCKS if found == kind]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "replies.yaml").write_text(blocks("yaml")[0])
    for name, text in zip(("agent.py", "counter.py"), blocks("python"), strict=True):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_agent_has_about_thirty_lines() -> None:
    body = blocks("python")[0].split("class Reviser")[1].split("\n\n\n")[0]
    assert len([line for line in body.splitlines() if line.strip()]) <= 30


def by_start(logs: Path) -> list[RunDirectory]:
    """The runs in the order in which they began, also where two of them began within a second."""
    return sorted(find_runs(logs), key=lambda run: run.info.started)


@pytest.mark.slow
def test_the_page_holds_what_it_says(place: Path) -> None:
    commands = [shlex.split(line)[1:] for block in blocks("sh") for line in block.splitlines()]
    assert [command[0] for command in commands] == ["tasks", "run", "run"]
    for command in commands:
        assert run(command) == 0, command
    first, second = by_start(place / "runs")
    assert [step.action.name for step in first.steps()] == ["Execute Script", "Write File", "Execute Script", "Final Answer"]
    assert first.steps()[1].malformed == 1, "the first reply holds no script"
    assert first.result is not None and first.result.improvement is not None and first.result.improvement > 0
    assert [step.action.name for step in second.steps()] == ["Execute Script", "Final Answer"], "no rounds"

    counting = ["run", "concrete", "--task-path", ".", "--variant", "mini", "--agent", "counter.py:Counter"]
    assert run([*counting, "--steps", "2"]) == 0
    cut = by_start(place / "runs")[-1]
    assert [step.memory["tries"] for step in cut.steps()] == [1, 2]
    assert run(["resume", str(cut.path), "--steps", "10"]) == 0
    assert cut.result is not None and cut.result.final_answer == "3 tries"
    assert len(cut.steps()) == 4


def test_the_table_names_what_there_is() -> None:
    rows = re.findall(r"^\| `(.*?) \||^\| `(.*?)` \|", PAGE.read_text(), re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"\.(\w+)", "".join(row))}
    assert {"execute", "ask_agent", "ask", "steps", "ended", "seconds_left"} <= names
    known = set(dir(Environment)) | set(re.findall(r"self\.(\w+)", Path(str(Environment.__init__.__code__.co_filename)).read_text()))
    assert names <= known


def test_the_entry_point_is_of_the_group_that_is_looked_at() -> None:
    from mlagentbench.agents.base import ENTRY_POINT_GROUP

    (table,) = blocks("toml")
    points = tomllib.loads(table)["project"]["entry-points"]
    assert list(points) == [ENTRY_POINT_GROUP]
    assert EntryPoint("reviser", points[ENTRY_POINT_GROUP]["reviser"], ENTRY_POINT_GROUP).attr == "Reviser"
