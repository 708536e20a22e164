"""Parse the original's `trace.json`: the steps of its environment, and what their actions did to files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.original.files import LogFolders, Reader, parse_json, storable, text_of
from mlagentbench.records import Inner, StepStatus

APPEND, RETRIEVE = "Append Summary to Research Log", "Retrieval from Research Log"
FINAL = "Final Answer"
SHUT_DOWN = "The environment has shut down because"
_REFUSED = ("EnvError:", "LLMError:", "Invalid action:", "The action input for ", "ActionInputParsingError:", SHUT_DOWN)
_FAILED = re.compile(r"^(?:Traceback \(most recent call last\):|(?:Syntax|Indentation|Tab)Error: )", re.MULTILINE)
"""What Python prints of a script that failed; of one that it cannot parse, it prints no traceback."""
LATEST = 1e11
"""Seconds from the epoch; later times are taken for errors."""
_DID: Mapping[str, tuple[tuple[str, str], ...]] = {
    "List Files": (("list", "dir_path"),),
    "Read File": (("read", "file_name"),),
    "Write File": (("write", "file_name"),),
    "Append File": (("write", "file_name"),),
    "Copy File": (("read", "source"), ("write", "destination")),
    "Undo Edit Script": (("write", "script_name"),),
    "Execute Script": (("run", "script_name"),),
    "Python REPL": (("run", "command"),),
}
"""What low-level actions do, and the argument that names the object."""


class TraceStep(NamedTuple):
    """A step of the trace."""

    action: str
    arguments: Mapping[str, JsonValue]
    observation: str
    timestamp: float | None
    """The end of its action in seconds from the epoch; None if the log does not say."""

    @property
    def status(self) -> StepStatus:
        """`error` if the action was refused or its script failed, which the log says only by what Python printed."""
        failed = self.action == "Execute Script" and _FAILED.search(self.observation) is not None
        return "error" if failed or self.observation.startswith(_REFUSED) else "ok"


class Trace(NamedTuple):
    """The contents of a `trace.json`."""

    steps: Sequence[TraceStep]
    inside: Sequence[TraceStep]
    """The low-level actions, including those that high-level ones performed."""
    description: str
    whole: bool
    """False if the file is missing or incomplete, so that there may have been more steps."""


def read_trace(logs: LogFolders, reader: Reader) -> Trace:
    """Read the trace. Of an incomplete file, read the complete steps."""
    path = logs.env / "trace.json"
    text = reader.text(path, wanted=True)
    if text is None:
        return Trace((), (), "", whole=False)
    try:
        found = parse_json(text)
    except ValueError:
        steps, inside = _salvaged(text, "steps"), _salvaged(text, "low_level_steps")
        reader.say(path, f"is torn: {len(steps)} of its steps can be read" if text.strip() else "is empty")
        return Trace(_steps(steps, logs, reader), _steps(inside, logs, reader), "", whole=False)
    if not isinstance(found, dict):
        reader.say(path, "holds no steps")
        return Trace((), (), "", whole=False)
    lists = [found[name] if isinstance(found.get(name), list) else [] for name in ("steps", "low_level_steps")]
    if not isinstance(found.get("steps"), list):
        reader.say(path, "holds no steps")
    text = found.get("task_description")
    description = text if isinstance(text, str) else ""
    return Trace(_steps(lists[0], logs, reader), _steps(lists[1], logs, reader), description, whole=isinstance(found.get("steps"), list))


def _salvaged(text: str, name: str) -> list[object]:
    """Return the complete elements of a list in an incomplete JSON file."""
    start = re.search(rf'^\s*"{name}": \[', text, re.MULTILINE)
    if start is None:
        return []
    decoder, at, found = json.JSONDecoder(), start.end(), list[object]()
    while (following := re.compile(r"\s*,?\s*(?=\{)").match(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, following.end())
        except (ValueError, RecursionError):
            break
        found.append(storable(value))
    return found


def _steps(values: Sequence[object], logs: LogFolders, reader: Reader) -> tuple[TraceStep, ...]:
    found = []
    for number, value in enumerate(values):
        step = _step(value)
        if step is None:
            reader.say(logs.env / "trace.json", f"step {number} is no step, and was left out with those after it")
            break
        found.append(step)
    return tuple(found)


def _step(value: object) -> TraceStep | None:
    action = value.get("action") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(action, dict) or not isinstance(action.get("name"), str):
        return None
    time = value.get("timestamp")
    timestamp = float(time) if isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < LATEST else None
    name = action["name"]
    return TraceStep(name, arguments_of(name, action.get("args")), text_of(value.get("observation", "")), timestamp)


def arguments_of(action: str, value: JsonValue) -> Mapping[str, JsonValue]:
    """Return an action's arguments by name. Text that the original's agents passed on unparsed becomes a single argument."""
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    return {"final_answer" if action == FINAL else "Action Input": value}


def inside(trace: Trace, index: int) -> tuple[Inner, ...]:
    """Return the low-level actions that a step's action performed; empty if their times are not known."""
    ended, began = trace.steps[index].timestamp, trace.steps[index - 1].timestamp if index else -math.inf
    if ended is None or began is None:
        return ()
    low = [step for step in trace.inside if step.timestamp is not None and began < step.timestamp <= ended]
    return tuple(
        Inner(did=did, what=text_of(step.arguments[argument]))  # type: ignore[arg-type]
        for step in low
        for did, argument in _DID.get(step.action, ())
        if argument in step.arguments
    )
