"""The agent `human`: a person at the terminal does the task, with the same limits, records and grading as any other agent."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping

from pydantic import JsonValue
from pydantic.dataclasses import dataclass

from mlagentbench.actions.base import ActionDefinition, Parameter
from mlagentbench.agents.reply.arguments import squeezed
from mlagentbench.agents.terminal import MARKER, Terminal, own_terminal
from mlagentbench.environment import Environment, Listener
from mlagentbench.errors import ActionError, LimitReached, RunStopped
from mlagentbench.records import Action, Step

ASKING_MODELS = ("Edit Script (AI)", "Edit Script Segment (AI)", "Understand File", "Reflection", "Retrieval from Research Log")
NEVER = ("Request Help",)
LONG = ("content", "command")
"""Arguments that usually have several lines."""
COMMANDS = f"""\
  help      what can be done
  task      the task once more
  quit      stop; the run can be gone on with by mlab resume (Ctrl-D does the same)
An action is named by its name, the beginning of it, or its number. In the place of an argument:
  :c        give the action up
  :e        write the argument in your editor ($EDITOR)
  <<        write it in several lines, the last one {MARKER}"""
YES, NO = ("yes", "y", "true"), ("no", "n", "false")


class _ActionCancelled(Exception):
    """The person cancelled an action."""


@dataclass(frozen=True)
class HumanAgent:
    """Asks you at the terminal for every action."""

    assisted: bool = False
    """Whether actions that ask a model are offered too; a model is then needed."""

    interactive = True
    """True: no progress is shown while it uses the terminal."""

    @property
    def needs_model(self) -> bool:
        """True if the actions that ask a model are offered."""
        return self.assisted

    async def __call__(self, environment: Environment) -> None:
        """Show the task, then take actions until the final answer or a limit.

        Raises:
            RunStopped: the person stopped the run.
        """
        await HumanSession(environment, self.offered(environment), own_terminal()).act()

    def offered(self, environment: Environment) -> Mapping[str, ActionDefinition]:
        """Return the actions that the person can take, by name."""
        left_out = NEVER if self.assisted else (*NEVER, *ASKING_MODELS)
        return {name: action for name, action in environment.actions.items() if name not in left_out}


class HumanSession:
    """A person's work on one run."""

    def __init__(self, environment: Environment, actions: Mapping[str, ActionDefinition], terminal: Terminal) -> None:
        self._environment = environment
        self._actions = actions
        self._terminal = terminal
        self._echo = _Echo(environment.listener, terminal)
        environment.listener = self._echo

    async def act(self) -> None:
        """Take actions until the final answer.

        Raises:
            RunStopped: the person stopped the run.
            LimitReached: a limit of the run was reached.
        """
        self._say(f"\n{self._environment.description.strip()}\n")
        self._help()
        if self._environment.steps:
            self._say(f"\n{len(self._environment.steps)} steps are done already. The last one:")
            self._show(self._environment.steps[-1])
        while not self._environment.ended:
            try:
                async with asyncio.timeout(max(0.0, self._environment.seconds_left)):
                    action = await self._action()
            except TimeoutError:
                self._say("\nThe time is up.")
                raise LimitReached("limit_time", f"the run's {self._environment.limits.time:g} seconds are used up") from None
            if action is not None:
                self._echo.streamed = False
                self._show(await self._environment.execute(action))

    async def _action(self) -> Action | None:
        """Read one line and return the action that it asks for; None if it asks for none."""
        environment = self._environment
        taken = sum(step.counted for step in environment.steps)
        self._say(f"\nStep {taken + 1} of {environment.limits.steps}. {_time(environment.seconds_left)} left.")
        words = (await self._terminal.line("action> ")).strip()
        match words.casefold():
            case "":
                return None
            case "help" | "?":
                self._help()
                return None
            case "task":
                self._say(environment.description.strip())
                return None
            case "quit" | "exit":
                raise RunStopped("the person stopped the run")
        definition = self._named(words)
        if definition is None:
            return None
        try:
            return Action(name=definition.name, arguments=await self._arguments(definition))
        except _ActionCancelled:
            self._say(f"{definition.name} is given up.")
            return None

    def _named(self, words: str) -> ActionDefinition | None:
        """Return the action with this number, name or beginning of a name; if there is not exactly one, say so and return None."""
        names = list(self._actions)
        if words.isdecimal() and 1 <= int(words) <= len(names):
            return self._actions[names[int(words) - 1]]
        wanted = squeezed(words)
        exact = [name for name in names if squeezed(name) == wanted]
        found = exact or [name for name in names if wanted and squeezed(name).startswith(wanted)]
        if len(found) == 1:
            return self._actions[found[0]]
        close = difflib.get_close_matches(words.casefold(), [name.casefold() for name in names], 1)
        hint = next((f" Did you mean {name}?" for name in names if name.casefold() in close), "")
        self._say(f"{words} may be: {', '.join(found)}." if found else f"There is no action {words}.{hint} Write help for what there is.")
        return None

    async def _arguments(self, definition: ActionDefinition) -> dict[str, JsonValue]:
        given: dict[str, JsonValue] = {}
        for name, parameter in definition.parameters.items():
            while True:
                value = await self._value(name, parameter, given)
                if value is None:
                    break
                try:
                    given[name] = definition.check(_others(definition, name) | {name: value})[name]
                    break
                except ActionError as error:
                    self._say(str(error).split(" Its arguments are:")[0])
        return given

    async def _value(self, name: str, parameter: Parameter, given: Mapping[str, JsonValue]) -> JsonValue:
        """Ask for an argument and return its value; None for its default."""
        default = "" if parameter.required else f", by default {parameter.default}"
        long = name in LONG
        prompt = f"  {name} ({parameter.description}{default})"
        if long and self._terminal.editor is None:
            return await self._terminal.text(prompt)
        words = await self._terminal.line(f"{prompt} [Enter for your editor]> " if long else f"{prompt}> ")
        match words.strip():
            case ":c":
                raise _ActionCancelled
            case "<<":
                return await self._terminal.text(f"  {name}")
            case ":e":
                return await self._in_editor(name, given)
            case "" if long:
                return await self._in_editor(name, given)
            case "" if not parameter.required:
                return None
        if parameter.type is bool:
            return words.strip().casefold() in YES if words.strip().casefold() in YES + NO else words
        return words

    async def _in_editor(self, name: str, given: Mapping[str, JsonValue]) -> str:
        """Return a text from the person's editor, which opens on the present content of the file to be written."""
        file = given.get("file_name")
        before = ""
        if name == "content" and isinstance(file, str) and (await self._holds(file)):
            step = await self._environment.execute(Action(name="Read File", arguments={"file_name": file}), counted=False)
            before = step.observation if step.status == "ok" else ""
        text = await self._terminal.edited(before, file if isinstance(file, str) else "text.py")
        return await self._terminal.text(f"  {name}") if text is None else text

    async def _holds(self, file: str) -> bool:
        try:
            return self._environment.workspace.kind(file) == "file"
        except ActionError:
            return False

    def _show(self, step: Step) -> None:
        """Print a step's observation; only its first line if the script's output has already been shown as it came."""
        text = step.observation
        self._say(text.split("\n", 1)[0] if self._echo.streamed else text)

    def _help(self) -> None:
        for number, (name, action) in enumerate(self._actions.items(), start=1):
            self._say(f"{number:>3}  {name:<32} {action.description.splitlines()[0]}")
        self._say(COMMANDS)

    def _say(self, text: str) -> None:
        self._terminal.say(text)


class _Echo:
    """A listener that shows a script's output as it comes and passes everything on to another listener."""

    def __init__(self, listener: Listener, terminal: Terminal) -> None:
        self._listener = listener
        self._terminal = terminal
        self.streamed = False

    def on_status(self, text: str) -> None:
        """Pass the activity on."""
        self._listener.on_status(text)

    def on_output(self, text: str) -> None:
        """Show the output and pass it on."""
        self.streamed = True
        self._terminal.say(text, end="")
        self._listener.on_output(text)

    def on_step(self, step: Step) -> None:
        """Pass the step on."""
        self._listener.on_step(step)


def _others(definition: ActionDefinition, name: str) -> dict[str, JsonValue]:
    """Return placeholder values for the other required arguments, so that one can be checked by itself."""
    plain: dict[type, JsonValue] = {str: "", int: 0, float: 0.0, bool: False}
    return {other: plain[parameter.type] for other, parameter in definition.parameters.items() if parameter.required and other != name}


def _time(seconds: float) -> str:
    minutes = max(0, int(seconds // 60))
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min" if minutes else f"{max(0, int(seconds))} s"
