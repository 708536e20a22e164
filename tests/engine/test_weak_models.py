"""Whole runs of models that are weak or slow, by a provider on loopback: what they do is told as it is, to them and in the record."""

from __future__ import annotations

import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import mlagentbench
from mlagentbench.cli.output.summary import show
from mlagentbench.environment.provider import LEAST_WAIT
from mlagentbench.run_spec import RunLimits
from tests.engine import server as bad
from tests.engine.server import CACHED, READ, WRITTEN, Fault, Provider
from tests.engine.whole import MODELS, Ended, carry_out, carry_out_until, make_plan
from tests.plans import resumed
from tests.support import reply

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

AGENTS = ("research", "autogpt", "search", "tool-calling")
END = reply("Final Answer", '{"final_answer": "It is done."}')
EACH = READ + CACHED + WRITTEN


def prompts(server: Provider) -> list[str]:
    return [request.prompt for request in server.requests]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_reply_that_was_cut_is_called_cut_and_shown_again_with_what_to_do(server: Provider, tmp_path: Path, agent: str) -> None:
    server.behave(always=bad.CUT)
    ended = carry_out(make_plan(tmp_path, agent))
    calls = ended.directory.calls(len(ended.directory.steps()) + 1)
    assert [call.stop_reason for call in calls] == ["max_tokens"] * 5
    told = f"The reply was cut at {WRITTEN} tokens; be shorter."
    assert all((call.rejected or "").startswith(told) for call in calls)
    assert [told in prompt for prompt in prompts(server)] == [False, *[True] * 4]
    assert all(prompt.count(bad.CUT.text or "") == 1 for prompt in prompts(server)[1:]) or agent == "tool-calling", "its own reply, once"
    reason = ended.result.outcome.reason or ""
    assert reason.startswith(f"5 replies in a row held no action; the last: {told} ") and reason.endswith(".")


def test_a_call_of_a_tool_that_was_cut_is_called_cut(server: Provider, tmp_path: Path) -> None:
    half = Fault(text="", calls=(("write_file", '{"file_name": "train.py", "content": "import'),), finish="length")
    server.behave(half, bad.calling(("final_answer", '{"final_answer": "It is done."}')))
    ended = carry_out(make_plan(tmp_path, "tool-calling"))
    assert ended.directory.steps()[0].status == "error"
    assert f"The reply was cut at {WRITTEN} tokens; be shorter." in prompts(server)[1]
    assert [ended.directory.calls(number)[0].stop_reason for number in (1, 2)] == ["max_tokens", "tool_calls"]


@pytest.mark.parametrize("agent, model", [*((agent, MODELS["openai"]) for agent in AGENTS), ("tool-calling", MODELS["anthropic"])])
def test_five_empty_replies_are_the_agents_failure_and_their_tokens_count(server: Provider, tmp_path: Path, agent: str, model: str) -> None:
    server.behave(always=bad.EMPTY_TEXT)
    ended = carry_out(make_plan(tmp_path, agent), model)
    outcome, usage = ended.result.outcome, ended.result.total_usage
    assert (outcome.ended, usage.calls, usage.tokens, len(server.requests)) == ("format_failure", 5, 5 * EACH, 5)
    if agent != "tool-calling":
        assert outcome.reason == "5 replies in a row held no action; the last: The reply is empty."


def test_an_empty_reply_to_an_action_is_an_observation(server: Provider, tmp_path: Path) -> None:
    edit = reply("Edit Script (AI)", '{"script_name": "train.py", "edit_instruction": "Print more.", "save_name": "train.py"}')
    server.behave(edit, END, faults=[Fault(text=edit), bad.EMPTY_TEXT])
    ended = carry_out(make_plan(tmp_path, "research", steps=1))
    (step,) = ended.directory.steps()
    assert (step.status, step.observation) == ("error", "Edit Script (AI) could not be done: the reply was empty.")
    assert (ended.directory.workspace / "train.py").read_text(), "the script stays as it was"


def summary(ended: Ended) -> str:
    text = StringIO()
    show(Console(file=text, width=120), ended.directory, [])
    return text.getvalue()


def test_tokens_that_a_provider_does_not_report_are_unknown_and_cannot_be_limited(server: Provider, tmp_path: Path) -> None:
    uncounted = Fault(text=reply("List Files", '{"dir_path": "."}'), uncounted=True)
    server.behave(uncounted, END)
    plan = make_plan(tmp_path, "research")
    ended = carry_out(plan)
    usage = ended.result.total_usage
    assert (usage.tokens, usage.cost, usage.calls, usage.uncounted) == (None, None, 2, 1)
    assert "unknown in 2 calls" in summary(ended)
    logs = mlagentbench.load(plan.log_directory)
    assert logs.frame()["tokens"].to_list() == [None] and logs.steps_frame()["tokens"].to_list() == [None, EACH]

    for limits, words in ((RunLimits(tokens=10**6), "without --tokens"), (RunLimits(cost=9.0, tokens=10**6), "--tokens and --cost")):
        server.behave(uncounted, END)
        ended = carry_out(plan.but(limits=limits))
        assert ended.result.outcome.ended == "infrastructure" and words in (ended.result.outcome.reason or "")
        assert len(server.requests) == 1 and not ended.directory.steps(), "nothing is done that the limit may forbid"


def test_the_question_that_the_time_limit_cut_off_is_in_the_time_and_in_the_record(server: Provider, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, "research")
    waited = lambda ended: bool(calls := ended.directory.calls(1)) and calls[0].seconds >= LEAST_WAIT  # noqa: E731
    ended = carry_out_until(2, plan, lambda: server.behave(always=bad.SLOW), waited)
    result = ended.result
    assert result.outcome.ended == "limit_time"
    assert LEAST_WAIT <= result.model_seconds <= result.seconds
    cut, check = ended.directory.calls(1)
    assert (cut.stop_reason, cut.reply, cut.usage.calls, check.purpose) == ("limit_time", "", 0, "provider check")
    with resumed(ended.directory.path, 0) as fork:
        server.behave(END)
        assert carry_out(fork.but(limits=RunLimits(steps=5, time=300))).result.outcome.ended == "final_answer"


def test_questions_at_once_that_the_time_limit_cut_off_took_their_time_once(server: Provider, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, "research")
    (plan.task.starter / "long.txt").write_text("All is well. " * 60_000)
    look = reply("Understand File", '{"file_name": "long.txt", "things_to_look_for": "what is wrong"}')
    started: list[float] = []

    def begin() -> None:
        server.behave(faults=[Fault(text=look)], always=bad.SLOW)
        started.append(time.monotonic())

    result = carry_out_until(1.5, plan, begin, lambda ended: len(server.requests) > 6).result
    whole = time.monotonic() - started[-1]
    assert len(server.requests) > 6 and result.outcome.ended == "limit_time"
    assert 1.3 < result.seconds < whole, "not the sum of theirs"


def test_the_agent_is_told_how_long_a_script_may_run(server: Provider, tmp_path: Path) -> None:
    server.behave(END)
    assert carry_out(make_plan(tmp_path, "research")).directory.info.description.endswith(
        "\n\nOne script may run for at most 60 minutes.\n"
    )
    assert "One script may run for at most 60 minutes." in prompts(server)[0]
