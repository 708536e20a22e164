"""`mlab tasks check`, as a user meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from mlagentbench.checks.check import FIRST_RUNS
from mlagentbench.report.formatting import MINUS
from mlagentbench.task.new import new_task
from tests import commands
from tests.cli.test_cli import complaint, here, mlab
from tests.support import made_once

slow = pytest.mark.slow


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A folder with a task that holds, and one whose generator forgets its seed and that has no proofs."""
    return make_tasks(tmp_path / "tasks")


def make_tasks(folder: Path) -> Path:
    new_task("sound", folder)
    unsound = new_task("unsound", folder).folder
    (unsound / "proof.py").unlink()
    prepare = unsound / "prepare.py"
    prepare.write_text(prepare.read_text().replace("default_rng(seed)", "default_rng(0)"))
    return folder


class Checked(NamedTuple):
    """Both tasks, checked twice."""

    as_table: subprocess.CompletedProcess[str]
    as_json: subprocess.CompletedProcess[str]
    pages: list[str]
    """The page of the catalogue that each wrote."""


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = made_once(tmp_path_factory, "checked", check_twice)
    found = json.loads((folder / "found.json").read_text())
    as_table, as_json = (subprocess.CompletedProcess(**one) for one in found)
    return Checked(as_table, as_json, [(folder / name).read_text() for name in ("one.md", "two.md")])


def check_twice(folder: Path) -> None:
    check = ("tasks", "check", "--task-path", make_tasks(folder / "tasks"), "--markdown")
    environment = {"COLUMNS": "120"}
    as_table = mlab(*check, folder / "one.md", "sound", "unsound", environment=environment)
    as_json = mlab(*check, folder / "two.md", "sound", "unsound", "--json", "--parallel", "1", environment=environment)
    (folder / "found.json").write_text(json.dumps([vars(one) | {"args": []} for one in (as_table, as_json)]))


@slow
def test_a_table_says_what_was_measured_and_a_line_what_to_do(checked: Checked) -> None:
    finished = checked.as_table
    assert finished.returncode == 1, finished.stderr
    lines = finished.stdout.splitlines()
    heading = next(line for line in lines if line.startswith("task "))
    assert heading.split() == [
        "task",
        "starter",
        "seconds",
        "oracle",
        "constant",
        "shuffled",
        "solution",
        "ineffective",
        "invalid",
        "leaks",
        "verdict",
    ]
    rows = {line.split()[0]: line.split() for line in lines[lines.index(heading) + 1 :] if line}
    assert rows["sound"][1] == "6.12" and rows["sound"][-3:] == ["16/16", "none", "ok"]
    assert rows["unsound"][-1] == "failed"
    assert "unsound: seeded: another seed gives the same data; mini must draw from the seed it is given" in lines
    assert lines[-1] == "2 tasks checked; 1 task failed."


@slow
def test_a_new_task_proves_itself_and_progress_keeps_out_of_the_json(checked: Checked) -> None:
    finished = checked.as_json
    found, other = json.loads(finished.stdout)
    assert (found["task"], found["verdict"], other["task"], other["verdict"]) == ("sound", "ok", "unsound", "failed")
    assert {finding["status"] for finding in found["findings"]} == {"ok"}
    numbers = found["numbers"]
    assert numbers["oracle"] == 0.0
    assert numbers["solution"] < numbers["baseline"] < numbers["constant"] < numbers["shuffled"]
    assert numbers["solution_improvement"] == pytest.approx((numbers["baseline"] - numbers["solution"]) / numbers["baseline"])
    assert len(numbers["starter"]) == len(numbers["starter_seconds"]) == FIRST_RUNS, "the seed makes no difference to it"
    assert numbers["starter_spread"] == 0.0
    assert numbers["refused"] == numbers["invalid"] == 16
    assert "unsound" in finished.stderr and finished.returncode == 1


@slow
def test_the_page_of_the_catalogue_is_the_same_each_time(checked: Checked) -> None:
    page, again = checked.pages
    assert page == again
    assert "## My own" in page
    row = next(line for line in page.splitlines() if "`sound`" in line).strip("| ").split(" | ")
    assert row[2:5] == ["root mean squared error ↓", "6.1 MPa", "0%"]
    assert row[5].startswith(MINUS) and row[6].startswith(MINUS), "neither the setting nor a constant gains anything"
    assert re.fullmatch(r"[\d.]+ MPa \(\+\d\d%\)", row[7])
    assert row[8:] == ["—", "generated"]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((), "name the tasks to check, or give --all"),
        (("vectorization", "--all"), "name the tasks to check, or give --all"),
        (("vectorisation",), "there is no task 'vectorisation'"),
        (("vectorization", "--variant", "tiny"), "--variant"),
        (("vectorization", "--parallel", "0"), "--parallel"),
        (("vectorization", "--markdown", "nowhere/tasks.md"), "there is no folder nowhere"),
    ],
)
def test_what_is_asked_wrongly_is_one_line_and_status_2(arguments: tuple[str, ...], expected: str) -> None:
    finished = here("tasks", "check", *arguments)
    assert expected in complaint(finished)
    assert finished.returncode == 2


@slow
def test_an_interrupt_ends_it_at_once_and_leaves_nothing(tasks: Path, tmp_path: Path) -> None:
    starter = tasks / "sound" / "starter" / "train.py"
    starter.write_text("import time\ntime.sleep(300)\n" + starter.read_text())
    command = [*commands.MLAB, "tasks", "check", "sound", "--task-path", str(tasks)]
    process = commands.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob("mlab-starter-*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130, output
    assert "Traceback" not in output, output
    assert [path.name for path in tmp_path.glob("mlab-*")] == []
