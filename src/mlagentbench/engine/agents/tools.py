"""Offer our actions to models as tools, and execute them as Inspect tool calls, so that its log shows them and its approvals apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from inspect_ai.model import ChatMessageAssistant, execute_tools
from inspect_ai.tool import ToolCall, ToolDef, ToolInfo, ToolParam, ToolParams

from mlagentbench.actions import ACTIONS
from mlagentbench.actions.base import ActionDefinition, Observation
from mlagentbench.environment import Perform
from mlagentbench.errors import ActionError
from mlagentbench.records import Action

FINAL_ANSWER = "Final Answer"
JSON_TYPES: dict[type, Any] = {str: "string", int: "integer", float: "number", bool: "boolean"}
WHOLE = 0
"""The value of a tool's `max_output` with which Inspect cuts nothing, since the environment has cut the output already."""


def tool_name(action: str) -> str:
    """Return the tool name of an action; an unknown action keeps its name."""
    return ACTIONS[action].tool_name if action in ACTIONS else action


def tool_parameters(definition: ActionDefinition) -> ToolParams:
    """Return an action's arguments as a tool's parameters."""
    properties = {
        name: ToolParam(type=JSON_TYPES[parameter.type], description=parameter.description)
        for name, parameter in definition.parameters.items()
    }
    return ToolParams(properties=properties, required=[name for name, parameter in definition.parameters.items() if parameter.required])


def as_tool(definition: ActionDefinition) -> ToolInfo:
    """Return an action as a tool to offer to a model."""
    description = f"{definition.description}\n\n{definition.returns}"
    return ToolInfo(name=definition.tool_name, description=description, parameters=tool_parameters(definition))


def offered(names: Sequence[str] | None, actions: Mapping[str, ActionDefinition] = ACTIONS) -> list[ActionDefinition]:
    """Return the actions to offer to an agent: those named, or else those that prompts mention.

    Args:
        names: the actions' names, as in the paper or as tools; the final answer is always added. None for the default ones.
        actions: the actions to choose from; an environment's own depend on whether a person can be asked for help.

    Raises:
        ValueError: there is no action of a name.
    """
    if names is None:
        return [definition for definition in actions.values() if not definition.hidden]
    known = {alias: definition for definition in actions.values() for alias in (definition.name, definition.tool_name)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no action {unknown[0]!r}; the actions are: {', '.join(actions)}")
    wanted = {known[name].name for name in (*names, FINAL_ANSWER)}
    return [definition for definition in actions.values() if definition.name in wanted]


async def as_tool_call(action: Action, perform: Perform) -> Observation:
    """Perform an action as if a model had called it as a tool. If Inspect's approval rejects it, the observation says so."""
    definition = ACTIONS.get(action.name)
    try:
        arguments = definition.check(action.arguments) if definition else None
    except ActionError:
        arguments = None
    if definition is None or arguments is None:
        # It would not be a valid tool call; the environment's observation says what is wrong with it.
        return await perform(action)
    performed: list[Observation] = []

    async def execute(**kwargs: Any) -> str:
        observation = await perform(Action(name=action.name, arguments=kwargs))
        performed.append(observation)
        return observation.text

    tool = ToolDef(
        execute, name=definition.tool_name, description=definition.description, parameters=tool_parameters(definition), max_output=WHOLE
    )
    call = ToolCall(id=uuid4().hex, function=definition.tool_name, arguments=arguments)
    result = await execute_tools([ChatMessageAssistant(content="", tool_calls=[call])], [tool])
    if performed:
        return performed[0]
    error = getattr(result.messages[0], "error", None)
    return Observation(f"{action.name} was not allowed: {error.message if error else 'no reason was given'}", "error")
