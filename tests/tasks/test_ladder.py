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
from mlagentbench.tasks.ladder.locks import key, lock
from mlagentbench.tasks.ladder.prepare import FULL, MINI, write
from mlagentbench.tasks.ladder.proof import steps
from mlagentbench.tasks.ladder.world import KINDS, MODULUS, NOT_FIRST, Change, Ints, World, code, make, take

RUNGS = (2, 3, 4, 5, 6)


@pytest.fixture(scope="module")
def starter() -> Iterator[ModuleType]:
    """The starter's script, as a module whose steps are given it by tests."""
    folder = find_task("ladder-2").starter
    kept = {name: sys.modules.get(name) for name in ("steps", "unlock")}
    for name in kept:
        sys.modules[name] = ModuleType(name)
        exec((folder / f"{name}.py").read_text(), sys.modules[name].__dict__)
    module = ModuleType("train")
    exec((folder / "train.py").read_text(), module.__dict__)
    yield module
    for name, before in kept.items():
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


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
def test_a_step_left_out_keeps_those_above_it_locked(tmp_path: Path, rungs: int) -> None:
    public = prepared(rungs, tmp_path)
    for undone in range(1, rungs):
        folder = tmp_path / f"without {undone}"
        lines = run_starter(rungs, folder, public, steps(rungs, undone=(undone,)))
        right = ["(right:" in line for line in lines if line.startswith("step") and "references" in line]
        assert right == [number < undone for number in range(1, rungs + 1)]
        notes = {path.name for path in (folder / "notes").iterdir()}
        assert notes == {
            f"{name}_{number}.{form}" for number in range(1, undone + 1) for name, form in (("step", "md"), ("references", "csv"))
        }


@pytest.mark.parametrize("rungs", RUNGS)
def test_nothing_of_a_later_step_can_be_read_before_the_step_below_it_is_right(starter: ModuleType, tmp_path: Path, rungs: int) -> None:
    public, world = prepared(rungs, tmp_path), make(rungs, MINI, 0)
    seen = b"".join(path.read_bytes() for path in public.rglob("*") if path.is_file())
    for number, step in enumerate(world.steps, 1):
        assert all((str(weight).encode() in seen) is (number == 1) for weight in step.weights)
        locked = (public / "data" / f"after_step_{number}.locked").read_bytes()
        right = world.readings[number]
        text = starter.unlock(locked, right)
        assert ("# Step" in text) is (number < rungs)
        wrong = right.copy()
        wrong[17] = (wrong[17] + 1) % MODULUS
        others = (wrong, right[::-1], world.readings[number - 1], right[world.train], np.sort(right))
        assert all(starter.unlock(locked, each) is None for each in others)


def test_the_size_of_a_locked_note_does_not_tell_its_kind() -> None:
    lengths: dict[str, list[int]] = {}
    for seed in range(20):
        world = make(4, MINI, seed)
        for number, step in enumerate(world.steps, 1):
            lengths.setdefault(step.kind, []).append(len(prepare.note(world, number, np.random.default_rng(seed))))
    means = [np.mean(each) for each in lengths.values()]
    assert len(means) == len(KINDS) and max(means) - min(means) < 2 * np.mean([np.std(each) for each in lengths.values()])


def test_the_test_rows_alone_open_nothing_and_a_key_tells_nothing_of_the_target() -> None:
    first, second = (make(2, MINI, seed) for seed in (0, 1))
    assert key(first.readings[1]) != key(second.readings[1])
    one, other = (lock("a note", readings) for readings in first.readings[:2])
    assert len(one) == len(other) and sum(a == b for a, b in zip(one, other, strict=True)) < len(one) / 4


def test_the_second_step_cannot_be_searched_for_without_its_note(starter: ModuleType) -> None:
    world = make(2, MINI, seed=2)
    assert world.steps[1].kind == "mirror"
    x, rng = starter.features(world.readings[1], world.table), np.random.default_rng(0)

    def error(step: Change) -> float:
        """Return the error of the best that any numbers could do by a code: a regression for each of its values."""
        group, found = code(step, [], world.table), np.zeros(len(world.target))
        for value in np.unique(group):
            fitted = world.train[group[world.train] == value]
            found[group == value] = x[group == value] @ starter.fit(x[fitted], world.target[fitted])
        return float(np.sqrt(np.mean((found - world.target)[world.test] ** 2)))

    assert error(world.steps[1]) < 0.2  # by the code of the note, this search finds the step without any reference
    baseline = error_on_test(starter, world, world.readings[0])
    names = [name for name, column in world.table.items() if len(np.unique(column)) == MINI.levels]
    for _ in range(100):
        weights = tuple(int(weight) for weight in rng.integers(2**30, 2**31, 3))
        columns = tuple(str(name) for name in rng.choice(names, 3, replace=False))
        assert error(world.steps[1]._replace(columns=columns, weights=weights)) > 0.9 * baseline
    for name in names:
        assert error(world.steps[1]._replace(columns=(name,), weights=(1,))) > 0.9 * baseline


def test_kinds_are_drawn_anew_from_every_seed() -> None:
    drawn = {tuple(step.kind for step in make(4, MINI, seed).steps) for seed in range(12)}
    assert len(drawn) > 9
    assert {kind for kinds in drawn for kind in kinds} == set(KINDS)
    assert not {kinds[0] for kinds in drawn} & set(NOT_FIRST)


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
        assert found.score.rung == found.score.details["rungs_reached"]
        assert found.score.note == f"rung {found.score.rung} of {rungs}"
        assert found.score.details["rungs_reached"] == (undone - 1 if undone else rungs)
        assert found.score.value < 0.2 if undone is None else found.score.value > 0.75


def test_a_number_that_is_wrong_for_one_value_of_a_column_breaks_the_rung(tmp_path: Path) -> None:
    prepared(3, tmp_path)
    answers = pl.read_csv(tmp_path / "private" / "answers.csv")
    world = make(3, MINI, 0)
    wrong = pl.Series(code(world.steps[0], [], world.table)[answers["id"].to_numpy()] == 0)
    assert 0.03 < wrong.mean() < 0.1  # type: ignore[operator]
    shifted = answers.with_columns(pl.when(wrong).then((pl.col("step_1") + 1) % MODULUS).otherwise(pl.col("step_1")).alias("step_1"))
    folder = tmp_path / "submission"
    folder.mkdir()
    shifted.write_csv(folder / "submission.csv")
    found = graded(find_task("ladder-3"), folder, tmp_path / "private")
    assert found.score is not None and found.score.details["broke_at_rung"] in (1, None)
    assert found.score.value == 0


def test_the_full_ladder_is_new_for_every_seed_which_is_kept_from_the_agent(tmp_path: Path) -> None:
    tables = []
    for seed in (2**60, 2**61):
        public, private = folders(tmp_path / f"{seed}")
        prepare.full(public, private, seed, rungs=2)
        tables.append((public / "data" / "readings.csv").read_bytes())
        assert (private / "seed.json").exists()
        assert sorted(path.name for path in (public / "data").iterdir()) == [
            "after_step_1.locked",
            "after_step_2.locked",
            "readings.csv",
            "step_1.txt",
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
        assert proof is not None and f"range(1, {rungs} + 1)" in proof.solution()["steps.py"]
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
        [sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=True
    )
    return ended.stdout.splitlines()


def graded(task: Task, folder: Path, private: Path) -> Graded:
    submission = folder / "submission"
    submission.mkdir()
    (submission / "submission.csv").write_bytes((folder / "submission.csv").read_bytes())
    return asyncio.run(grade(task, submission, variant="mini", private=private))
