"""Assign thoughts and model calls to the steps of a log, and report what is missing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from pydantic import JsonValue

from mlagentbench.original import other_agents
from mlagentbench.original.calls import LoggedCall, read_calls
from mlagentbench.original.files import LogFolders, Reader
from mlagentbench.original.own_agents import ENTRIES, RESEARCH, SUMMARISED, Turn, TurnLogs, by_position, is_bookkeeping
from mlagentbench.original.run_info import LoggedRun
from mlagentbench.original.trace import APPEND, RETRIEVE, SHUT_DOWN, Trace, TraceStep
from mlagentbench.records import ModelCall, Role

ROLES: Mapping[str, Role] = {"Edit Script (AI)": "editor", "Edit Script Segment (AI)": "editor"}
"""The roles of the models that high-level actions ask; the other actions ask the fast model."""
OTHER_AGENTS = ("LangChainAgent", "AutoGPTAgent", "Agent")
"""The agents whose calls are logged in another way, or that make none."""
ASKING = frozenset({*ROLES, "Understand File", "Reflection", RETRIEVE})
"""The actions that ask a model."""
NO_REASON = "nothing: the same was asked again"
BROKEN_OFF = "nothing: its log breaks off here"


class StepParts:
    """What is known of each step. Lists and keys go by the step's position from 0.

    A position is the environment's index, unless a damaged trace lacks steps.
    """

    def __init__(self, steps: Sequence[TraceStep]) -> None:
        self.steps = steps
        self.entries: list[Mapping[str, str]] = [{} for _ in steps]
        self.calls: dict[int, list[ModelCall]] = defaultdict(list)
        self.details: list[dict[str, JsonValue]] = [{} for _ in steps]
        self.malformed = [0] * len(steps)
        self.own = [False] * len(steps)
        """Whether each step is the agent program's own bookkeeping."""
        self.refused = 0
        """How many of the last replies, in a row, contained no action."""


def moved(turns: Sequence[Turn], known: int) -> list[Turn]:
    """Renumber turns from step indices to positions: after the trace's last step, positions have no gaps, even if steps are lost."""
    at, found = known, []
    for turn in turns:
        found.append(turn if turn.before < known else turn._replace(before=at))
        at += turn.acted and turn.before >= known
    return found


def fill(
    parts: StepParts, turns: Sequence[Turn], indices: Sequence[int], logs: LogFolders, trace: Trace, found: LoggedRun, reader: Reader
) -> None:
    """Assign thoughts and calls to steps, in chronological order.

    Args:
        parts: the steps, to be filled.
        turns: the agent's turns, by the positions of their steps.
        indices: the steps' indices in the environment, which the names of its logs contain.
        logs: the run's folders.
        trace: the steps as they were read.
        found: what is known of the whole run.
        reader: reads files and collects problems.
    """
    walk = _Walk(parts, turns, TurnLogs(logs, _entries(found, turns), reader), found)
    thoughts = other_agents.langchain(logs, parts.steps, reader) if found.agent == "LangChainAgent" else None
    for position, step in enumerate(parts.steps):
        walk.unread(position)
        parts.own[position] = is_bookkeeping(step, position in walk.acted)
        if thoughts is not None:
            parts.entries[position] = thoughts[position]
        elif not parts.own[position] and found.agent not in OTHER_AGENTS:
            walk.turn(position, step)
        asked = _tool(logs, indices[position], step, reader)
        if not asked and step.action in ASKING and step.status == "ok":
            walk.lost.tools.append(indices[position])
        parts.calls[position] += [call.as_call(ROLES.get(step.action, "fast"), step.action, found.models) for call in asked]
        walk.after(position, step)
    walk.rest(trace, reader)
    _stray_tools(logs, indices, trace, reader)
    walk.lost.say(logs, reader)


