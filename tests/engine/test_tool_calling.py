"""The agent that calls tools: what goes over the wire, what becomes of it, and that a run goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from mlagentbench.errors import AgentError
from mlagentbench.rundir.directory import find_runs
from tests import commands
from tests.engine import server as bad
from tests.engine.server import CACHED, READ, WRITTEN, Fault, Provider, Wire, calling
from tests.engine.whole import MODELS, carry_on, carry_out, make_plan, said
from tests.support import HANGING

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

WIRES: tuple[Wire, ...] = ("openai", "anthropic")
LIST = ("list_files", '{"dir_path": "."}')
READ_TRAIN = ("inspect_script_lines", '{"script_name": "train.py", "start_line_number": 1, "end_line_number": 20}')
SUBMIT = ("write_file", '{"file_name": "submission.txt", "content": "12"}')
RUN = ("execute_script", '{"script_name": "train.py"}')
END = ("final_answer", '{"final_answer": "It is done."}')
WITH_WRITE = ["List Files", "Inspect Script Lines", "write_file", "Execute Script"]


@pytest.mark.parametrize("wire", WIRES)
def test_calls_are_steps_and_their_results_go_back(server: Provider, tmp_path: Path, wire: Wire) -> None:
    server.behave(calling(LIST, READ_TRAIN, text="Look first."), calling(SUBMIT), calling(END, text="Enough."))
    ended = carry_out(make_plan(tmp_path, "tool-calling", actions=WITH_WRITE), MODELS[wire])
    assert (ended.result.outcome.ended, ended.result.outcome.verdict) == ("final_answer", "success")
    assert ended.actions == ["List Files", "Inspect Script Lines", "Write File", "Final Answer"]
    first, second, third, last = ended.directory.steps()
    assert (first.entries, second.entries, third.entries) == ({"Thought": "Look first."}, {}, {})
    assert last.entries == {"Thought": "Enough."}
    assert (first.usage.calls, second.usage.calls) == (1, 0), "a reply is counted once, however many calls it holds"
    total = ended.result.usage["agent"]
    assert (total.calls, total.input_tokens, total.cache_read_tokens, total.output_tokens) == (3, 3 * READ, 3 * CACHED, 3 * WRITTEN)
    asked = server.requests[1].prompt
    assert "train.py" in asked and json.dumps(second.observation)[1:-1] in asked
    offered = server.requests[0].body["tools"]
    names = [tool["function"]["name"] if wire == "openai" else tool["name"] for tool in offered]
    assert set(names) == {"list_files", "inspect_script_lines", "write_file", "execute_script", "final_answer"}


def test_every_call_is_recorded_so_that_the_questions_can_be_put_together_again(server: Provider, tmp_path: Path) -> None:
    server.behave(calling(LIST, READ_TRAIN), "I would rather talk.", calling(RUN), calling(END))
    ended = carry_out(make_plan(tmp_path, "tool-calling"))
    messages: list[object] = []
    for number in range(1, 5):
        for call in ended.directory.calls(number):
            prompt = json.loads(call.prompt)
            messages = messages[: prompt["after"]] + prompt["messages"]
    roles = [message["role"] for message in messages]  # type: ignore[index]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool"]
    talked, ran = ended.directory.calls(3)
    assert "called no tool" in (talked.rejected or "")
    assert json.loads(ran.reply)["tool_calls"][0]["function"] == "execute_script"
    assert ended.directory.steps()[2].malformed == 1


def test_thinking_is_kept_as_an_entry_and_sent_back_as_it_was(server: Provider, tmp_path: Path) -> None:
    server.behave(calling(LIST, text="Look.", thinking="What is there?"), calling(RUN), calling(END))
    ended = carry_out(make_plan(tmp_path, "tool-calling"), MODELS["anthropic"])
    assert ended.directory.steps()[0].entries == {"Reasoning": "What is there?", "Thought": "Look."}
    thought = {"type": "thinking", "thinking": "What is there?", "signature": "signed"}
    assert thought in said(server.requests[1])[1]["content"]
    server.behave(calling(END))
    carry_on(ended, 1, MODELS["anthropic"])
    assert thought in said(server.requests[0])[1]["content"], "in a run that goes on too"


def test_a_malformed_call_is_answered_with_the_usage(server: Provider, tmp_path: Path) -> None:
    wrong = ("execute_script", '{"script": "train.py"}')
    broken = ("execute_script", '{"script_name": "tr')
    server.behave(calling(("run_it", "{}"), wrong, broken), calling(RUN), calling(END))
    ended = carry_out(make_plan(tmp_path, "tool-calling"))
    assert [step.status for step in ended.directory.steps()] == ["error", "error", "error", "ok", "ok"]
    unknown, lacking, unread = [message["content"] for message in said(server.requests[1]) if message["role"] == "tool"]
    assert "There is no action 'run_it'" in unknown and "list_files" in unknown
    assert '{"script_name": "[a Python script' in lacking
    assert "Error parsing" in unread and '{"script_name": "[a Python script' in unread


def test_five_replies_without_a_call_end_the_run(server: Provider, tmp_path: Path) -> None:
    server.behave(calling(LIST), "Only words.")
    ended = carry_out(make_plan(tmp_path, "tool-calling"))
    assert ended.result.outcome.ended == "format_failure"
    assert ended.actions == ["List Files"]
    assert len(server.requests) == 6
    assert server.requests[-1].prompt.count("called no tool") == 4


def test_limits_hold_between_the_calls_of_one_reply(server: Provider, tmp_path: Path) -> None:
    server.behave(calling(LIST, LIST, LIST))
    ended = carry_out(make_plan(tmp_path, "tool-calling", steps=2))
    assert ended.result.outcome.ended == "limit_steps"
    assert ended.actions == ["List Files", "List Files"]


@pytest.mark.parametrize("wire", WIRES)
def test_what_passes_is_survived(server: Provider, tmp_path: Path, wire: Wire) -> None:
    server.behave(calling(LIST), calling(END), faults=[bad.BROKEN, bad.MALFORMED, bad.EMPTY_TEXT, bad.too_many()])
    ended = carry_out(make_plan(tmp_path, "tool-calling"), MODELS[wire])
    assert ended.result.outcome.ended == "final_answer"
    assert ended.result.usage["agent"].calls == 3, "the empty reply cost its tokens"


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_forked_from_any_step_asks_what_it_would_have_asked(server: Provider, tmp_path: Path, wire: Wire) -> None:
    replies: list[str | Fault] = [
        calling(LIST, READ_TRAIN, text="a"),
        "Words.",
        calling(("run_it", "{}"), LIST),
        calling(READ_TRAIN),
        calling(END),
    ]
    asked_before = [0, 1, 1, 3, 3, 4]
    server.behave(*replies)
    plan = make_plan(tmp_path, "tool-calling")
    whole = carry_out(plan, MODELS[wire])
    questions = [said(request) for request in server.requests]
    assert len(questions) == 5 and len(whole.actions) == 6
    for step, asked in enumerate(asked_before):
        server.behave(*replies[asked:])
        fork = carry_on(whole, step, MODELS[wire])
        assert fork.actions == whole.actions
        assert [said(request) for request in server.requests] == questions[asked:], f"from step {step}"
        assert [one.entries for one in fork.directory.steps()] == [one.entries for one in whole.directory.steps()]


def test_old_results_are_cleared_when_the_history_gets_long(server: Provider, tmp_path: Path) -> None:
    server.behave(calling(*[READ_TRAIN] * 30), calling(END))
    ended = carry_out(make_plan(tmp_path, "tool-calling", steps=40, context_tokens=1500))
    assert ended.result.outcome.ended == "final_answer"
    last = said(server.requests[-1])
    assert [message["content"] == "(Tool result removed)" for message in last if message["role"] == "tool"] == [True] * 25 + [False] * 5
    assert last[1]["content"] == ended.directory.info.description.strip(), "the task stays"


def test_a_summary_takes_the_place_of_a_long_history_and_is_counted(server: Provider, tmp_path: Path) -> None:
    server.behave(calling(LIST), calling(READ_TRAIN), "<summary>We looked.</summary>", calling(RUN), calling(END))
    ended = carry_out(make_plan(tmp_path, "tool-calling", compaction="summary", context_tokens=240))
    assert ended.actions == ["List Files", "Inspect Script Lines", "Execute Script", "Final Answer"]
    summary, call = ended.directory.calls(3)
    assert (summary.purpose, call.purpose) == ("compaction", "agent")
    assert ended.result.usage["agent"].calls == 5
    after = said(server.requests[3])
    assert len(after) == 3 and "We looked." in json.dumps(after[2])
    server.behave(calling(END))
    carry_on(ended, 3)
    assert said(server.requests[0])[:3] == after, "a run that goes on has the summary too"


def test_a_history_that_the_provider_finds_too_long_is_compacted_once(server: Provider, tmp_path: Path) -> None:
    server.behave(faults=[calling(LIST), bad.TOO_LONG["openai"], Fault(text="<summary>We looked.</summary>"), calling(END)])
    ended = carry_out(make_plan(tmp_path, "tool-calling"))
    assert ended.result.outcome.ended == "final_answer"
    server.behave(faults=[calling(LIST)], always=bad.TOO_LONG["openai"])
    assert carry_out(make_plan(tmp_path / "again", "tool-calling")).result.outcome.ended == "limit_context"
    server.behave(faults=[calling(LIST)], always=bad.TOO_LONG["openai"])
    assert carry_out(make_plan(tmp_path / "never", "tool-calling", compaction="none")).result.outcome.ended == "limit_context"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "options, words",
    [
        ({"actions": ["Run It"]}, "there is no action 'Run It'; the actions are:"),
        ({"compaction": "magic"}, "compaction is one of edit, summary, none, not 'magic'"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"colour": "red"}, "has no option 'colour'; it has: actions, compaction"),
    ],
)
def test_a_bad_option_is_one_clear_line(options: dict[str, object], words: str) -> None:
    from mlagentbench.agents.base import make_agent

    with pytest.raises(AgentError, match=words) as refusal:
        make_agent("tool-calling", options)
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
def test_a_killed_evaluation_is_retried_and_goes_on_within_a_reply(tmp_path: Path) -> None:
    """The scripted model calls tools too. The second try has the replies that are left."""

    def script(*replies: str) -> None:
        (tmp_path / "script.yaml").write_text(yaml.safe_dump([{"reply": text} for text in replies]))

    def inspect(*arguments: object) -> None:
        environment = {**os.environ, "INSPECT_LOG_DIR": str(tmp_path / "logs"), "INSPECT_DISPLAY": "none"}
        command = [*commands.INSPECT, *map(str, arguments)]
        done = commands.run(command, capture_output=True, text=True, timeout=HANGING, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr

    looks = json.dumps({"text": "Look.", "tool_calls": [{"name": "list_files", "arguments": {"dir_path": "."}}] * 2})
    ends = json.dumps({"tool_calls": [{"name": "final_answer", "arguments": {"final_answer": "done"}}]})
    script(looks)
    inspect(
        "eval",
        "mlagentbench/ladder-2",
        "--model",
        "scripted/script.yaml",
        "-T",
        "variant=mini",
        "-T",
        "agent=tool-calling",
        "--no-fail-on-error",
    )
    (run,) = find_runs(tmp_path / "logs")
    assert [step.action.name for step in run.steps()] == ["List Files"] * 2
    script(looks, ends)
    (log,) = (tmp_path / "logs").glob("*.eval")
    inspect("eval-retry", log)
    assert [step.action.name for step in run.steps()] == ["List Files", "List Files", "Final Answer"]
