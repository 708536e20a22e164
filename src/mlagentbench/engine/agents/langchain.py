"""Run LangChain's agents with our actions, through Inspect's agent bridge, which intercepts the requests of LangChain's OpenAI client.

`kind` chooses between LangChain's current agent, whose model calls tools natively, and the paper's zero-shot ReAct agent, which writes text
with `Action` and `Action Input` and has the tools described in its prompt, without an example. Needs the extra `langchain`.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from inspect_ai.agent import agent_bridge
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo

from mlagentbench.actions import ACTIONS
from mlagentbench.actions.base import ActionDefinition
from mlagentbench.actions.fences import fenced
from mlagentbench.agents.base import PROMPTS
from mlagentbench.agents.reply.response import parse_response
from mlagentbench.engine.agents.external import ExternalAgent, task_prompt
from mlagentbench.engine.agents.tools import FINAL_ANSWER, as_tool, offered
from mlagentbench.engine.models.model import InspectRequest
from mlagentbench.environment import Environment
from mlagentbench.errors import AgentError, ResponseFormatError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Kind = Literal["agent", "zero-shot"]
PACKAGES = ("langchain", "langchain_classic", "langchain_openai")
LEFT_OUT = {"extra_headers", "system_message"}
"""The settings of a request that are not passed on, since the client made them for the bridge and not for the provider."""
ENDLESS = 1_000_000
"""Steps that LangChain may take: practically unlimited, since the environment applies the run's limits."""


class LangChainAgent:
    """One of LangChain's agents: the current one, which calls tools, or the paper's zero-shot ReAct.

    Args:
        kind: `agent`, which calls tools, or `zero-shot`, which writes text in the manner of ReAct.
        actions: the names of the actions that are offered; by default those that the research agent's prompt mentions.
    """

    extra = "langchain"

    def __init__(self, kind: str = "agent", actions: list[str] | None = None) -> None:
        if kind not in get_args(Kind):
            raise ValueError(f"kind is one of {', '.join(get_args(Kind))}, not {kind!r}")
        missing = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
        if missing:
            raise AgentError(f'the agent langchain needs {missing[0]}; install it with: pip install "mlagentbench[{self.extra}]"')
        self.kind = kind
        self.actions = actions
        offered(actions)  # raises for an unknown name before anything runs

    async def __call__(self, environment: Environment) -> None:
        """Run the agent until it ends, and submit its answer."""
        zero_shot = self.kind == "zero-shot"
        external = ExternalAgent(environment, _check_text if zero_shot else lambda output: None)
        await external.stay(self._writes(environment, external) if zero_shot else self._calls(environment, external))

    async def _calls(self, environment: Environment, external: ExternalAgent) -> str:
        from langchain.agents import create_agent
        from langchain_core.tools import StructuredTool

        tools = []
        for definition in offered(self.actions, environment.actions):
            shown = as_tool(definition)
            schema = shown.parameters.model_dump(exclude_none=True)
            tools.append(
                StructuredTool(name=shown.name, description=shown.description, args_schema=schema, coroutine=_doing(external, definition))
            )
        async with agent_bridge(filter=partial(_asked, external)):
            agent = create_agent(_client(), tools)
            question = {"messages": [{"role": "user", "content": task_prompt(environment, ACTIONS[FINAL_ANSWER].tool_name)}]}
            state: dict[str, Any] = await agent.ainvoke(question, {"recursion_limit": ENDLESS})
        return str(state["messages"][-1].text)

    async def _writes(self, environment: Environment, external: ExternalAgent) -> str:
        from langchain_classic.agents import AgentExecutor, create_react_agent
        from langchain_core.prompts import PromptTemplate
        from langchain_core.tools import Tool

        tools = [
            Tool(
                name=definition.name,
                description=f"{definition.description} Input: {definition.usage} {definition.returns}",
                func=None,
                coroutine=_doing_by_text(external, definition),
            )
            for definition in offered(self.actions, environment.actions)
            if definition.name != FINAL_ANSWER
        ]
        prompt = PromptTemplate.from_template((PROMPTS / "langchain_zero_shot.md").read_text())
        async with agent_bridge(filter=partial(_asked, external)):
            agent = create_react_agent(_client(), tools, prompt, stop_sequence=["\nObservation"])
            executor = AgentExecutor(agent=agent, tools=tools, max_iterations=None, handle_parsing_errors=True, stream_runnable=False)
            ended: dict[str, Any] = await executor.ainvoke({"input": task_prompt(environment, FINAL_ANSWER)})
        return str(ended["output"])


def _client() -> BaseChatModel:
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    # The bridge intercepts requests to a model of this name.
    return ChatOpenAI(model="inspect", api_key=SecretStr("none"), base_url="http://localhost", disable_streaming=True, max_retries=0)


async def _asked(
    external: ExternalAgent,
    model: Model,
    messages: list[ChatMessage],
    tools: list[ToolInfo],
    choice: ToolChoice | None,
    config: GenerateConfig,
) -> ModelOutput:
    settings = GenerateConfig.model_validate(config.model_dump(exclude=LEFT_OUT, exclude_none=True))
    return await external.ask(InspectRequest(messages, tools, choice, settings))


# The tools below are closures and not `functools.partial` objects, since LangChain inspects their signatures.


def _doing(external: ExternalAgent, definition: ActionDefinition) -> Callable[..., Awaitable[str]]:
    """Return a function that executes an action with keyword arguments."""

    async def do(**arguments: Any) -> str:
        return await external.act(definition.name, arguments)

    return do


def _doing_by_text(external: ExternalAgent, definition: ActionDefinition) -> Callable[[str], Awaitable[str]]:
    """Return a function that executes an action with arguments given as text."""
    do = _doing(external, definition)

    async def do_by_text(text: str) -> str:
        try:
            response = parse_response(f"Action: {definition.name}\nAction Input: {text}", (), {definition.name: definition})
        except ResponseFormatError:
            # The action itself rejects arguments that cannot be parsed, so that the attempt counts as a step.
            return fenced(await do(**_loosely(text)))
        return fenced(await do(**response.arguments))

    return do_by_text


def _loosely(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _check_text(output: ModelOutput) -> None:
    """Raise ResponseFormatError if LangChain cannot parse a reply.

    Raises:
        ResponseFormatError: LangChain cannot parse it.
    """
    from langchain_classic.agents.output_parsers import ReActSingleInputOutputParser
    from langchain_core.exceptions import OutputParserException

    try:
        ReActSingleInputOutputParser().parse(output.completion)
    except OutputParserException as error:
        raise ResponseFormatError(" ".join(str(error).split())[:300]) from None
