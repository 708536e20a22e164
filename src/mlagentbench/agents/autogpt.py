"""The classic AutoGPT loop over this package's actions: each reply holds thoughts, a plan, a criticism of both, and one command.

Its short-term memory holds the last replies and their results within a budget; what no longer fits is summarised by the fast model, or
dropped. Its only long-term memory is the files it writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial

from pydantic import JsonValue

from mlagentbench.actions.base import ActionDefinition
from mlagentbench.actions.fences import fenced
from mlagentbench.agents.base import ask_until_parsed, render
from mlagentbench.agents.reply.arguments import ArgumentError, action_names, fit_arguments, squeezed
from mlagentbench.agents.reply.labels import end_of_thinking
from mlagentbench.agents.reply.loose_json import read_object
from mlagentbench.agents.reply.response import Response
from mlagentbench.agents.reply.values import ParsedObject, Unreadable, Value
from mlagentbench.environment import Environment
from mlagentbench.errors import ActionError, ResponseFormatError
from mlagentbench.model import GenerateOptions
from mlagentbench.records import Action, Step
from mlagentbench.util.text import shortened

THOUGHTS: Mapping[str, str] = {"text": "Thought", "reasoning": "Reasoning", "plan": "Plan", "criticism": "Criticism"}
"""The entries of a step, by the keys of a reply's thoughts."""
SUMMARY_WORDS = 400
LARGEST_PART = 4
"""A reply or a result takes at most a quarter of the budget; the middle of a longer one is left out."""
REPLY_OPTIONS = GenerateOptions(temperature=0.5, max_tokens=2000)
SUMMARY_OPTIONS = GenerateOptions(temperature=0.01, max_tokens=1000)


class AutoGPTAgent:
    """The classic AutoGPT: JSON replies with thoughts, reasoning, a plan and criticism, and a short-term memory.

    Args:
        memory_characters: characters of the prompt for the last replies and results, in all; by default half of what the model can read.
        summarise: whether replies and results that no longer fit are summarised; else they are dropped.
    """

    def __init__(self, memory_characters: int | None = None, summarise: bool = True) -> None:
        if memory_characters is not None and memory_characters < 1:
            raise ValueError("memory_characters must be at least 1")
        self.memory_characters = memory_characters
        self.summarise = summarise

    async def __call__(self, environment: Environment) -> None:
        """Ask the model and execute its commands, until the final answer or a limit."""
        memory = _ShortTerm(self.memory_characters or environment.can_read("agent"), environment.steps)
        while not environment.ended:
            await memory.fit(environment, summarise=self.summarise)
            response = await self._respond(environment, memory)
            action = Action(name=response.action, arguments=response.arguments)
            await environment.execute(action, entries=response.entries, memory=memory.memory())

    async def _respond(self, environment: Environment, memory: _ShortTerm) -> Response:
        prompt = render(
            "autogpt.md",
            task=environment.description.strip(),
            actions=[action for action in environment.actions.values() if not action.hidden],
            steps=environment.limits.steps,
            hours=f"{environment.limits.time / 3600:g} hours",
            summary=memory.summary,
            messages=[memory.message(step) for step in environment.steps[memory.through :]],
        )
        return await ask_until_parsed(environment, prompt, partial(parse_command, actions=environment.actions), REPLY_OPTIONS)


