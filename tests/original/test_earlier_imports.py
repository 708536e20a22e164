"""A log is known again, whatever became of it since it was imported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlagentbench.original.write import ImportedRun, import_logs
from mlagentbench.results.load import load
from tests.original.logs import OriginalLog, example


def import_one(log: Path, runs: Path) -> ImportedRun:
    """Import a folder that holds one log."""
    (found,) = import_logs(log, runs, grade=False)
    assert found.run is not None, found.reason
    return found


def cut(path: Path, before: str) -> None:
    """End a file where a text begins; without it, empty the file."""
    text = path.read_text()
    path.write_text(text[: text.index(before)] if before else "")


@pytest.mark.parametrize("before", ['"low_level_steps"', '"name": "Final Answer"', '"name": "Edit Script (AI)"', '"steps"', ""])
def test_a_log_that_was_torn_and_then_mended_is_the_same_run(tmp_path: Path, before: str) -> None:
    whole = example(tmp_path / "log").end(files={"train.py": ""})
    torn = shutil.copytree(whole, tmp_path / "copies" / "log")
    cut(torn / "env_log" / "trace.json", before)
    import_one(torn, tmp_path / "runs")
    shutil.copytree(whole, torn, dirs_exist_ok=True)
    mended = import_one(torn, tmp_path / "runs")

    assert mended.state == "renewed"
    (run,) = load(tmp_path / "runs")
    assert run.problems == ()
    assert len(list((tmp_path / "runs").glob("*.eval"))) == 1


def test_a_log_that_is_still_written_is_the_same_run_from_before_its_first_step_to_its_end(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log")
    log.call(log.agent / "step_0_log.log", "Begin.", "Hm.")
    states = [import_one(log.root, tmp_path / "runs").state]
    for number in range(3):
        log.turn("List Files", {"dir_path": "."}, f"file {number}")
        states.append(import_one(log.end(), tmp_path / "runs").state)
    assert states == ["new", "renewed", "renewed", "renewed"]
    assert [len(run.steps) for run in load(tmp_path / "runs")] == [3]


def test_a_log_that_moved_and_grew_is_the_same_run(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log")
    log.turn("List Files", {"dir_path": "."}, "train.py")
    import_one(log.end(), tmp_path / "runs")
    log.turn("Final Answer", {"final_answer": "Done."}, "end")
    moved = log.end().rename(tmp_path / "moved")
    assert import_one(moved, tmp_path / "runs").state == "renewed"
    assert [len(run.steps) for run in load(tmp_path / "runs")] == [2]


@pytest.mark.parametrize("first", ["a torn copy", "log"])
def test_of_two_copies_the_one_with_more_steps_stays(tmp_path: Path, first: str) -> None:
    log = example(tmp_path / "logs" / "log").end()
    copy = shutil.copytree(log, tmp_path / "logs" / "a torn copy")
    cut(copy / "env_log" / "trace.json", '"name": "Edit Script (AI)"')
    for path in copy.glob("agent_log/agent_*.json"):
        path.unlink()
    import_one(tmp_path / "logs" / first, tmp_path / "runs")
    import_logs(tmp_path / "logs", tmp_path / "runs")
    again = import_logs(tmp_path / "logs", tmp_path / "runs")

    assert [each.state for each in again] == ["there already", "there already"]
    assert [len(run.steps) for run in load(tmp_path / "runs")] == [3]


def test_a_folder_that_another_run_used_again_holds_another_run(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    import_one(log.end(), tmp_path / "runs")
    for step in log.steps:
        step["timestamp"] += 1000
    assert import_one(log.end(), tmp_path / "runs").state == "new"
    assert len(load(tmp_path / "runs")) == 2


def test_a_run_that_was_resumed_is_another_than_the_one_it_goes_on_with(tmp_path: Path) -> None:
    def resumed(number: int, steps: int) -> OriginalLog:
        log = OriginalLog(tmp_path / f"resumed {number}")
        log.arguments |= {"resume": "logs/log", "resume_step": 0}
        for step in range(steps):
            log.turn("List Files", {"dir_path": "."}, "train.py")
            log.steps[-1]["timestamp"] += number * 1000 * (step > 0)
        return log

    first = OriginalLog(tmp_path / "log")
    first.turn("List Files", {"dir_path": "."}, "train.py")
    found = [import_one(log.end(), tmp_path / "runs").state for log in (first, resumed(1, 2), resumed(2, 2))]
    shutil.rmtree(tmp_path / "resumed 1")
    found.append(import_one(resumed(1, 3).end(), tmp_path / "runs").state)

    assert found == ["new", "new", "new", "renewed"]
    assert sorted(len(run.steps) for run in load(tmp_path / "runs")) == [1, 2, 3]


def test_a_run_of_autogpt_that_grew_is_the_same_run(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", agent="AutoGPTAgent")
    for number in range(2):
        reply = json.dumps({"command": {"name": "list_files", "args": {"directory": str(number)}}})
        log.call(log.agent / f"gpt-4_20230801-10000{number}.log", "Goals.", reply)
        state = import_one(log.end().rename(tmp_path / f"moved {number}"), tmp_path / "runs").state
        (tmp_path / f"moved {number}").rename(log.root)
    assert state == "renewed"
    assert [len(run.steps) for run in load(tmp_path / "runs")] == [2]


def _as_of_an_earlier_version(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    del info["imported"]["beginning"]
    (run / "run.json").write_text(json.dumps(info))


def _as_a_stopped_import(run: Path) -> None:
    (run / "result.json").unlink()


@pytest.mark.parametrize("become", [_as_of_an_earlier_version, _as_a_stopped_import])
def test_what_was_imported_otherwise_is_replaced(tmp_path: Path, become: Callable[[Path], None]) -> None:
    log = example(tmp_path / "log")
    run = import_one(log.end(), tmp_path / "runs").run
    assert run is not None
    become(run.directory.path)
    log.turn("List Files", {"dir_path": "."}, "train.py")
    assert import_one(log.end(), tmp_path / "runs").state == "renewed"
    assert [len(run.steps) for run in load(tmp_path / "runs")] == [4]
