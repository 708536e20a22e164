"""Inspect's own agents act here as they are: their calls are steps, their questions recorded, and their runs go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlagentbench.agents.base import make_agent
from mlagentbench.errors import AgentError
from tests.engine import server as bad
from tests.engine.server import Fault, Provider, Wire, calling
from tests.engine.whole import MODELS, carry_on, carry_out, make_plan, said

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

WIRES: tuple[Wire, ...] = ("openai", "anthropic")
LIST = ("list_files", '{"dir_path": "."}')
RUN = ("execute_script", '{"script_name": "train.py"}')
MISSING = ("list_files", '{"dir_path": "no-such-folder"}')
END = ("final_answer", '{"final_answer": "It is done."}')
SUBMIT = ("submit", '{"answer": "It is submitted."}')
AGENTS = """
import random
from inspect_ai.agent import agent, react
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.tool import tool
from mlagentbench.engine.agents.inspect_agent import action_tools

@agent
def mine(prompt="Do research."):
    return react(prompt=prompt, tools=action_tools(["List Files", "Execute Script"]))

made = react(prompt="Do research.", tools=action_tools())

@agent
def fickle():
    async def execute(state):
        first = action_tools(["List Files"])[-1]
        await get_model().generate("Say hello.")
        await first(dir_path=random.choice(["a", "b", "c", "d"]) + str(random.random()))
        return state
    return execute

@agent
def chatty():
    async def execute(state):
        while True:
            state.output = await get_model(role="fast").generate("Say hello.")
    return execute

@agent
def swallows():
    async def execute(state):
        while True:
            try:
                await action_tools(["List Files"])[-1](dir_path=".")
            except Exception:
                pass
    return execute
"""


@pytest.fixture
def agents(tmp_path: Path) -> str:
    path = tmp_path / "agents.py"
    path.write_text(AGENTS)
    return str(path)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ["mine", "made", "react"])
def test_its_calls_are_steps_and_its_answer_is_submitted(server: Provider, tmp_path: Path, agents: str, wire: Wire, name: str) -> None:
    server.behave(calling(LIST, RUN, text="Look."), calling(SUBMIT, text="Enough."))
    ended = carry_out(make_plan(tmp_path, f"{agents}:{name}"), MODELS[wire])
    assert ended.result.outcome.ended == "final_answer", ended.result.outcome
    assert ended.actions == ["List Files", "Execute Script", "Final Answer"]
    first, second, _ = ended.directory.steps()
    assert (first.entries, second.entries) == ({"Thought": "Look."}, {})
    assert "It is submitted." in (ended.result.final_answer or "")
    assert ended.result.usage["agent"].calls == 2
    assert [len(ended.directory.calls(number)) for number in (1, 2, 3)] == [1, 0, 1]
    assert "Write a large number" in json.dumps(said(server.requests[0]))


def test_a_final_answer_as_an_action_ends_it_at_once(server: Provider, tmp_path: Path, agents: str) -> None:
    server.behave(calling(LIST), calling(END, LIST))
    ended = carry_out(make_plan(tmp_path, f"{agents}:made"))
    assert ended.actions == ["List Files", "Final Answer"]
    assert len(server.requests) == 2


def test_its_options_are_its_own(server: Provider, tmp_path: Path, agents: str) -> None:
    server.behave(calling(SUBMIT))
    carry_out(make_plan(tmp_path, f"{agents}:mine", prompt="Be bold."))
    assert "Be bold." in json.dumps(said(server.requests[0]))
    with pytest.raises(AgentError, match="has no option 'colour'; it has: prompt"):
        make_agent(f"{agents}:mine", {"colour": "red"})


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_forked_from_any_step_goes_on(server: Provider, tmp_path: Path, agents: str, wire: Wire) -> None:
    replies: list[str | Fault] = [calling(LIST, MISSING), "Words.", calling(LIST), calling(SUBMIT)]
    server.behave(*replies)
    whole = carry_out(make_plan(tmp_path, f"{agents}:mine"), MODELS[wire])
    questions = [said(request) for request in server.requests]
    assert len(whole.actions) == 4
    for step, asked in enumerate([0, 1, 1, 3]):
        server.behave(*replies[asked:])
        fork = carry_on(whole, step, MODELS[wire])
        assert fork.actions == whole.actions
        assert [said(request) for request in server.requests] == questions[asked:], f"from step {step}"


def test_one_that_does_not_do_the_same_again_is_refused(server: Provider, tmp_path: Path, agents: str) -> None:
    server.behave("Hello.")
    ended = carry_out(make_plan(tmp_path, f"{agents}:fickle"))
    assert ended.actions == ["List Files", "Final Answer"]
    with pytest.raises(AgentError, match="the run cannot go on: begun anew, its agent changes its mind about step 1"):
        carry_on(ended, 1)


def test_limits_hold_whatever_the_agent_catches(server: Provider, tmp_path: Path, agents: str) -> None:
    server.behave(calling(LIST))
    ended = carry_out(make_plan(tmp_path, f"{agents}:made", steps=3))
    assert (ended.result.outcome.ended, len(ended.actions)) == ("limit_steps", 3)
    ended = carry_out(make_plan(tmp_path / "again", f"{agents}:swallows", steps=3))
    assert (ended.result.outcome.ended, len(ended.actions)) == ("limit_steps", 3)


def test_one_that_only_talks_is_ended(server: Provider, tmp_path: Path, agents: str) -> None:
    ended = carry_out(make_plan(tmp_path, f"{agents}:chatty"))
    assert ended.result.outcome.ended == "format_failure"
    assert len(server.requests) == 50


def test_a_provider_that_fails_is_asked_again_and_no_fault_of_the_agents(server: Provider, tmp_path: Path, agents: str) -> None:
    server.behave(calling(LIST), calling(SUBMIT), faults=[bad.BROKEN, bad.MALFORMED, bad.too_many()])
    assert carry_out(make_plan(tmp_path, f"{agents}:mine")).result.outcome.ended == "final_answer"
    server.behave(faults=[calling(LIST)], always=bad.UNAUTHORIZED)
    assert carry_out(make_plan(tmp_path / "again", f"{agents}:mine")).result.outcome.ended == "infrastructure"