class _Walk:
    """Goes through an agent's turns step by step, and takes each turn's calls from its logs."""

    def __init__(self, parts: StepParts, turns: Sequence[Turn], replies: TurnLogs, found: LoggedRun) -> None:
        self._parts = parts
        self.acted, self._unread = by_position(turns)
        self._replies = replies
        self._found = found
        self.lost = _Lost()
        self._number = 0
        """The number of the next turn in the names of its logs, without counting turns before it that led to no step."""
        self._in_a_row = 0
        """The number of those uncounted turns."""
        self._last = 0

    def unread(self, position: int) -> None:
        """Assign the turns before a step whose arguments could not be parsed."""
        for turn in self._unread.get(position, []):
            _take(self._parts, position, self._replies, turn, turn.log, "", self._found)
            self._last, self._in_a_row = turn.log, self._in_a_row + 1

    def turn(self, position: int, step: TraceStep) -> None:
        """Assign the turn that led to a step."""
        known, parts = self.acted.get(position), self._parts
        self._last = known.log if known else self._number + self._in_a_row
        before = len(parts.calls[position])
        parts.entries[position] = _take(parts, position, self._replies, known, self._last, step.action, self._found)
        if len(parts.calls[position]) == before:
            self.lost.replies.append(self._last)
        if known and known.observation != step.observation:
            parts.details[position]["observation_as_remembered"] = known.observation
        self._number, self._in_a_row = self._number + 1, 0

    def after(self, position: int, step: TraceStep) -> None:
        """Assign the calls that summarised a step, for an entry of the research log or because its observation was long."""
        own, models = self._parts.own[position], self._found.models
        if step.action == APPEND and own:
            content = str(step.arguments.get("content", ""))
            made = self._replies.summary(self._last, content, int(self._found.limit("max_retries", 5)))
            self._parts.calls[position] += [call.as_call("fast", APPEND, models) for call in made]
            if not made and "[Reasoning]:" in content:
                self.lost.summaries.append(self._last)
        elif not own and len(step.observation) > SUMMARISED:
            self._parts.calls[position + 1] += [call.as_call("fast", "summary", models) for call in self._replies.shortening(self._last)]

    def rest(self, trace: Trace, reader: Reader) -> None:
        """Assign the calls after the last step, and report those that belong to no step."""
        end, parts, models = len(self._parts.steps), self._parts, self._found.models
        began = self._number + self._in_a_row
        self.unread(end)
        for number in dict.fromkeys((began, self._number + self._in_a_row)):
            calls = self._replies.left(number)
            for call, following in zip_longest(calls, calls[1:]):
                empty = call.whole and self._replies.holds_no_action(call)
                parts.refused = parts.refused + 1 if empty else 0
                parts.calls[end].append(call.as_call("agent", "agent", models, _rejection(call, following) if empty else None))
        for path, calls in self._replies.unclaimed():
            if trace.whole:
                reader.say(path, f"holds {len(calls)} calls that led to no step: they are of another run, and were left out")
                continue
            reader.say(path, f"holds {len(calls)} calls of steps that are lost; they stand after the last step")
            role: Role = "fast" if "summar" in path.name else "agent"
            parts.calls[end] += [call.as_call(role, "agent" if role == "agent" else "summary", models) for call in calls]


class _Lost:
    """The logs of calls that are missing."""

    def __init__(self) -> None:
        self.replies: list[int] = []
        """The numbers of turns without replies; `summaries` has those without summaries."""
        self.summaries: list[int] = []
        self.tools: list[int] = []
        """The indices of steps whose action's calls are missing."""

    def say(self, logs: LogFolders, reader: Reader) -> None:
        """Report each kind of missing log in a line."""
        if self.replies and not reader.is_folder(logs.agent):
            reader.say(logs.agent, "is missing: what the agent thought, and what its model was asked, is not known")
        elif self.replies:
            reader.say(logs.agent, f"the calls of {numbers_in_words('turn', self.replies)} are missing")
        if self.summaries and reader.is_folder(logs.agent):
            reader.say(logs.agent, f"the calls for the research log of {numbers_in_words('turn', self.summaries)} are missing")
        if self.tools:
            reader.say(logs.env / "tool_logs", f"the calls of {numbers_in_words('step', self.tools)} are missing")


