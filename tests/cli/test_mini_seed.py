"""`--mini-seed`: mini data that is drawn anew from a number, by every command that uses mini data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import mlagentbench
from mlagentbench.rundir.directory import find_runs
from mlagentbench.task.seeds import SEED, mini_data_seed
from tests.cli.test_cli import here, mlab
from tests.tiny_task import tiny_task

PREPARE = """
def mini(public, private, seed):
    (public / "number.txt").write_text(str(seed % 1_000_000))
    (private / "extra.txt").write_text(str(seed % 7 + 1))
"""
GRADE = """
from mlagentbench import Score

def grade(context):
    return Score(value=float(context.submission.read_text("{file}")) + float((context.private / "extra.txt").read_text()))
"""
TRAIN = 'open("submission.txt", "w").write(open("number.txt").read())\n'


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task whose score, unchanged, is told by the seed of its data."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    tiny_task(tmp_path / "tasks" / "drawn", train=TRAIN, grade=GRADE, prepare=PREPARE)
    return tmp_path / "tasks"


def score_of(number: int | None) -> float:
    seed = mini_data_seed(number)
    return float(seed % 1_000_000 + seed % 7 + 1)


def test_each_number_gives_another_seed_that_is_as_hard_to_guess() -> None:
    seeds = [mini_data_seed(number) for number in range(1000)]
    assert mini_data_seed() == SEED and mini_data_seed(7) == mini_data_seed(7)
    assert len({*seeds, SEED}) == 1001 and max(seeds) < 2**62 and min(seeds) > 2**48


def test_a_run_its_baseline_its_grading_and_its_fork_are_of_the_data_of_its_own_seed(tasks: Path, tmp_path: Path) -> None:
    logs = tmp_path / "runs"
    common = ("--task-path", tasks, "--variant", "mini", "--sandbox", "none")
    for number in (None, 5):
        seed = () if number is None else ("--mini-seed", number)
        ran = mlab("run", "drawn", *common, *seed, "--agent", "baseline", "--log-dir", logs)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert number is None or f"mini (seed {number}) variant" in ran.stdout
    runs = {run.info.spec.mini_seed: run for run in find_runs(logs)}
    assert set(runs) == {None, 5}
    for number, run in runs.items():
        assert run.result is not None and run.result.baseline is not None and run.result.score is not None
        assert run.result.baseline.value == run.result.score.value == score_of(number)
    shutil.rmtree(logs / "gradings")
    assert mlab("grade", runs[5].path, "--every-step").returncode == 0
    assert runs[5].result is not None and runs[5].result.score is not None and runs[5].result.score.value == score_of(5)
    frame = mlagentbench.load(logs).frame()
    assert sorted(frame["mini_seed"].to_list(), key=str) == [5, None]
    (cell,) = mlagentbench.load(logs).cells()
    assert len(cell.counted) == 2 and any(line.startswith("mini seed differs:") for line in cell.differences)
    measured = json.loads(mlab("baseline", "drawn", *common, "--mini-seed", "5", "--json").stdout)
    assert measured["mini_seed"] == 5 and measured["measured_before"] is True and measured["baseline"]["value"] == score_of(5)

    forked = mlab("resume", runs[5].path, "--step", "0")
    assert forked.returncode == 0, forked.stdout + forked.stderr
    (fork,) = (run for run in find_runs(logs) if run.info.parent)
    assert fork.info.spec.mini_seed == 5 and fork.info.data == runs[5].info.data
    assert fork.result is not None and fork.result.score is not None and fork.result.score.value == score_of(5)


def test_prepared_data_of_a_number_is_kept_and_known(tasks: Path) -> None:
    common = ("prepare", "drawn", "--task-path", tasks, "--variant", "mini", "--json")
    usual, first = (json.loads(mlab(*common, *seed).stdout)[0] for seed in ((), ("--mini-seed", "1")))
    again = json.loads(mlab(*common, "--mini-seed", "1").stdout)[0]
    assert first["made"] and not again["made"] and again["place"] == first["place"] != usual["place"]
    states = [each["state"] for each in json.loads(mlab("cache", "list", "--json", "--task-path", tasks).stdout)]
    assert states == ["ready", "ready"]


def test_real_data_is_not_drawn_from_a_number(tasks: Path) -> None:
    for command in (("prepare", "drawn"), ("run", "drawn", "--agent", "baseline"), ("tasks", "check", "drawn", "--variant", "full")):
        refused = here(*command, "--mini-seed", "1", "--task-path", tasks)
        assert refused.returncode == 2
        assert "leave --mini-seed out, or choose --variant mini" in " ".join(refused.stderr.split()), refused.stderr
