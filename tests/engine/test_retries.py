"""Whole runs whose provider misbehaves: a run is never ended by it as if the agent had failed, and what is there is graded."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from mlagentbench.engine.models.providers import check_models
from mlagentbench.engine.models.retries import RetryPolicy
from mlagentbench.environment.provider import LEAST_WAIT
from mlagentbench.errors import ModelUnavailable
from mlagentbench.records import Usage
from mlagentbench.results.logs import load
from mlagentbench.run_spec import ModelSpec, RateLimit, RunLimits
from mlagentbench.runner.preflight import preflight
from mlagentbench.task.catalogue import load_task
from tests import commands
from tests.engine import server as bad
from tests.engine import whole
from tests.engine.server import CACHED, READ, WRITTEN, Fault, Provider, Wire
from tests.engine.whole import QUICK, Ended, carry_out_until
from tests.plans import Plan, make_plan, resumed
from tests.support import HANGING, reply
from tests.tiny_task import tiny_task

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

OPENAI, ANTHROPIC = "openai/gpt-4o", "anthropic/claude-opus-4-5"
SUBMIT = reply("Write File", '{"file_name": "submission.txt", "content": "12"}')
LIST = reply("List Files", '{"dir_path": "."}')
ASK = reply("Understand File", '{"file_name": "train.py", "things_to_look_for": "what it prints"}')
EDIT = reply("Edit Script (AI)", '{"script_name": "train.py", "edit_instruction": "Print more.", "save_name": "train.py"}')
END = reply("Final Answer", '{"final_answer": "It is done."}')


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A run of a small task by the research agent, without a sandbox."""
    limits = RunLimits(steps=10, time=300)
    return make_plan(load_task(tiny_task(tmp_path / "guess")), tmp_path / "runs", sandbox="none", limits=limits, score_steps=True)


def carry_out(plan: Plan, model: str = OPENAI, retry_policy: RetryPolicy = QUICK) -> Ended:
    ended = whole.carry_out(plan, model, retry_policy)
    assert ended.directory.result == ended.result
    return ended


def waited_for_its_second_reply(ended: Ended) -> bool:
    """Whether a run waited so long for it that its provider was checked."""
    return bool(calls := ended.directory.calls(2)) and calls[0].seconds >= LEAST_WAIT


def unread(model: str, how: str) -> Fault:
    """How a model's provider says that it does not read a prompt."""
    wire: Wire = "openai" if model == OPENAI else "anthropic"
    return {"too long": bad.TOO_LONG[wire], "refused": bad.REFUSED[wire], "withheld": bad.FILTERED}[how]


