"""A person watches a run: every agent that is offered tools is offered help, too, and no agent is where nobody watches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.server import Provider, calling
from tests.engine.whole import carry_out, make_plan

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

HELP = ("request_help", '{"request": "Which number?"}')
END = ("final_answer", '{"final_answer": "done"}')
AGENT = """
from inspect_ai.agent import Agent, AgentState, agent
from inspect_ai.model import execute_tools, get_model
from inspect_ai.tool import Tool


@agent
def caller(tools: list[Tool]) -> Agent:
    async def act(state: AgentState) -> AgentState:
        while True:
            state.output = await get_model().generate(state.messages, tools)
            state.messages.append(state.output.message)
            messages, output = await execute_tools(state.messages, tools)
            state.messages.extend(messages)

    return act
"""


async def person(request: str) -> str:
    assert request == "Which number?"
    return "A large one."


@pytest.mark.parametrize("agent", ["tool-calling", "langchain", "of Inspect's"])
def test_help_is_offered_where_somebody_watches_and_only_there(server: Provider, tmp_path: Path, agent: str) -> None:
    if agent == "langchain":
        pytest.importorskip("langchain")
    if agent == "of Inspect's":
        (tmp_path / "caller.py").write_text(AGENT)
        agent = f"{tmp_path / 'caller.py'}:caller"
    server.behave(calling(HELP), calling(END))
    ended = carry_out(make_plan(tmp_path / "watched", agent), person=person)
    assert ended.actions == ["Request Help", "Final Answer"]
    assert ended.directory.steps()[0].observation == "A large one."
    assert "request_help" in offered(server)
    server.behave(calling(END))
    carry_out(make_plan(tmp_path / "alone", agent))
    assert "request_help" not in offered(server)


def offered(server: Provider) -> list[str]:
    """The names of the tools of the last request."""
    return [tool["function"]["name"] for tool in server.requests[-1].body["tools"]]
