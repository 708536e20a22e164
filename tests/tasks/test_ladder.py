"""The ladders: nothing is gained before the last change, no change is found before the one below it, and the grader names the rung."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

from mlagentbench.grading.grade import Graded, grade
from mlagentbench.task.catalogue import Task, find_task, load_task
from mlagentbench.task.proofs import Files
from mlagentbench.tasks.ladder import prepare
from mlagentbench.tasks.ladder.prepare import FULL, MINI, write
from mlagentbench.tasks.ladder.proof import steps
from mlagentbench.tasks.ladder.world import KINDS, MODULUS, Ints, World, make, take

RUNGS = tuple(KINDS)


@pytest.fixture(scope="module")
def starter() -> Iterator[ModuleType]:
    """The starter's script, as a module whose steps are given it by tests."""
    kept = sys.modules.get("steps")
    sys.modules["steps"] = ModuleType("steps")
    sys.modules["steps"].STEPS = []  # type: ignore[attr-defined]
    module = ModuleType("train")
    exec((find_task("ladder-2").starter / "train.py").read_text(), module.__dict__)
    yield module
    del sys.modules["steps"]
    if kept is not None:
        sys.modules["steps"] = kept


def climbed(world: World, done: frozenset[int]) -> list[Ints]:
    """The readings when only some of the steps are taken, with the true columns and numbers."""
    readings = [world.readings[0]]
    for number, step in enumerate(world.steps, 1):
        readings.append(take(step, readings, world.table) if number in done else readings[-1])
    return readings


def error_on_test(starter: ModuleType, world: World, reading: Ints) -> float:
    x = starter.features(reading, world.table)
    weights = starter.fit(x[world.train], world.target[world.train])
    return float(np.sqrt(np.mean((x[world.test] @ weights - world.target[world.test]) ** 2)))


@pytest.mark.parametrize("rungs", RUNGS)
@pytest.mark.parametrize("size", [MINI, FULL], ids=["mini", "full"])
def test_only_all_changes_together_make_the_score_better(starter: ModuleType, rungs: int, size: prepare.LadderSize) -> None:
    world = make(rungs, size, seed=0)
    every = range(1, rungs + 1)
    baseline = error_on_test(starter, world, climbed(world, frozenset())[-1])
    for count in every:
        for done in itertools.combinations(every, count):
            gain = 1 - error_on_test(starter, world, climbed(world, frozenset(done))[-1]) / baseline
            assert gain > 0.5 if count == rungs else abs(gain) < 0.05, (done, gain)


@pytest.mark.parametrize("rungs", (3, 6))
def test_a_step_left_out_keeps_those_above_it_from_being_found(tmp_path: Path, rungs: int) -> None:
    public = prepared(rungs, tmp_path)
    for undone in range(1, rungs):
        lines = run_starter(rungs, tmp_path / f"without {undone}", public, steps(rungs, undone=(undone,)))
        right = [line.endswith("(right)") for line in lines if line.startswith("step") and "references" in line]
        assert right == [number < undone for number in range(1, rungs + 1)]


def test_a_forest_on_the_raw_table_learns_nothing(tmp_path: Path) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    world = make(2, MINI, seed=0)
    x = np.column_stack([column.astype(float) for column in world.table.values()])
    model = ensemble.RandomForestRegressor(n_estimators=15, min_samples_leaf=3, random_state=0).fit(
        x[world.train], world.target[world.train]
    )
    error = np.sqrt(np.mean((model.predict(x[world.test]) - world.target[world.test]) ** 2))
    weather = np.sqrt(np.var(world.target[world.test] - 0.3 * x[world.test, -3] + 0.2 * x[world.test, -2]))
    assert error > 0.9 * weather


@pytest.mark.parametrize("rungs", (2, 6))
def test_the_grader_names_the_rung_at_which_a_plan_broke(tmp_path: Path, rungs: int) -> None:
    public = prepared(rungs, tmp_path)
    for undone in (1, rungs, None):
        folder = tmp_path / f"without {undone}"
        run_starter(rungs, folder, public, steps(rungs, undone=(undone,) if undone else ()))
        found = graded(find_task(f"ladder-{rungs}"), folder, tmp_path / "private")
        assert found.score is not None, found.reason
        assert found.score.details["rungs"] == rungs
        assert found.score.details["broke_at_rung"] == undone
        assert found.score.details["rungs_reached"] == (undone - 1 if undone else rungs)
        assert found.score.value < 0.2 if undone is None else found.score.value > 0.75


def test_a_number_that_is_wrong_for_one_value_of_a_column_breaks_the_rung(tmp_path: Path) -> None:
    prepared(3, tmp_path)
    answers = pl.read_csv(tmp_path / "private" / "answers.csv")
    table = pl.read_csv(tmp_path / "public" / "data" / "readings.csv")
    column = make(3, MINI, 0).steps[0].column
    wrong = table[column].gather(answers["id"]) == 0
    assert 0.03 < wrong.mean() < 0.1  # type: ignore[operator]
    shifted = answers.with_columns(pl.when(wrong).then((pl.col("step_1") + 1) % MODULUS).otherwise(pl.col("step_1")).alias("step_1"))
    folder = tmp_path / "submission"
    folder.mkdir()
    shifted.write_csv(folder / "submission.csv")
    found = graded(find_task("ladder-3"), folder, tmp_path / "private")
    assert found.score is not None and found.score.details["broke_at_rung"] in (1, None)
    assert found.score.value == 0


def test_the_full_ladder_is_new_every_time_and_its_seed_is_kept_from_the_agent(tmp_path: Path) -> None:
    tables = []
    for name in ("first", "second"):
        public, private = folders(tmp_path / name)
        prepare.full(public, private, rungs=2)
        tables.append((public / "data" / "readings.csv").read_bytes())
        assert (private / "seed.json").exists()
        assert sorted(path.name for path in (public / "data").iterdir()) == [
            "notes.md",
            "readings.csv",
            "references.csv",
            "test.csv",
            "train.csv",
        ]
    assert tables[0] != tables[1]


def test_references_of_a_step_have_rows_of_their_own() -> None:
    world = make(6, MINI, seed=1)
    rows = np.concatenate((world.train, world.test, *world.references))
    assert len(np.unique(rows)) == len(rows) == len(world.target)


def test_the_ladders_differ_in_their_steps_alone() -> None:
    tasks = [find_task(f"ladder-{rungs}") for rungs in RUNGS]
    assert len({task.folder for task in tasks}) == 1
    for rungs, task in zip(RUNGS, tasks, strict=True):
        proof = task.module("proof")
        assert proof is not None and f"KINDS = {KINDS[rungs]}" in proof.solution()["steps.py"]
        assert task.spec.category == "ladder"
        assert load_task(task.path) == task


def folders(root: Path) -> tuple[Path, Path]:
    for name in ("public", "private"):
        (root / name).mkdir(parents=True)
    return root / "public", root / "private"


def prepared(rungs: int, root: Path) -> Path:
    public, private = folders(root)
    write(rungs, MINI, 0, public, private)
    return public


def run_starter(rungs: int, folder: Path, public: Path, files: Files) -> list[str]:
    folder.mkdir()
    for path in find_task(f"ladder-{rungs}").starter.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    for name, content in files.items():
        (folder / name).write_text(str(content))
    (folder / "data").symlink_to(public / "data")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout.splitlines()


def graded(task: Task, folder: Path, private: Path) -> Graded:
    submission = folder / "submission"
    submission.mkdir()
    (submission / "submission.csv").write_bytes((folder / "submission.csv").read_bytes())
    return asyncio.run(grade(task, submission, variant="mini", private=private))
