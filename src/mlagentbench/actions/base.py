"""The `@action` decorator: an action is one typed function, from which its prompt text, argument check and tool are made.

    @action("List Files", returns="The observation will be the names in that folder.")
    async def list_files(context: ActionContext, dir_path: Annotated[str, "a folder, such as ."]) -> str:
        # the docstring here is the description that agents read
        return ", ".join(context.workspace.list(dir_path))

An action returns its observation as text, or as an `Observation` with more fields. If it cannot be done, it raises `ActionError`, whose
message becomes the observation.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, get_args, get_origin, get_type_hints

from pydantic import JsonValue

from mlagentbench.errors import ActionError
from mlagentbench.model import GenerateOptions, Reply
from mlagentbench.records import Role, Step, StepStatus
from mlagentbench.sandbox.base import Execution
from mlagentbench.workspace.paths import Workspace


class Observation(NamedTuple):
    """The result of an action: the text for the agent, and what the step records beside it."""

    text: str
    status: StepStatus = "ok"
    details: Mapping[str, JsonValue] = {}
    """`changed` names a file that the action wrote, so that it can be undone; `final_answer` ends the run."""
    script_seconds: float = 0.0


class SessionAnswer(NamedTuple):
    """The result of a command in the agent's Python session."""

    execution: Execution
    started: bool
    """True if the session is new."""
    ended: bool
    """True if the session ended with this command."""


class ActionContext(Protocol):
    """Everything an action may use. The environment implements it."""

    @property
    def description(self) -> str:
        """The task's description, as the agent is given it."""
        ...

    @property
    def workspace(self) -> Workspace:
        """The agent's files."""
        ...

    @property
    def documents(self) -> Path | None:
        """The folder of texts that the run can search; None if it was given none."""
        ...

    @property
    def steps(self) -> Sequence[Step]:
        """The steps before this action, including those taken before the run was resumed."""
        ...

    async def ask(self, prompt: str, *, role: Role, purpose: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        """Ask a model; the call is counted and recorded with the step."""
        ...

    def can_read(self, role: Role) -> int:
        """Return about how many characters of a file fit into one question to a role's model."""
        ...

    async def run_script(self, command: Sequence[str]) -> Execution:
        """Run a command in the sandbox, within the run's limits; `python` is the task's interpreter."""
        ...

    async def run_in_session(self, source: str) -> SessionAnswer:
        """Run Python source in the agent's session, which is started if there is none."""
        ...

    async def ask_person(self, request: str) -> str:
        """Ask the person who watches the run, and return the answer.

        Raises:
            ActionError: nobody watches the run.
        """
        ...

    def content_after(self, step: int, path: str) -> bytes | None:
        """Return a file's content as it was after a step (0 is the start); None if there was no file."""
        ...


class Parameter(NamedTuple):
    """One argument of an action."""

    description: str
    type: type[str] | type[int] | type[float] | type[bool] = str
    default: JsonValue = None
    required: bool = True


Perform = Callable[..., Awaitable[str | Observation]]


@dataclass(frozen=True)
class ActionDefinition:
    """An action that agents can call."""

    name: str
    """The paper's name for it, such as `Edit Script (AI)`."""
    description: str
    returns: str
    parameters: Mapping[str, Parameter]
    perform: Perform
    hidden: bool = False
    """True for an action that prompts do not mention by default; it can still be called."""
    high_level: bool = False
    """True for what the paper calls a high-level action: one that combines several others, or asks a model."""

    @property
    def tool_name(self) -> str:
        """The action's name as a tool, in snake case: `edit_script_ai`."""
        return "_".join(self.name.replace("(", " ").replace(")", " ").lower().split())

    @property
    def usage(self) -> str:
        """An example of the arguments, as JSON."""
        return json.dumps({name: f"[{parameter.description}]" for name, parameter in self.parameters.items()})

    def check(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the arguments with defaults filled in, each of its parameter's type.

        Raises:
            ActionError: an argument is missing, unknown or of another type; the message shows the usage.
        """
        missing = [name for name, parameter in self.parameters.items() if parameter.required and name not in arguments]
        unknown = [name for name in arguments if name not in self.parameters]
        if missing or unknown:
            what = f"lacks {_listed(missing)}" if missing else f"does not take {_listed(unknown)}"
            raise ActionError(f"{self.name} {what}. Its arguments are: {self.usage}")
        return {
            name: self._value(name, parameter, arguments[name]) if name in arguments else parameter.default
            for name, parameter in self.parameters.items()
        }

    def _value(self, name: str, parameter: Parameter, value: JsonValue) -> JsonValue:
        """Return a value in the parameter's type.

        An int may be given as text or with `.0`, a float as text or as an int; nothing else is converted.

        Raises:
            ActionError: it is of another type.
        """
        if isinstance(value, bool) is (parameter.type is bool) and isinstance(value, parameter.type):
            return value
        try:
            if (
                parameter.type is int
                and not isinstance(value, bool)
                and isinstance(value, str | float)
                and float(value) == int(float(value))
            ):
                return int(float(value))
            if parameter.type is float and not isinstance(value, bool) and isinstance(value, str | int):
                return float(value)
        except (ValueError, OverflowError):
            pass
        kind = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[parameter.type]
        raise ActionError(f"{self.name}: {name} must be {kind}, not {json.dumps(value)[:80]}. Its arguments are: {self.usage}")


def action(name: str, *, returns: str, hidden: bool = False, high_level: bool = False) -> Callable[[Perform], ActionDefinition]:
    """Make an action of a function.

    Its first parameter is the context, and the others are `Annotated[type, description]`. Its docstring is the description for agents.
    """

    def define(function: Perform) -> ActionDefinition:
        hints = get_type_hints(function, include_extras=True)
        parameters = {
            parameter.name: _parameter(hints[parameter.name], parameter.default)
            for parameter in list(inspect.signature(function).parameters.values())[1:]
        }
        description = inspect.cleandoc(function.__doc__ or "")
        return ActionDefinition(name, description, returns, parameters, function, hidden, high_level)

    return define


def _parameter(hint: Any, default: Any) -> Parameter:
    assert get_origin(hint) is Annotated, "an action's parameters are Annotated[type, description]"
    kind, description = get_args(hint)
    required = default is inspect.Parameter.empty
    return Parameter(description, kind, None if required else default, required)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
