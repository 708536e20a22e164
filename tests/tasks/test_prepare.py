"""Data is prepared once, whole or not at all."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from mlagentbench.errors import TaskError
from mlagentbench.tasks.catalogue import Task, load_task
from mlagentbench.tasks.prepare import prepared
from tests.tasks.test_catalogue import GRADE, SPEC

PREPARE = """
import os, time
from pathlib import Path

def mini(public, private, seed):
    with open(Path(__file__).parents[1] / "calls.txt", "a") as calls:
        calls.write(f"{os.getpid()}\\n")
    (public / "train.csv").write_text(f"seed {seed}")
    time.sleep(0.3)
    (private / "answers.csv").write_text("42")
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task with a mini variant and no full one."""
    folder = tmp_path / "tiny"
    (folder / "starter").mkdir(parents=True)
    for name, text in {"task.toml": SPEC, "problem.md": "p", "grade.py": GRADE, "prepare.py": PREPARE}.items():
        (folder / name).write_text(text)
    return load_task(folder)


def prepare(folder: Path, cache: Path) -> None:
    prepared(load_task(folder), "mini", cache)


def test_data_is_split_into_what_the_agent_sees_and_what_it_does_not(task: Task, tmp_path: Path) -> None:
    public, private = prepared(task, "mini", tmp_path / "cache")
    assert public is not None and private is not None
    assert (public / "train.csv").read_text() == "seed 0"
    assert (private / "answers.csv").read_text() == "42"
    assert not (public / "answers.csv").exists()


def test_processes_that_prepare_at_once_prepare_once(task: Task, tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=prepare, args=(task.folder, tmp_path / "cache")) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len((tmp_path / "calls.txt").read_text().splitlines()) == 1


def test_a_preparation_that_fails_leaves_nothing_behind(task: Task, tmp_path: Path) -> None:
    (task.folder / "prepare.py").write_text(PREPARE + "    raise RuntimeError('torn')\n")
    with pytest.raises(RuntimeError, match="torn"):
        prepared(task, "mini", tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache" / "tiny").iterdir()] == [".mini.lock"]


def test_a_variant_that_is_not_there_says_which_is(task: Task, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no function 'full'.*--variant"):
        prepared(task, "full", tmp_path / "cache")


def test_a_task_without_data_needs_none(task: Task, tmp_path: Path) -> None:
    (task.folder / "prepare.py").unlink()
    assert prepared(task, "full", tmp_path / "cache") == (None, None)
