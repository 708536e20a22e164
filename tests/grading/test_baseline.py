"""The starter's own score: measured as a run is, kept, and what runs are compared with."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from mlagentbench import Result, Task, TaskError
from mlagentbench.data.prepare import prepare
from mlagentbench.grading import baseline as grading_baseline
from mlagentbench.grading.baseline import MeasuredBaseline, ScriptSettings, measure, read_baseline
from mlagentbench.model import Models, Script
from mlagentbench.records import Baseline, Variant
from mlagentbench.run_spec import RunLimits
from mlagentbench.runner.preflight import find_baseline
from mlagentbench.task.catalogue import load_task
from tests import commands
from tests.plans import Plan, make_plan
from tests.tiny_task import tiny_task

PLACE = ScriptSettings(sandbox="none")
GRADE_ROWS = """
from mlagentbench import Score, row_score

def grade(context):
    number = int(context.submission.read_text("submission.txt"))
    return row_score([place % (number + 1) for place in range(11 * 12 * 10)])
"""
PROOF = """
def naive(data):
    return {"zero": {"submission.txt": "0"}, "seven": {"submission.txt": "7"}, "wrong": {"submission.txt": "many"}}
"""
# Tells the test outside how often it was run.
TRAIN = """
import os
seed = int(os.environ.get("SEED", 0))
with open("COUNTED", "a") as file:
    file.write(f"{seed}\\n")
with open("submission.txt", "w") as file:
    file.write(str(10 + seed))
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    return tmp_path / "counted"


def make(tmp_path: Path, *, starter: str = '{ state = "runs" }', train: str = TRAIN) -> Task:
    keys = {"paper": "{ baseline = 3.0 }", "starter": starter}
    train = train.replace("COUNTED", str(tmp_path / "counted"))
    return load_task(tiny_task(tmp_path / "count", keys=keys, proof=PROOF, train=train))


def measured(task: Task, runs: int | None = 3, *, again: bool = False) -> MeasuredBaseline:
    return asyncio.run(measure(task, "mini", settings=PLACE, runs=runs, again=again))


def test_a_starter_is_run_with_other_seeds_and_its_spread_kept(tmp_path: Path, counted: Path) -> None:
    found = measured(make(tmp_path))
    assert found.baseline.values == (10.0, 11.0, 12.0) and found.baseline.value == 11.0
    assert found.baseline.spread is not None and found.baseline.source == "measured"
    assert len(found.seconds) == 3 and found.isolation == "none"
    assert counted.read_text() == "0\n1\n2\n"


def test_what_was_measured_is_not_measured_again_and_more_runs_add_to_it(tmp_path: Path, counted: Path) -> None:
    task = make(tmp_path)
    assert read_baseline(task, "mini", PLACE) is None
    assert measured(task, 2) == measured(task, 2) == read_baseline(task, "mini", PLACE)
    assert counted.read_text() == "0\n1\n"
    assert measured(task, 4).baseline.values == (10.0, 11.0, 12.0, 13.0)
    assert counted.read_text() == "0\n1\n2\n3\n"
    assert len(measured(task, 1, again=True).baseline.values) == 1