class _ShortTerm:
    """The short-term memory: a summary of the first steps, and the steps after them as they were.

    Args:
        budget: characters for the steps.
        steps: the run's steps so far; the newest summary recorded in them is used.
    """

    def __init__(self, budget: int, steps: Sequence[Step]) -> None:
        self.budget = budget
        self._new = False
        self.summary, self.through = "", 0
        """`through` is the number of the last step that the summary replaces."""
        for step in steps:
            summary, through = step.memory.get("summary"), step.memory.get("through")
            if isinstance(summary, str) and isinstance(through, int):
                self.summary, self.through = summary, through

    def memory(self) -> dict[str, JsonValue]:
        """Return what to record with the next step, for a run that is resumed: the summary, if it is new."""
        new, self._new = self._new, False
        return {"summary": self.summary, "through": self.through} if new else {}

    def message(self, step: Step) -> str:
        """Return a step for the prompt: the reply as the agent wrote it, and the command's result."""
        thoughts = {key: step.entries[entry] for key, entry in THOUGHTS.items() if entry in step.entries}
        reply = {"thoughts": thoughts, "command": {"name": step.action.name, "args": dict(step.action.arguments)}}
        most = max(1, self.budget // LARGEST_PART)
        written = shortened(json.dumps(reply, indent=4, ensure_ascii=False), most)
        return f"You replied:\n{written}\nThe command {step.action.name} returned:\n{fenced(shortened(step.observation, most))}"

    async def fit(self, environment: Environment, *, summarise: bool) -> None:
        """Drop the oldest steps if they exceed the budget, down to half of it so that this does not happen at every step."""
        steps = environment.steps[self.through :]
        sizes = [len(self.message(step)) for step in steps]
        if sum(sizes) <= self.budget:
            return
        leaving = 0
        while leaving < len(steps) - 1 and sum(sizes[leaving:]) > self.budget // 2:
            leaving += 1
        if not leaving:
            return
        if summarise:
            self.summary = await self._summarised(environment, steps[:leaving])
        self.through += leaving
        self._new = True

    async def _summarised(self, environment: Environment, steps: Sequence[Step]) -> str:
        """Return a summary of the old summary and some steps; the old summary alone if no model can read them."""
        prompt = render("autogpt_summary.md", words=SUMMARY_WORDS, summary=self.summary, messages=[self.message(step) for step in steps])
        try:
            reply = await environment.ask(prompt, role="fast", purpose="short-term memory", options=SUMMARY_OPTIONS)
        except ActionError:
            return self.summary
        return reply.text.strip()


_BRACE = re.compile(r"\{(?!\s*\w[\w -]{0,80}\})")
"""The beginning of an object, as opposed to a placeholder such as `{script_name}`."""


def parse_command(text: str, actions: Mapping[str, ActionDefinition]) -> Response:
    """Read a reply: its thoughts, and its command.

    The object may be inside a code fence, or after prose or thinking. One that is nearly JSON is read if it has only one possible reading.

    Raises:
        ResponseFormatError: the reply holds no such object, or its command is unknown or does not fit. The message says what to correct.
    """
    found = _reply(text[end_of_thinking(text) :])
    command = found.pairs["command"]
    words, given = (command.get("name"), command.get("args")) if isinstance(command, dict) else (None, None)
    if not isinstance(words, str) or not isinstance(given, dict):
        raise ResponseFormatError('"command" must be an object with "name", which is text, and "args", which is an object.')
    name = action_names(actions).get(squeezed(words))
    if name is None:
        offered = ", ".join(known for known, definition in actions.items() if not definition.hidden)
        raise ResponseFormatError(f"There is no command {json.dumps(words[:80], ensure_ascii=False)}. The commands are: {offered}.")
    try:
        arguments = fit_arguments(actions[name], given)
    except ArgumentError as fault:
        raise ResponseFormatError(f"The args of {name} do not fit: {fault}.\nThey are: {actions[name].usage}") from None
    return Response(_entries(found.pairs.get("thoughts")), name, arguments)


def _reply(text: str) -> ParsedObject:
    """Return the first object in a text that has a command."""
    start = _BRACE.search(text)
    while start:
        try:
            found = read_object(text, start.start(), (), len(text))
        except Unreadable as fault:
            raise ResponseFormatError(f"The reply's JSON cannot be read: {fault}.") from None
        if "command" in found.pairs:
            return found
        start = _BRACE.search(text, found.end)
    raise ResponseFormatError('The reply holds no JSON object with the key "command".')


def _entries(thoughts: Value) -> dict[str, str]:
    if isinstance(thoughts, str):
        return {"Thought": thoughts.strip()}
    if not isinstance(thoughts, dict):
        return {}
    return {entry: text for key, entry in THOUGHTS.items() if (text := _text(thoughts.get(key)))}


def _text(value: Value) -> str:
    """Return a thought as text; a list, as plans often are, has one line for each item."""
    if isinstance(value, list):
        return "\n".join(f"- {_text(item)}" for item in value)
    return "" if value is None else value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
