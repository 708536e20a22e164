"""Parse the logs of the original's third-party agents: LangChain's, and AutoGPT, which bypasses the environment and leaves no trace."""

from __future__ import annotations

import ast
import calendar
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.original.calls import LoggedCall, read_calls
from mlagentbench.original.files import LogFolders, Reader, parse_json, storable, text_of
from mlagentbench.original.trace import TraceStep

_STAMPED = re.compile(r".*_([0-9]{8}-[0-9]{6})\.log")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_ACTION = re.compile(r"^Action:[ \t]*(?P<action>[^\n]+)\nAction Input:", re.MULTILINE)
_QUESTION = "Determine exactly one command to use"
"""The end of AutoGPT's question. The result of the previous command precedes it."""
NOT_JSON = "its JSON could not be read"


class AutoGPTCall(NamedTuple):
    """A model call of AutoGPT, and what it was for."""

    call: LoggedCall
    step: int
    """The index of the step after the call; the number of steps if there is none."""
    commands: bool
    """Whether it asked for a command, and not for a summary of the memory."""
    rejected: str | None


class AutoGPTRun(NamedTuple):
    """An AutoGPT run, reconstructed from its calls."""

    steps: Sequence[TraceStep]
    entries: Sequence[Mapping[str, str]]
    """The thoughts before each step."""
    calls: Sequence[AutoGPTCall]


def autogpt(logs: LogFolders, reader: Reader) -> AutoGPTRun:
    """Reconstruct AutoGPT's steps from its model calls: the commands, and the results quoted in the next question."""
    asked = [(stamp, call) for stamp, path in _stamped(reader.list(logs.agent, "*.log")) for call in read_calls(reader.text(path) or "")]
    found, steps, entries = list[AutoGPTCall](), list[TraceStep](), list[Mapping[str, str]]()
    for position, (_, call) in enumerate(asked):
        commands = '"command"' in call.reply or _QUESTION in call.prompt
        read = _command(call.reply) if commands else None
        found.append(AutoGPTCall(call, len(steps), commands, NOT_JSON if commands and read is None else None))
        if read is None:
            continue
        action, arguments, thoughts = read
        later = asked[position + 1 :]
        observation = next((answer for _, other in later if (answer := _returned(other.prompt, action)) is not None), "")
        steps.append(TraceStep(action, arguments, observation, float(later[0][0] if later else asked[position][0])))
        entries.append(thoughts)
    if steps:
        reader.say(logs.agent, "the steps are read from the agent's own calls, their times from the names of its files: to the second")
    return AutoGPTRun(steps, entries, found)


def _stamped(paths: Sequence[Path]) -> list[tuple[int, Path]]:
    found = []
    for path in paths:
        match = _STAMPED.fullmatch(path.name)
        try:
            stamp = calendar.timegm(time.strptime(match[1], "%Y%m%d-%H%M%S")) if match else None
        except ValueError:
            stamp = None
        if stamp is not None:
            found.append((stamp, path))
    return sorted(found)


def _command(reply: str) -> tuple[str, Mapping[str, JsonValue], Mapping[str, str]] | None:
    text = reply[reply.find("{") : reply.rfind("}") + 1]
    try:
        read = parse_json(text)
    except ValueError:
        try:
            read = storable(ast.literal_eval(text))  # parses literals only, and executes nothing
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    command = read.get("command") if isinstance(read, dict) else None
    if not isinstance(read, dict) or not isinstance(command, dict) or not isinstance(command.get("name"), str) or not command["name"]:
        return None
    arguments, thoughts = command.get("args"), read.get("thoughts")
    named = (
        {"Thought" if name == "text" else name.capitalize(): text_of(text) for name, text in thoughts.items()}
        if isinstance(thoughts, dict)
        else {}
    )
    return command["name"], arguments if isinstance(arguments, dict) else {}, named


def _returned(prompt: str, action: str) -> str | None:
    start = prompt.rfind(f"Command {action} returned: ")
    if start < 0:
        return None
    answer = prompt[start:].partition(_QUESTION)[0]
    return answer.partition("returned: ")[2].strip()


def langchain(logs: LogFolders, steps: Sequence[TraceStep], reader: Reader) -> list[Mapping[str, str]]:
    """Return the thoughts of LangChain's agent before each step, from its output; empty for a step that is not found there."""
    text = _ANSI.sub("", reader.text(logs.agent / "step_log.log") or reader.text(logs.agent / "main_log") or "")
    start = text.find("Entering new")
    at, found = max(0, text.find("\n", start) if start >= 0 else 0), list[Mapping[str, str]]()
    for step in steps:
        match = next((match for match in _ACTION.finditer(text, at) if match["action"].strip() == step.action), None)
        if match is None:
            found.append({})
            continue
        said = text[at : match.start()]
        thought = said.rpartition("Thought:")[2].strip()
        found.append({"Thought": thought} if thought else {})
        at = match.end()
    return found


def finished(logs: LogFolders, reader: Reader) -> str | None:
    """Return the final answer that LangChain's agent gave outside its actions; None if it gave none."""
    text = _ANSI.sub("", reader.text(logs.agent / "main_log") or "")
    _, found, rest = text.rpartition("\nFinal Answer:")
    return rest.partition("> Finished chain.")[0].strip() if found else None
