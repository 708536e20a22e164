"""One run, whole: however it ends, it is graded and its result is on disk."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlagentbench import Result, RunLimits, ScriptedReply, UsageError
from mlagentbench.data.prepare import prepared
from mlagentbench.limits import SandboxChoice
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import find_runs
from mlagentbench.sandbox import isolation
from mlagentbench.task.catalogue import load_task
from mlagentbench.workspace.snapshots.snapshots import Manifest
from tests.plans import Plan, make_plan
from tests.runner.lives import make_task
from tests.support import finish, reply, set_at


def submit(text: str) -> str:
    return reply("Write File", f'{{"file_name": "submission.txt", "content": "{text}"}}')


END = reply("Final Answer", '{"final_answer": "It is done."}')


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A run of a small task by the research agent, without a sandbox."""
    task = load_task(make_task(tmp_path / "guess"))
    (task.starter / "train.py").write_text("print('hello')\n")
    return make_plan(task, tmp_path / "runs", sandbox="none", score_steps=True)


def carry_out(plan: Plan, replies: Sequence[str] = (), stop_at: str | None = None) -> Result:
    """A run's result; with `stop_at`, it is stopped once its workspace has such a file."""

    async def story() -> Result:
        stop = asyncio.Event()
        if stop_at is not None:
            set_at(stop, plan.log_directory, stop_at)
        return await plan.conduct(Models.scripted(Script([ScriptedReply(reply=text) for text in replies])), stop=stop)

    result = finish(story())
    assert isinstance(result, Result)
    (directory,) = find_runs(plan.log_directory)
    assert directory.result == result, "what is returned is what is on disk"
    return result


def test_a_good_submission_is_a_success(plan: Plan) -> None:
    result = carry_out(plan, [submit("11"), submit("12.5"), END])
    assert (result.outcome.ended, result.outcome.verdict, result.success) == ("final_answer", "success", True)
    assert result.score is not None and result.score.value == 12.5
    assert result.improvement == pytest.approx(0.25)
    assert result.final_answer == "It is done."
    assert {"scripted_model", "unsandboxed", "paper_baseline"} <= set(result.outcome.flags)
    assert [(score.step, score.value) for score in result.step_scores] == [(1, 11.0), (2, 12.5), (3, 12.5)]
    assert result.usage["agent"].calls == 3
    assert result.steps == 3


def test_a_run_whose_scripts_landlock_confined_says_so(plan: Plan) -> None:
    if not any(capability.available for capability in isolation.probe() if capability.name == "landlock"):
        pytest.skip("this kernel has no Landlock")
    result = carry_out(plan.but(sandbox="landlock"), [submit("11"), END])
    assert "weak_isolation" in result.outcome.flags and "unsandboxed" not in result.outcome.flags


def test_replies_that_lead_to_no_step_take_their_time_too(plan: Plan) -> None:
    started = time.monotonic()
    result = carry_out(plan, [submit("11"), *["I do not know what to do."] * 5])
    whole = time.monotonic() - started
    (directory,) = find_runs(plan.log_directory)
    wasted = sum(call.seconds for call in directory.calls(2))
    assert result.outcome.ended == "format_failure" and wasted > 0
    assert wasted <= result.seconds - directory.steps()[0].seconds < whole, "and the time between them"
    assert result.model_seconds == pytest.approx(directory.steps()[0].model_seconds + wasted)


def test_ten_percent_exactly_is_no_success(plan: Plan) -> None:
    assert carry_out(plan, [submit("11"), END]).outcome.verdict == "no_improvement"


def test_an_invalid_submission_says_why(plan: Plan) -> None:
    result = carry_out(plan, [submit("many"), END])
    assert result.outcome.verdict == "invalid_submission"
    assert result.outcome.reason == "'many' is no number"
    assert result.score is None and not result.success


def test_nothing_submitted_is_no_submission(plan: Plan) -> None:
    assert carry_out(plan, [END]).outcome.verdict == "no_submission"


def test_a_limit_ends_it_and_what_is_there_is_graded(plan: Plan) -> None:
    result = carry_out(plan.but(limits=RunLimits(steps=1)), [submit("20"), END])
    assert (result.outcome.ended, result.outcome.verdict) == ("limit_steps", "success")


def test_a_run_that_is_stopped_is_graded_as_it_stands(plan: Plan) -> None:
    sleep = reply("Write File", json.dumps({"file_name": "train.py", "content": "import time; open('begun', 'w'); time.sleep(600)"}))
    run = reply("Execute Script", '{"script_name": "train.py"}')
    result = carry_out(plan, [submit("20"), sleep, run], stop_at="begun")
    assert (result.outcome.ended, result.outcome.verdict, result.steps) == ("cancelled", "success", 2)


def test_the_starter_alone_is_never_a_success(plan: Plan) -> None:
    (plan.task.starter / "submission.txt").write_text("10")
    result = carry_out(plan.but(agent="baseline"))
    assert result.improvement == 0
    assert not result.success


def test_a_plan_that_cannot_be_carried_out_runs_nothing(plan: Plan) -> None:
    for changes, complaint in (({"agent": "nobody"}, "no agent 'nobody'"), ({"log_directory": Path("/proc/runs")}, "--log-dir")):
        with pytest.raises(UsageError, match=complaint):
            finish(plan.but(**changes).conduct(Models.scripted(Script([]))))
    assert not plan.log_directory.exists()


PREPARE = """
def mini(public, private, seed):
    (public / "train.csv").write_text("x,y\\n1,2\\n")
    (public / "images").mkdir()
    (public / "images" / "one.txt").write_text("one")
    (private / "answers.csv").write_text("42")
"""
READER = """
import os
print(open("train.csv").read().split()[1], open("images/one.txt").read(), sorted(os.listdir(".")))
for name in ("train.csv", "images/one.txt", "images/new.txt"):
    try:
        open(name, "a").write("changed")
        print("wrote", name)
    except OSError as error:
        print("refused", name)
"""


HERE = [found.name for found in isolation.probe() if found.available and found.name != "docker"]


@pytest.mark.parametrize("sandbox", [*HERE, "none"])
def test_data_is_found_by_scripts_and_stays_as_it_is(
    plan: Plan, tmp_path: Path, sandbox: SandboxChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    (plan.task.folder / "prepare.py").write_text(PREPARE)
    (plan.task.starter / "read.py").write_text(READER)
    plan = plan.but(sandbox=sandbox)
    run = reply("Execute Script", '{"script_name": "read.py"}')
    carry_out(plan, [run, reply("List Files", '{"dir_path": "images"}'), submit("12"), END])
    (directory,) = find_runs(plan.log_directory)
    ran, listed, *_ = directory.steps()
    assert "1,2 one ['images', 'read.py', 'train.csv', 'train.py']" in ran.observation
    assert "one.txt" in listed.observation.splitlines()
    kept = prepared(plan.task, plan.spec.variant).public
    assert kept is not None and kept.is_relative_to(tmp_path / "cache")
    if sandbox != "none":
        assert ran.observation.count("refused") == 3, ran.observation
        assert (kept / "train.csv").read_text() == "x,y\n1,2\n"
        assert (kept / "images" / "one.txt").read_text() == "one"
    forked = Manifest.load(directory.manifest(2)).entries
    assert "train.csv" not in forked and "images/one.txt" not in forked, "data is in no snapshot"
