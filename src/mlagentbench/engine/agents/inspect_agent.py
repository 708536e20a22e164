"""Run Inspect's own agents unchanged: `--agent path/to/file.py:name`, where the name is an `@agent` or what one returns.

    from inspect_ai.agent import agent, react
    from mlagentbench.engine.agents.inspect_agent import action_tools

    @agent
    def mine():
        return react(prompt="You do research.", tools=action_tools())

If an `@agent` has a parameter `tools` that is not set by an option, it receives the actions: a file with only
`from inspect_ai.agent import react` has an agent `react`. Questions to `get_model()`, for any role, go to the agent's model; a model that
the agent names itself is neither recorded nor limited. If it does not call `final_answer`, its answer is its final output.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

from inspect_ai.agent import Agent as AnAgent
from inspect_ai.agent import AgentState
from inspect_ai.model import ChatMessageUser
from inspect_ai.tool import Tool, ToolDef

from mlagentbench.actions import ACTIONS
from mlagentbench.actions.base import ActionDefinition
from mlagentbench.engine.agents.conversation import model_asking
from mlagentbench.engine.agents.external import ExternalAgent, task_prompt
from mlagentbench.engine.agents.tools import FINAL_ANSWER, as_tool, offered
from mlagentbench.engine.compat import use_model
from mlagentbench.environment import Environment

_current: ContextVar[ExternalAgent] = ContextVar("external")


def action_tools(actions: Sequence[str] | None = None) -> list[Tool]:
    """Return the actions as Inspect tools, for agents that run in an environment of this package.

    Args:
        actions: their names; by default those that the research agent's prompt mentions.

    Raises:
        ValueError: there is no action of a name.
    """
    return [_tool(definition) for definition in offered(actions)]


def _tool(definition: ActionDefinition) -> Tool:
    async def execute(**arguments: Any) -> str:
        return await _current.get().act(definition.name, arguments)

    shown = as_tool(definition)
    return ToolDef(execute, name=shown.name, description=shown.description, parameters=shown.parameters, max_output=0).as_tool()


class InspectAgent:
    """One of Inspect's own agents, named by its file: `--agent path/to/file.py:name`.

    Args:
        made_by: the `@agent`, or the agent that one returns; given by the file and name.
        options: the agent's options.
    """

    def __init__(self, made_by: Callable[..., Any], **options: Any) -> None:
        self._with_tools: Callable[..., AnAgent] | None = None
        if inspect.iscoroutinefunction(made_by) or "state" in inspect.signature(made_by).parameters:
            if options:
                raise TypeError("it is made already, and takes no options")
            self._agent = cast(AnAgent, made_by)
            return
        if "tools" in inspect.signature(made_by).parameters and "tools" not in options:
            self._with_tools = partial(made_by, **options)
            options["tools"] = action_tools()
        self._agent = made_by(**options)

    async def __call__(self, environment: Environment) -> None:
        """Run the agent until it ends, and submit its answer."""
        if self._with_tools is not None:
            self._agent = self._with_tools(tools=[_tool(definition) for definition in offered(None, environment.actions)])
        external = ExternalAgent(environment)
        await external.stay(self._answer(environment, external))

    async def _answer(self, environment: Environment, external: ExternalAgent) -> str:
        # This runs in an asyncio task of its own, so these context variables affect no other agent.
        _current.set(external)
        use_model(model_asking(external.ask))
        task = task_prompt(environment, ACTIONS[FINAL_ANSWER].tool_name)
        state = await self._agent(AgentState(messages=[ChatMessageUser(content=task, source="input")]))
        return state.output.completion
