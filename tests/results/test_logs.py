"""`mlagentbench.load`: what a notebook starts from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import mlagentbench
from mlagentbench.errors import RunNotFound
from mlagentbench.results.logs import Logs
from tests.example_runs import vectorization_steps, write_run


def test_a_log_directory_is_loaded_whole(tmp_path: Path) -> None:
    write_run(tmp_path, "a", started=1.0)
    write_run(tmp_path, "b", started=2.0, models={"agent": "scripted/other.yaml"})
    write_run(tmp_path, "c", started=3.0, steps=vectorization_steps()[:2], finished=False)
    (write_run(tmp_path, "d").path / "run.json").write_text("{")

    logs = mlagentbench.load(tmp_path)

    assert [run.name for run in logs.runs] == ["a", "b", "c"]
    assert len(logs.unreadable) == 1 and "d/run.json" in logs.unreadable[0]
    assert logs.frame().height == 3 and logs.steps_frame().height == 18
    assert [len(cell.runs) for cell in logs.cells()] == [2, 1]
    assert list(logs.columns()) == ["research (context_steps 3), scripted/demo.yaml", "research (context_steps 3), scripted/other.yaml"]
    [comparison] = logs.comparisons()
    assert comparison.tasks == ("vectorization",) and comparison.these_tasks is not None and comparison.these_tasks.difference.value == 0


def test_a_path_may_be_text_and_one_runs_directory(tmp_path: Path) -> None:
    directory = write_run(tmp_path, "a")

    assert [run.name for run in mlagentbench.load(str(directory.path)).runs] == ["a"]


def test_several_log_directories_are_loaded_together_each_run_once(tmp_path: Path) -> None:
    write_run(tmp_path / "there", "a", started=2.0)
    write_run(tmp_path / "here", "b", started=1.0)
    write_run(tmp_path / "here", "a", started=3.0)

    logs = mlagentbench.load(tmp_path / "there", tmp_path / "here", tmp_path / "here" / "b")

    assert [(run.directory.path.parent.name, run.name) for run in logs.runs] == [("here", "b"), ("there", "a"), ("here", "a")]


def test_a_run_and_its_copy_in_another_log_directory_are_one_run(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "here", "a")
    shutil.copytree(tmp_path / "here", tmp_path / "there")

    logs = mlagentbench.load(tmp_path / "here", tmp_path / "there")

    assert [run.directory.path for run in logs.runs] == [directory.path]
    assert logs.unreadable == (f"{tmp_path}/there/a is a copy of {directory.path}, which is counted in its place; move the copy elsewhere",)


def test_a_clusters_machines_are_mixed_only_when_asked_and_the_column_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, "a", started=1.0, hardware={"cpu": "one"}, agent_options={})
    write_run(tmp_path, "b", started=2.0, hardware={"cpu": "another"}, agent_options={})

    logs = mlagentbench.load(tmp_path)

    assert list(logs.columns()) == ["research, scripted/demo.yaml, one", "research, scripted/demo.yaml, another"]
    [(column, cells)] = logs.columns(mixing=["hardware"]).items()
    assert column == "research, scripted/demo.yaml, any hardware"
    assert len(cells["vectorization"].runs) == 2 and cells["vectorization"].differences == ("hardware differs: one, another",)


def test_a_log_directory_without_runs_gives_empty_results(tmp_path: Path) -> None:
    logs = mlagentbench.load(tmp_path)

    assert logs == Logs(())
    assert logs.frame().is_empty() and logs.steps_frame().is_empty()
    assert (logs.cells(), dict(logs.columns()), logs.comparisons()) == ([], {}, [])


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="there are no runs"):
        mlagentbench.load(tmp_path / "nowhere")
