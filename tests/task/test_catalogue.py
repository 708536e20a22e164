"""Tasks are found by their folders, and a folder that breaks the rules is told so by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mlagentbench.errors import TaskError
from mlagentbench.task.catalogue import find_task, find_tasks, load_task
from mlagentbench.task.spec import Metric

SPEC = """
id = "tiny"
title = "A tiny task"
category = "a test"
modality = "text"
published = 2026-01-31

[metric]
name = "accuracy"
direction = "maximize"

[submission]
mode = "file"
files = ["submission.csv"]
required = ["submission.csv"]
"""
GRADE = "from mlagentbench.records import Score\n\n\ndef grade(context):\n    return Score(value=0.5)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small task's folder."""
    folder = tmp_path / "tasks" / "tiny"
    (folder / "starter").mkdir(parents=True)
    (folder / "starter" / "train.py").write_text("print('hello')\n")
    (folder / "task.toml").write_text(SPEC)
    (folder / "problem.md").write_text("Make it better.\n")
    (folder / "grade.py").write_text(GRADE)
    return folder


def test_a_folder_is_a_task_by_itself_or_among_others(folder: Path) -> None:
    for path in (folder, folder.parent):
        task = find_task("tiny", [path])
        assert task.problem == "Make it better.\n"
        assert (task.starter / "train.py").is_file()
        assert task.spec.limits.steps == 50


def test_the_built_in_tasks_are_found_beside_it(folder: Path) -> None:
    assert {"tiny", "vectorization"} <= set(find_tasks([folder]))


def test_a_tasks_modules_are_imported_from_its_own_folder(folder: Path) -> None:
    module = load_task(folder).module("grade")
    assert module is not None
    assert module.grade(None).value == 0.5
    assert load_task(folder).module("prepare") is None


@pytest.mark.parametrize(
    "old, new, complaint",
    [
        ('name = "accuracy"', 'name = "accuracy"\nunits = "%"', "metric.units: there is no such key"),
        ('category = "a test"', 'category = "a test"\nseed = 1', "seed: there is no such key"),
        ('direction = "maximize"', 'direction = "up"', "metric.direction"),
        ('title = "A tiny task"', "", "title: Field required"),
        ('id = "tiny"', 'id = "Tiny Task"', "id:"),
        ("[metric]", "[metric", "task.toml"),
        ("[metric]", "[limits]\nsteps = 0\n\n[metric]", "limits.steps"),
    ],
)
def test_a_broken_spec_is_one_line_that_names_the_key_and_the_file(folder: Path, old: str, new: str, complaint: str) -> None:
    (folder / "task.toml").write_text(SPEC.replace(old, new, 1))
    with pytest.raises(TaskError) as error:
        load_task(folder)
    assert complaint in str(error.value)
    assert str(folder / "task.toml") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("part", ["problem.md", "starter", "grade.py", "task.toml"])
def test_a_folder_that_lacks_a_part_is_no_task(folder: Path, part: str) -> None:
    path = folder / part
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(TaskError, match=part):
        load_task(folder)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (SPEC.replace("[metric]", "[metric").encode(), r"task\.toml is no TOML: .*\(at line 8, column 8\)"),
        (SPEC.replace("A tiny", "A t\xefny").encode("latin-1"), r"task\.toml, line 3: it is not written in UTF-8"),
    ],
)
def test_a_task_that_cannot_be_read_is_told_with_its_file_and_line(folder: Path, content: bytes, place: str) -> None:
    folder = folder.rename(folder.with_name("my_task"))
    (folder / "task.toml").write_bytes(content)
    for path in (folder, folder.parent):
        # By the id that its folder has, which is not quite its name, and by another that only its file would tell.
        with pytest.raises(TaskError, match=place) as asked:
            find_task("my-task", [path])
        assert "there is no task" not in str(asked.value)
        with pytest.raises(TaskError, match=rf"there is no task 'tiny'; there are: .*\. .*{place}"):
            find_task("tiny", [path])
        with pytest.raises(TaskError, match=place):
            find_tasks([path])
    assert find_task("vectorization", [folder]).id == "vectorization", "which needs none of it"


@pytest.mark.parametrize("module", ["raise RuntimeError('no such device')", None])
def test_tasks_of_a_package_that_cannot_be_imported_are_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str | None) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "theirs-1.0.dist-info").mkdir()
    (tmp_path / "theirs-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (tmp_path / "theirs-1.0.dist-info" / "entry_points.txt").write_text("[mlagentbench.tasks]\ntheirs = their_tasks\n")
    if module is not None:
        (tmp_path / "their_tasks.py").write_text(module)
    why = "RuntimeError: no such device" if module else "ModuleNotFoundError: No module named 'their_tasks'"
    with pytest.raises(TaskError, match=f"the tasks of the package theirs cannot be found: {why}"):
        find_tasks()
    with pytest.raises(TaskError, match=f"there is no task 'theirs'.*{why}"):
        find_task("theirs")
    assert find_task("vectorization").id == "vectorization"


def test_two_tasks_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "other")
    with pytest.raises(TaskError, match="two tasks are called 'tiny'"):
        find_tasks([folder, tmp_path / "other"])


def test_an_unknown_task_is_answered_with_what_there_is(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"there is no task 'tinny'; there are: .*tiny"):
        find_task("tinny", [folder])
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="holds no task"):
        find_tasks([tmp_path / "empty"])


@pytest.mark.parametrize(
    "direction, value, baseline, improvement",
    # By hand: (0.6 - 0.5) / 0.5; (2 - 1.5) / 2; a baseline below zero counts by its size: (-1 - -2) / 2; none over zero.
    [("maximize", 0.6, 0.5, 0.2), ("minimize", 1.5, 2.0, 0.25), ("maximize", -1.0, -2.0, 0.5), ("minimize", 1.0, 0.0, None)],
)
def test_improvement_is_relative_and_in_the_metrics_direction(
    direction: str, value: float, baseline: float, improvement: float | None
) -> None:
    metric = Metric(name="m", direction=direction)  # type: ignore[arg-type]
    assert metric.improvement(value, baseline) == (None if improvement is None else pytest.approx(improvement))


def test_a_folder_can_hold_several_tasks_that_differ_in_their_parameters(folder: Path) -> None:
    instances = "".join(
        f'\n[[instances]]\nid = "tiny-{size}"\ntitle = "Of size {size}"\nparameters = {{ size = {size} }}\n' for size in (2, 3)
    )
    (folder / "task.toml").write_text(SPEC.replace('id = "tiny"\ntitle = "A tiny task"\n', "") + instances)
    (folder / "proof.py").write_text("def solution(*, size):\n    return {'n.txt': str(size)}\n\n\ndef oracle(data):\n    return data\n")
    found = find_tasks([folder])
    for size in (2, 3):
        task = found[f"tiny-{size}"]
        assert task.spec.title == f"Of size {size}" and task.folder == folder.resolve()
        assert load_task(task.path) == task == find_task(f"tiny-{size}", [folder.parent])
        proof = task.module("proof")
        assert proof is not None and proof.solution() == {"n.txt": str(size)} and proof.oracle(1) == 1
    with pytest.raises(TaskError, match="no instance 'tiny-4'"):
        load_task(folder / "tiny-4")
    with pytest.raises(TaskError, match=r"several tasks: name one, such as .*tiny-2"):
        load_task(folder)


def test_statements_say_which_way_the_metric_is_better() -> None:
    for task in find_tasks().values():
        words = {"maximize": "higher is better", "minimize": "lower is better"}[task.spec.metric.direction]
        assert words in task.problem.lower(), task.id
