"""LangChain's agents: their tools are our actions, and their client speaks to Inspect's model."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from mlagentbench.agents.base import make_agent
from mlagentbench.cli.main import run
from mlagentbench.engine.agents.langchain import PACKAGES
from mlagentbench.errors import AgentError
from tests.engine import server as bad
from tests.engine.server import Fault, Provider, Wire, calling
from tests.engine.whole import MODELS, carry_on, carry_out, make_plan, said

MISSING = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
installed = pytest.mark.skipif(bool(MISSING), reason=f"the extra langchain is not installed: {', '.join(MISSING)}")
pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:lang.*"),
]

WIRES: tuple[Wire, ...] = ("openai", "anthropic")
LIST = ("list_files", '{"dir_path": "."}')
LOST = ("list_files", '{"dir_path": "no-such-folder"}')
END = ("final_answer", '{"final_answer": "It is done."}')


def writing(action: str, arguments: str) -> str:
    return f"I go on.\nAction: {action}\nAction Input: {arguments}"


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "langchain", None)
    with pytest.raises(AgentError, match=r'install it with: pip install "mlagentbench\[langchain\]"'):
        make_agent("langchain")
    assert run(["run", "vectorization", "--agent", "langchain", "--model", "none/none", "--log-dir", str(tmp_path / "runs")]) == 2
    assert 'pip install "mlagentbench[langchain]"' in " ".join(capfd.readouterr().err.split())
    assert not (tmp_path / "runs").exists()


def test_a_kind_that_there_is_not_is_one_line() -> None:
    with pytest.raises(AgentError, match="kind is one of agent, zero-shot, not 'many'"):
        make_agent("langchain", {"kind": "many"})


@installed
@pytest.mark.parametrize("wire", WIRES)
def test_tool_calls_are_steps(server: Provider, tmp_path: Path, wire: Wire) -> None:
    server.behave(calling(LIST, LOST, text="Look."), calling(END, text="Enough."))
    ended = carry_out(make_plan(tmp_path, "langchain"), MODELS[wire])
    assert ended.result.outcome.ended == "final_answer", ended.result.outcome
    assert ended.actions == ["List Files", "List Files", "Final Answer"]
    assert ended.directory.steps()[0].entries == {"Thought": "Look."}
    assert ended.result.usage["agent"].calls == 2
    assert ended.directory.steps()[1].observation in json.dumps(said(server.requests[1]))


@installed
def test_a_reply_without_a_call_is_its_answer(server: Provider, tmp_path: Path) -> None:
    server.behave(calling(LIST), "All is done.")
    ended = carry_out(make_plan(tmp_path, "langchain"))
    assert (ended.actions, ended.result.final_answer) == (["List Files", "Final Answer"], "All is done.")


@installed
def test_the_zero_shot_agent_writes_its_actions(server: Provider, tmp_path: Path) -> None:
    server.behave(
        writing("List Files", '{"dir_path": "."}'),
        "I would rather talk.",
        writing("Execute Script", '{"nope": 1}'),
        writing("Execute Script", "train.py"),
        "I know it.\nFinal Answer: All is done.",
    )
    ended = carry_out(make_plan(tmp_path, "langchain", kind="zero-shot"))
    assert ended.actions == ["List Files", "Execute Script", "Execute Script", "Final Answer"]
    assert [step.status for step in ended.directory.steps()] == ["ok", "error", "error", "ok"]
    assert ended.result.final_answer == "All is done."
    assert [step.malformed for step in ended.directory.steps()] == [0, 1, 0, 0]
    assert server.requests[0].body["stop"] == ["\nObservation"]
    assert "train.py" in server.requests[1].prompt


@installed
def test_five_replies_that_cannot_be_read_end_it(server: Provider, tmp_path: Path) -> None:
    server.behave("I would rather talk.")
    ended = carry_out(make_plan(tmp_path, "langchain", kind="zero-shot"))
    assert (ended.result.outcome.ended, len(server.requests)) == ("format_failure", 5)


@installed
@pytest.mark.parametrize("kind", ["agent", "zero-shot"])
def test_limits_hold_and_failures_are_the_providers(server: Provider, tmp_path: Path, kind: str) -> None:
    reply: str | Fault = calling(LIST) if kind == "agent" else writing("List Files", '{"dir_path": "."}')
    server.behave(reply, faults=[bad.BROKEN, bad.MALFORMED])
    ended = carry_out(make_plan(tmp_path, "langchain", steps=2, kind=kind))
    assert (ended.result.outcome.ended, len(ended.actions)) == ("limit_steps", 2)
    server.behave(faults=[Fault(text=reply) if isinstance(reply, str) else reply], always=bad.UNAUTHORIZED)
    ended = carry_out(make_plan(tmp_path / "again", "langchain", kind=kind))
    assert (ended.result.outcome.ended, len(ended.actions)) == ("infrastructure", 1)


@installed
@pytest.mark.parametrize("kind", ["agent", "zero-shot"])
def test_a_run_forked_from_any_step_goes_on(server: Provider, tmp_path: Path, kind: str) -> None:
    calls: list[str | Fault] = [calling(LIST, LOST), calling(LOST), "All is done."]
    lines: list[str | Fault] = [writing("List Files", '{"dir_path": "."}')] * 3 + ["Final Answer: All is done."]
    replies, numbers = (calls, [0, 1, 1, 2]) if kind == "agent" else (lines, [0, 1, 2, 3])
    server.behave(*replies)
    whole = carry_out(make_plan(tmp_path, "langchain", kind=kind))
    questions = [said(request) for request in server.requests]
    assert len(whole.actions) == 4
    for step, asked in enumerate(numbers):
        server.behave(*replies[asked:])
        fork = carry_on(whole, step)
        assert fork.actions == whole.actions
        assert [said(request) for request in server.requests] == questions[asked:], f"from step {step}"