def numbers_in_words(noun: str, numbers: Sequence[int]) -> str:
    """Return a noun and its numbers as text: `turns 1, 3-5`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][-1] == number - 1:
            found[-1].append(number)
        else:
            found.append([number])
    numbering = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)
    return f"{noun}{'s' if len(set(numbers)) > 1 else ''} {numbering}"


def _entries(found: LoggedRun, turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the labels of an agent's replies: those of the original's class, or of the command line, or of the agent's stored turns."""
    given = found.arguments.get("valid_format_entires")
    named = tuple(map(str, given)) if isinstance(given, list) else tuple(turns[0].entries) if turns else RESEARCH
    return ENTRIES.get(found.agent, named if {"Action", "Action Input"} <= set(named) else RESEARCH)


def _take(
    parts: StepParts, position: int, replies: TurnLogs, turn: Turn | None, number: int, action: str, found: LoggedRun
) -> dict[str, str]:
    """Assign a turn's calls to the step after them, and return the turn's thoughts."""
    refused, call, read = replies.replies(turn, number, action)
    if call is None and turn is not None:
        # If the agent's file for a turn is lost, the number was taken from the turn's place in the history, which may be a little too low.
        for other in range(number + 1, number + 6):
            refused, call, read = replies.replies(turn, other, action)
            if call is not None:
                break
    calls = [*refused, *([call] if call else [])]
    unread = turn is not None and not turn.acted
    for each, following in zip_longest(calls, calls[1:]):
        rejected = _rejection(each, following) if each is not call else turn.observation if unread and turn else None
        parts.calls[position].append(each.as_call("agent", "agent", found.models, rejected))
    if position < len(parts.steps):
        parts.malformed[position] += len(refused) + unread
    entries = dict(turn.entries) if turn is not None else read
    return {name: text for name, text in entries.items() if name not in ("Action", "Action Input")}


def _rejection(call: LoggedCall, following: LoggedCall | None) -> str:
    """Return the answer that a reply without an action got: the text that the next prompt adds."""
    if not call.whole:
        return BROKEN_OFF
    if following is None:
        return NO_REASON
    shared = next((n for n, (a, b) in enumerate(zip(call.prompt, following.prompt, strict=False)) if a != b), len(call.prompt))
    ending = call.prompt[shared:]
    added = following.prompt[shared:]
    return (added.removesuffix(ending) if ending else added).strip() or NO_REASON


def _tool(logs: LogFolders, index: int, step: TraceStep, reader: Reader) -> list[LoggedCall]:
    """Return the calls of a step's action. A folder that two runs used has more of them, of which the last are this run's."""
    folder = logs.env / "tool_logs"
    paths = [folder / f"step_{index}_tool_log.log"]
    parts = [path for path in reader.list(folder, f"step_{index}_tool_log.log_*") if path.name.rpartition("_")[2].isdecimal()]
    found = []
    for path in [*sorted(parts, key=lambda path: int(path.name.rpartition("_")[2])), *paths]:
        calls = read_calls(reader.text(path) or "")
        if len(calls) > 1:
            reader.say(path, f"holds {len(calls)} calls where one was made: the last was kept, the others are of another run")
        if calls and (step.observation.startswith((SHUT_DOWN, "Invalid action:")) or step.action == APPEND):
            reader.say(path, "holds calls of a step that made none: they are of another run, and were left out")
            continue
        if calls and not calls[-1].whole:
            reader.say(path, "breaks off")
        found += calls[-1:]
    return found


def _stray_tools(logs: LogFolders, indices: Sequence[int], trace: Trace, reader: Reader) -> None:
    known = set(indices)
    for path in reader.list(logs.env / "tool_logs", "step_*_tool_log.log*"):
        match = re.match(r"step_([0-9]+)_", path.name)
        if match and int(match[1]) not in known:
            what = "is of a step that the trace has not" if trace.whole else "is of a step that is lost"
            reader.say(path, f"{what}, and was left out")


def from_autogpt(autogpt_run: other_agents.AutoGPTRun, found: LoggedRun) -> StepParts:
    """Return the steps of an AutoGPT run, with their thoughts and calls."""
    parts = StepParts(autogpt_run.steps)
    parts.entries = list(autogpt_run.entries)
    for each in autogpt_run.calls:
        role: Role = "agent" if each.commands else "fast"
        purpose = "agent" if each.commands else "memory"
        parts.calls[each.step].append(each.call.as_call(role, purpose, found.models, each.rejected))
        if each.rejected and each.step < len(parts.steps):
            parts.malformed[each.step] += 1
    return parts
