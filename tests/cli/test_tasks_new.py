"""`mlab tasks new`, as a user meets it."""

from __future__ import annotations

import json
import shlex
import stat
import tomllib
from pathlib import Path

import pytest

from mlagentbench.task.catalogue import load_task
from mlagentbench.task.new import TEMPLATE, new_task
from tests.cli.test_cli import complaint, mlab


def test_a_new_task_is_a_folder_and_the_next_commands_are_told(tmp_path: Path) -> None:
    finished = mlab("tasks", "new", "my-task", "--dir", tmp_path / "mine", "--title", 'Bricks, "red"')
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    folder = tmp_path / "mine" / "my_task"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert names == {"task.toml", "problem.md", "prepare.py", "grade.py", "proof.py", "starter", "starter/train.py"}
    assert sum(len((folder / name).read_text().splitlines()) for name in ("grade.py", "proof.py")) <= 20
    assert f"mlab tasks check my-task --task-path {tmp_path / 'mine'}" in finished.stdout
    assert f"mlab run my-task --task-path {tmp_path / 'mine'} --variant mini --agent baseline" in finished.stdout
    shown = json.loads(mlab("tasks", "show", "my-task", "--json", "--task-path", tmp_path / "mine").stdout)
    assert (shown["id"], shown["title"]) == ("my-task", 'Bricks, "red"')


def test_the_commands_that_are_told_can_be_pasted_whatever_the_folder_is_called(tmp_path: Path) -> None:
    """docs/test_adding_a_task.py runs them."""
    folder = str(tmp_path / "a place")
    told = mlab("tasks", "new", "my-task", "--dir", folder).stdout
    assert [shlex.split(line) for line in told.splitlines() if line.startswith("mlab ")] == [
        ["mlab", "tasks", "check", "my-task", "--task-path", folder],
        ["mlab", "run", "my-task", "--task-path", folder, "--variant", "mini", "--agent", "baseline"],
    ]


@pytest.mark.parametrize(
    "task_id, expected",
    [
        ("My Task", "'My Task' is no task id"),
        ("my_task", "is no task id"),
        ("../up", "is no task id"),
        ("", "is no task id"),
        ("a" * 61, "is no task id"),
        ("vectorization", "there is a task 'vectorization' already"),
        ("taken", "exists already"),
    ],
)
def test_what_cannot_be_made_is_one_line(tmp_path: Path, task_id: str, expected: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("keep me")
    finished = mlab("tasks", "new", task_id, "--dir", tmp_path)
    assert expected in complaint(finished)
    assert finished.returncode == 2
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "mine.txt"]


def test_a_place_that_cannot_be_written_is_one_line() -> None:
    assert "cannot be made" in complaint(mlab("tasks", "new", "my-task", "--dir", "/proc/tasks"))


@pytest.mark.parametrize(
    "title", ['with "quotes"', "back\\slash", "two\nlines", "Ünïcödé \U0001f9f1", "${HOME} \\1 \\g<0>", "tab\tand\x00null"]
)
def test_any_title_stays_what_it_is(tmp_path: Path, title: str) -> None:
    assert new_task("my-task", tmp_path, title).spec.title == title


def test_the_template_is_no_task_of_the_catalogue_and_differs_by_its_name_alone(tmp_path: Path) -> None:
    assert "new-task" not in json.dumps(json.loads(mlab("tasks", "list", "--json").stdout))
    task = new_task("other", tmp_path)
    template = load_task(TEMPLATE)
    assert task.spec == template.spec.model_copy(update={"id": "other"})
    assert tomllib.loads((task.folder / "task.toml").read_text())["id"] == "other"
    for name in ("prepare.py", "grade.py", "proof.py", "problem.md", "starter/train.py"):
        assert (task.folder / name).read_bytes() == (TEMPLATE / name).read_bytes()
        assert (task.folder / name).stat().st_mode & stat.S_IWUSR
