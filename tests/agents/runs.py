"""A run of an agent that is written down in replies, and what its model was asked."""

from __future__ import annotations

from typing import Any

from mlagentbench import Agent, Environment, ScriptedReply
from mlagentbench.agents.base import make_agent
from mlagentbench.records import ModelCall
from tests.support import finish, reply

LIST = reply("List Files", '{"dir_path": "."}')
RUN = reply("Execute Script", '{"script_name": "train.py"}')
END = reply("Final Answer", '{"final_answer": "done"}')


def live(environment: Environment, agent: Agent | str = "research", **options: Any) -> None:
    """Have an agent live, by its name and options or as it is."""

    async def story() -> None:
        await environment.start()
        await (make_agent(agent, options) if isinstance(agent, str) else agent)(environment)
        await environment.settle()

    finish(story())


def calls(environment: Environment, role: str | None = None) -> list[ModelCall]:
    """What models were asked, in order."""
    directory = environment.directory
    found = [call for number in range(1, len(environment.steps) + 2) for call in directory.calls(number)]
    return [call for call in found if role in (None, call.role)]


def fast(text: str, **more: Any) -> ScriptedReply:
    """A reply of the fast model."""
    return ScriptedReply(role="fast", reply=text, **more)