def mlab(plan: Plan, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`mlab run` as a user calls it, with its own patience."""
    command = [*commands.MLAB, "run", plan.task.id, "--task-path", plan.task.folder, "--sandbox", "none", "--json"]
    command += ["--agent", "research", "--variant", "mini", "--baseline", "paper", "--log-dir", plan.log_directory, *arguments]
    return commands.run(command, capture_output=True, text=True, timeout=HANGING, env={**os.environ, "COLUMNS": "400"})


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_a_run_survives_all_that_passes(server: Provider, plan: Plan, model: str) -> None:
    faults = [bad.too_many("1"), bad.too_many(), bad.BROKEN, bad.MALFORMED, bad.EMPTY_BODY, bad.RESETS, bad.FILTERED]
    server.behave(SUBMIT, END, faults=faults)
    result, _ = carry_out(plan, model, QUICK._replace(useless=5))
    assert (result.outcome.ended, result.outcome.verdict) == ("final_answer", "success"), result.outcome.reason
    assert result.waited_seconds > 1.0
    # The reply that it withheld was counted by the provider as any other.
    usage = result.usage["agent"].model_copy(update={"cost": None})
    assert usage == Usage(input_tokens=3 * READ, cache_read_tokens=3 * CACHED, output_tokens=3 * WRITTEN, calls=3)


@pytest.mark.parametrize("fault", ["BROKEN", "MALFORMED", "NO_CHOICES", "UNAUTHORIZED"])
def test_what_lasts_ends_the_run_as_nobodys_fault_and_what_is_there_is_graded(server: Provider, plan: Plan, fault: str) -> None:
    server.behave(faults=[Fault(text=SUBMIT)], always=getattr(bad, fault))
    result, directory = carry_out(plan, retry_policy=QUICK._replace(seconds=2.0))
    assert (result.outcome.ended, result.outcome.verdict) == ("infrastructure", "success")
    assert result.score is not None and result.score.value == 12.0
    assert [step.action.name for step in directory.steps()] == ["Write File"]


def test_a_reply_of_5_mb_is_none_and_leaves_nothing_behind(server: Provider, plan: Plan) -> None:
    server.behave(faults=[Fault(text=SUBMIT)], always=bad.HUGE)
    result, directory = carry_out(plan)
    assert (result.outcome.ended, result.outcome.verdict) == ("infrastructure", "success")
    assert "5,242,880 characters" in (result.outcome.reason or "")
    assert sum(path.stat().st_size for path in directory.path.rglob("*") if path.is_file()) < 100_000


def test_the_longest_reply_that_a_model_could_write_is_read(server: Provider, plan: Plan) -> None:
    server.behave(SUBMIT.replace("Go on.", "Go on. " * 70_000), END)
    result, _ = carry_out(plan)
    assert (result.outcome.ended, result.outcome.verdict) == ("final_answer", "success"), result.outcome.reason


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("how", ["too long", "refused", "withheld"])
def test_a_prompt_of_the_agent_that_is_not_read_ends_the_run_as_a_limit(server: Provider, plan: Plan, model: str, how: str) -> None:
    server.behave(faults=[Fault(text=SUBMIT)], always=unread(model, how))
    result, _ = carry_out(plan, model)
    assert (result.outcome.ended, result.outcome.verdict) == ("limit_context", "success")
    assert ("longer than" if how == "too long" else "refused the prompt") in (result.outcome.reason or "")


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("how", ["too long", "refused", "withheld"])
@pytest.mark.parametrize("action, words", [(ASK, "Understand File"), (EDIT, "Edit Script (AI)")])
def test_an_actions_prompt_that_is_not_read_is_an_observation(
    server: Provider, plan: Plan, model: str, how: str, action: str, words: str
) -> None:
    requests = 1 if how == "too long" else QUICK.useless
    server.behave(END, faults=[Fault(text=action), *[unread(model, how)] * requests])
    result, directory = carry_out(plan, model)
    assert result.outcome.ended == "final_answer"
    step = directory.steps()[0]
    assert step.status == "error"
    assert f"{words} could not be done" in step.observation
    assert ("longer than" if how == "too long" else "refused the prompt") in step.observation
    assert (directory.workspace / "train.py").read_text() == "print('hello')\n"


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_an_agents_own_bookkeeping_that_is_not_read_ends_nothing(server: Provider, plan: Plan, model: str) -> None:
    """A long observation that the fast model cannot read, and a log that it cannot write: both are done without it."""
    (plan.task.starter / "train.py").write_text("print('x' * 9000)\n")
    run = reply("Execute Script", '{"script_name": "train.py"}')
    # The summary, the entry of the log, and the retrieval.
    server.behave(END, faults=[Fault(text=run), *[unread(model, "too long")] * 3])
    result, directory = carry_out(plan.but(agent_options={"research_log": True, "retrieve_from": 2}), model)
    assert result.outcome.ended == "final_answer"
    assert [step.status for step in directory.steps()] == ["ok", "ok", "error", "ok"]
    assert "characters are left out" in directory.calls(4)[0].prompt


@pytest.mark.usefixtures("providers")
def test_a_run_whose_time_is_up_while_its_provider_fails_was_ended_by_the_provider(server: Provider, plan: Plan) -> None:
    for seconds in (6, 24, 96):
        server.behave(faults=[Fault(text=SUBMIT)], always=bad.BROKEN)
        done = mlab(plan, "--model", OPENAI, "--time", f"{seconds}s")
        if len(server.requests) > 2:
            break  # else this machine let it stand still, and its time was up before it had met a failure
    assert done.returncode == 3, done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["ended"], outcome["verdict"]) == ("infrastructure", "success")
    assert "500: The server had an error" in outcome["reason"]


def test_a_run_whose_time_is_up_while_it_waits_for_its_rate_limit_goes_on_later(server: Provider, plan: Plan) -> None:
    held = plan.but(rate_limits={OPENAI: RateLimit(requests=0.1)})
    result, directory = carry_out_until(3, held, lambda: server.behave(SUBMIT, END), lambda ended: bool(ended.directory.steps()))
    assert (result.outcome.ended, result.outcome.verdict) == ("infrastructure", "success")
    assert "waited for its rate limit" in (result.outcome.reason or "")
    assert len(server.requests) == 1
    (state,) = (directory.path.parent / "limits").iterdir()
    assert state.name.startswith("openai_gpt-4o-")
    assert len(load(directory.path.parent).runs) == 1, "the folder of the limits is no run"
    with resumed(directory.path, seconds=300) as again:
        assert again.spec.rate_limits == held.spec.rate_limits


def test_refusals_are_answered_by_the_limit_and_by_inspects_connections(server: Provider, plan: Plan) -> None:
    server.behave(SUBMIT, LIST, END, faults=[bad.too_many()] * 3)
    result, _ = carry_out(plan, retry_policy=QUICK._replace(seconds=0.1))
    assert (result.outcome.ended, result.outcome.verdict) == ("final_answer", "success"), result.outcome.reason
    moments = [request.moment for request in server.requests]
    assert len(moments) == 6, "the provider's client asks once, too"
    assert moments[3] - moments[0] >= 2.9, "a second's pause after each refusal, for all runs"
    (log,) = plan.log_directory.glob("*.eval")
    changes = read_eval_log(str(log), header_only=True).stats.connection_limit_history
    assert changes and changes[0].new_limit < changes[0].old_limit, "Inspect has opened fewer connections since"


def test_a_provider_that_hangs_until_the_time_is_up_has_ended_the_run(server: Provider, plan: Plan) -> None:
    result, directory = carry_out_until(
        4,
        plan,
        lambda: server.behave(faults=[Fault(text=SUBMIT)], always=bad.HANGS),
        waited_for_its_second_reply,
        retry_policy=QUICK._replace(request=600, check=1.0),
    )
    assert (result.outcome.ended, result.outcome.verdict) == ("infrastructure", "success")
    assert "until the run's time was up, nor to a short question in" in (result.outcome.reason or "")
    assert [call.stop_reason for call in directory.calls(2)] == ["limit_time"]


def test_a_reply_that_takes_longer_than_the_run_is_the_agents_time(server: Provider, plan: Plan) -> None:
    result, directory = carry_out_until(
        4,
        plan,
        lambda: server.behave(faults=[Fault(text=SUBMIT)], always=bad.SLOW),
        waited_for_its_second_reply,
        retry_policy=QUICK._replace(request=600, check=300.0),
    )
    assert (result.outcome.ended, result.outcome.verdict) == ("limit_time", "success")
    assert [(call.purpose, call.reply) for call in directory.calls(2)] == [("agent", ""), ("provider check", "yes")], (
        "what was asked is on record"
    )


@pytest.mark.usefixtures("providers")
def test_a_wrong_key_is_one_clear_line(server: Provider, plan: Plan) -> None:
    server.behave(always=bad.UNAUTHORIZED)
    done = mlab(plan, "--model", ANTHROPIC)
    assert done.returncode == 3, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["ended"] == "infrastructure"
    assert outcome["reason"] == f"{ANTHROPIC} refused the request: 401: Incorrect API key provided: dummy. (check its key)"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("model, key", [(OPENAI, "OPENAI_API_KEY"), (ANTHROPIC, "ANTHROPIC_API_KEY")])
def test_a_missing_key_is_told_before_anything_runs(
    server: Provider, plan: Plan, model: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(key)
    with pytest.raises(ModelUnavailable, match=key):
        preflight([plan.spec.replace(models={"agent": ModelSpec(name=model)})], plan.log_directory, check_models=check_models)
    assert not server.requests and not plan.log_directory.exists()
