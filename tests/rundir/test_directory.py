"""A run's directory: whole records, first writer wins, one process at a time."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.errors import RunNotFound, StorageFailed, UsageError
from mlagentbench.records import Action, ModelCall, Step, Usage
from mlagentbench.rundir.directory import RunDirectory, find_runs, prepare_log_directory
from mlagentbench.rundir.names import new_name
from tests.support import run_info


def step(number: int, observation: str = "seen") -> Step:
    return Step(number=number, action=Action(name="List Files"), observation=observation, started=0.0, seconds=0.1)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A new run."""
    return RunDirectory.create(prepare_log_directory(tmp_path), run_info("a-run"))


def test_what_is_written_is_read_back(directory: RunDirectory) -> None:
    directory.publish_step(step(1, "ünïcode \x1b[31m \ud7ff"))
    call = ModelCall(role="agent", model="m", purpose="agent", prompt="p\u2028q", reply="r\nr", usage=Usage(calls=1), seconds=0.5)
    directory.append_call(1, call)
    directory.append_call(1, call)
    assert directory.info == run_info("a-run")
    assert directory.steps() == [step(1, "ünïcode \x1b[31m \ud7ff")]
    assert directory.calls(1) == [call, call]
    assert directory.result is None


def test_the_first_writer_of_a_step_wins(directory: RunDirectory) -> None:
    directory.publish_step(step(1, "first"))
    with pytest.raises(StorageFailed):
        directory.publish_step(step(1, "second"))
    assert directory.steps()[0].observation == "first"
    assert [path.name for path in directory.steps_folder.iterdir()] == ["0001.json"], "nothing half-written is left"


def test_a_torn_last_call_is_left_out(directory: RunDirectory) -> None:
    call = ModelCall(role="agent", model="m", purpose="agent", prompt="p", reply="r", usage=Usage(calls=1), seconds=0.5)
    directory.append_call(1, call)
    with (directory.steps_folder / "0001.calls.jsonl").open("a") as file:
        file.write('{"role": "agent", "mod')
    assert directory.calls(1) == [call]


def test_two_runs_of_one_name_are_refused(directory: RunDirectory) -> None:
    with pytest.raises(StorageFailed):
        RunDirectory.create(directory.path.parent, run_info("a-run"))


def test_a_run_is_held_by_one_process(directory: RunDirectory) -> None:
    code = f"""
from pathlib import Path
from mlagentbench.rundir.directory import RunDirectory
with RunDirectory(Path({str(directory.path)!r})).lock():
    print("held")
"""
    with directory.lock():
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "another process is working on" in other.stderr
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "held\n"


def publish(path: Path, observation: str) -> None:
    try:
        RunDirectory(path).publish_step(step(1, observation * 50_000))
    except StorageFailed:
        sys.exit(7)


def test_of_many_writers_at_once_one_wins_whole(directory: RunDirectory) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=publish, args=(directory.path, letter)) for letter in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(writer.exitcode or 0 for writer in writers) == [0, 7, 7, 7]
    (winner,) = directory.steps()
    assert len(set(winner.observation)) == 1 and len(winner.observation) == 50_000


def test_runs_are_found_in_a_log_directory_and_by_their_own(directory: RunDirectory, tmp_path: Path) -> None:
    assert [run.name for run in find_runs(tmp_path)] == ["a-run"]
    assert [run.name for run in find_runs(directory.path)] == ["a-run"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunNotFound, match="no runs"):
        find_runs(tmp_path / "empty")


def test_a_damaged_record_is_named(directory: RunDirectory) -> None:
    (directory.path / "run.json").write_text("{")
    with pytest.raises(RunNotFound, match=r"run\.json is damaged"):
        _ = directory.info


def test_a_log_directory_that_cannot_be_is_one_line() -> None:
    with pytest.raises(UsageError, match="cannot write to the log directory /proc/runs"):
        prepare_log_directory(Path("/proc/runs"))


def test_names_say_what_and_differ() -> None:
    first, second = new_name("a-task", "research"), new_name("a-task", "research")
    assert "-a-task-research-" in first
    assert first != second
