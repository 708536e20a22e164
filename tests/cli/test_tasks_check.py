"""`mlab tasks check`, as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from mlagentbench.tasks.new import new_task
from tests import commands
from tests.cli.test_cli import complaint, mlab

slow = pytest.mark.slow


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A folder with a task that holds, and one whose generator forgets its seed."""
    folder = tmp_path / "tasks"
    new_task("sound", folder)
    prepare = new_task("unsound", folder).folder / "prepare.py"
    prepare.write_text(prepare.read_text().replace("default_rng(seed)", "default_rng(0)"))
    return folder


@slow
def test_a_table_says_what_was_measured_and_a_line_what_to_do(tasks: Path) -> None:
    finished = mlab("tasks", "check", "sound", "unsound", "--task-path", tasks, environment={"COLUMNS": "120"})
    assert finished.returncode == 1, finished.stderr
    lines = finished.stdout.splitlines()
    heading = next(line for line in lines if line.startswith("task "))
    assert heading.split() == ["task", "starter", "seconds", "gold", "constant", "shuffled", "good", "lazy", "junk", "leaks", "verdict"]
    rows = {line.split()[0]: line.split() for line in lines[lines.index(heading) + 1 :] if line}
    assert rows["sound"][1] == "6.98" and rows["sound"][-3:] == ["15/15", "none", "ok"]
    assert rows["unsound"][-1] == "failed"
    assert "unsound: seeded: another seed gives the same data; mini must draw from the seed it is given" in lines
    assert lines[-1] == "2 tasks checked; 1 task failed."


@slow
def test_json_has_every_finding_and_progress_keeps_out_of_it(tasks: Path) -> None:
    finished = mlab("tasks", "check", "unsound", "sound", "--task-path", tasks, "--json", "--parallel", "1")
    first, second = json.loads(finished.stdout)
    assert (first["task"], first["verdict"], second["task"], second["verdict"]) == ("unsound", "failed", "sound", "ok")
    assert {"name": "gold", "status": "ok", "detail": ""} in second["findings"]
    assert second["numbers"]["refused"] == second["numbers"]["junk"] == 15
    assert "unsound" in finished.stderr and finished.returncode == 1


@slow
def test_the_page_of_the_catalogue_is_the_same_each_time(tasks: Path, tmp_path: Path) -> None:
    pages = []
    for name in ("one.md", "two.md"):
        assert mlab("tasks", "check", "sound", "--task-path", tasks, "--markdown", tmp_path / name).returncode == 0
        pages.append((tmp_path / name).read_text())
    assert pages[0] == pages[1]
    assert "## My own" in pages[0]
    row = next(line for line in pages[0].splitlines() if "`sound`" in line).strip("| ").split(" | ")
    assert row[2:] == ["root mean squared error ↓", "7.0 MPa", "18 MPa", "2.6 MPa", "—", "generated"]


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
    finished = mlab("tasks", "check", *arguments)
    assert expected in complaint(finished)
    assert finished.returncode == 2


@slow
def test_an_interrupt_ends_it_at_once_and_leaves_nothing(tasks: Path, tmp_path: Path) -> None:
    starter = tasks / "sound" / "starter" / "train.py"
    starter.write_text("import time\ntime.sleep(300)\n")
    command = [*commands.MLAB, "tasks", "check", "sound", "--task-path", str(tasks)]
    process = commands.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("mlab-starter-*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert "Traceback" not in output, output
    assert [path.name for path in tmp_path.glob("mlab-*")] == []