def test_a_cheap_starter_is_run_five_times_and_a_dear_one_three(tmp_path: Path, counted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make(tmp_path)
    assert len(measured(task, 1).baseline.values) == 1
    assert len(measured(task, None).baseline.values) == 1, "what was measured before stands"
    assert len(measured(task, None, again=True).baseline.values) == 5
    monkeypatch.setattr(grading_baseline, "CHEAP_SECONDS", 0.0)
    assert len(measured(task, None, again=True).baseline.values) == 3
    assert counted.read_text() == "0\n" + "0\n1\n2\n3\n4\n" + "0\n1\n2\n"


def test_the_starter_s_samples_are_kept_over_all_its_runs(tmp_path: Path) -> None:
    task = make(tmp_path)
    (task.folder / "grade.py").write_text(GRADE_ROWS)
    task = load_task(task.folder)
    first = measured(task, 1).baseline
    assert first.value == 5 and len(first.resampled) == 200
    both = measured(task, 2).baseline
    second = 2 * np.array(both.resampled) - np.array(first.resampled)
    assert both.value == 5.25 and 5.4 < second.mean() < 5.6, "the mean of both runs' samples, the first's from the cache"
    stored = read_baseline(task, "mini", PLACE)
    assert stored is not None and stored.baseline == both


def test_a_changed_task_is_measured_anew(tmp_path: Path) -> None:
    assert measured(make(tmp_path), 1).baseline.value == 10.0
    changed = make(tmp_path, train=TRAIN.replace("10 +", "20 +"))
    assert read_baseline(changed, "mini", PLACE) is None
    assert measured(changed, 1).baseline.value == 20.0


SECRET = """
def full(public, private, seed):
    (public / "x.txt").write_text(f"{seed % 1000 + 1}")
    (private / "answers.txt").write_text("x")
"""


def test_data_that_is_prepared_anew_with_other_answers_is_measured_anew(tmp_path: Path) -> None:
    train = "open('submission.txt', 'w').write(open('x.txt').read())\n"
    task = load_task(tiny_task(tmp_path / "secret", train=train, prepare=SECRET, keys={"read_only": '["x.txt"]'}))
    for _ in range(2):
        data = prepare(task, "full", force=True).data
        assert read_baseline(task, "full", PLACE) is None
        found = asyncio.run(measure(task, "full", settings=PLACE, runs=1))
        assert found.baseline.value == float((data.public / "x.txt").read_text())
        assert read_baseline(task, "full", PLACE) == found


def test_runs_without_a_score_are_told_and_left_out(tmp_path: Path) -> None:
    found = measured(make(tmp_path, train=TRAIN + "\nif seed == 1:\n    open('submission.txt', 'w').write('none')\n"))
    assert found.baseline.values == (10.0, 12.0)
    assert found.failures == ("'none' is no number",)


def test_a_starter_that_never_scores_says_why(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"starter of count has no score to compare with: .*ZeroDivisionError.*--baseline paper or none"):
        measured(make(tmp_path, train="1 / 0"))


def test_a_stub_has_its_predictor(tmp_path: Path, counted: Path) -> None:
    found = measured(make(tmp_path, starter='{ state = "stub", predictor = "seven" }'))
    assert found.baseline.value == 7.0 and found.baseline.source == "predictor" and found.baseline.spread is None
    assert not counted.exists()


@pytest.mark.parametrize(
    ("starter", "reason"),
    [
        ('{ state = "stub" }', "names no starter.predictor"),
        ('{ state = "broken", predictor = "eight" }', "has no naive submission 'eight'"),
        ('{ state = "stub", predictor = "wrong" }', "cannot be graded: 'many"),
    ],
)
def test_a_stub_without_a_sound_predictor_says_so(tmp_path: Path, starter: str, reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        measured(make(tmp_path, starter=starter))


def test_of_several_who_ask_at_once_one_measures(tmp_path: Path, counted: Path) -> None:
    task = make(tmp_path, train="import time\ntime.sleep(0.3)\n" + TRAIN)

    async def main() -> list[MeasuredBaseline]:
        return await asyncio.gather(*(measure(task, "mini", settings=PLACE, runs=1) for _ in range(8)))

    command = ["baseline", "count", "--task-path", str(tmp_path), "--variant", "mini", "--sandbox", "none", "--runs", "1", "--json"]
    beside = commands.Popen([*commands.MLAB, *command], stdout=subprocess.PIPE, env=os.environ)
    found = asyncio.run(main())
    output, _ = beside.communicate(timeout=300)
    assert len({each.model_dump_json() for each in found}) == 1
    assert json.loads(output)["baseline"] == json.loads(found[0].model_dump_json())["baseline"]
    assert counted.read_text() == "0\n"


def found_for(plan: Plan) -> Baseline | None:
    return asyncio.run(find_baseline(plan.spec, plan.task))


@pytest.mark.parametrize("variant", ["mini", "full"])
def test_a_run_is_compared_with_the_papers_number_only_if_asked(tmp_path: Path, variant: Variant) -> None:
    plan = make_plan(make(tmp_path), tmp_path / "runs", agent="baseline", variant=variant, sandbox="none", baseline="auto")
    assert (against := found_for(plan)) is not None and (against.values[0], against.source) == (10.0, "measured")
    assert (against := found_for(plan.but(baseline="paper"))) is not None and (against.value, against.source) == (3.0, "paper")
    assert found_for(plan.but(baseline="none")) is None


def test_the_time_limit_of_a_run_holds_for_its_starter_too(tmp_path: Path) -> None:
    task = make(tmp_path, train="import time\ntime.sleep(600)\n")
    plan = make_plan(task, tmp_path / "runs", agent="baseline", variant="mini", sandbox="none", baseline="auto", limits=RunLimits(time=1))
    started = time.monotonic()
    with pytest.raises(TaskError, match=r"longer than the 1 s that the run may take; measure it once with `mlab baseline count"):
        found_for(plan)
    assert time.monotonic() - started < 300


def test_a_result_has_the_errors_of_its_score_and_its_gain_and_not_the_samples(tmp_path: Path) -> None:
    task = make(tmp_path)
    (task.folder / "grade.py").write_text(GRADE_ROWS)
    plan = make_plan(load_task(task.folder), tmp_path / "runs", agent="baseline", sandbox="none", baseline="auto", score_steps=True)
    result = asyncio.run(plan.conduct(Models.scripted(Script([]))))
    assert result.score is not None and result.baseline is not None and result.score.value == 5
    assert result.score.standard_error == pytest.approx(math.sqrt(10 / 1320), rel=0.01), "that of the numbers 0 to 10"
    assert result.gain_error is not None and result.gain_error > 0 and "within_noise" not in result.outcome.flags
    assert {(score.standard_error, score.gain_error) for score in result.step_scores} == {(result.score.standard_error, result.gain_error)}
    (stored,) = (tmp_path / "runs").glob("*/result.json")
    assert "resampled" not in stored.read_text() and Result.model_validate_json(stored.read_bytes()) == result
