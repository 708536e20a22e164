"""Parse the turns of the original's own agents: their thoughts, and which model calls belong to which step.

Its logs number turns, not steps: with the research log, a turn has three steps. A turn whose arguments could not be parsed has none; it is
imported as a malformed reply.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from pydantic import JsonValue

from mlagentbench.actions import ACTIONS
from mlagentbench.original.calls import LoggedCall, read_calls
from mlagentbench.original.files import LogFolders, Reader, parse_json, text_of
from mlagentbench.original.trace import APPEND, RETRIEVE, Trace, TraceStep, arguments_of

UNREAD = "ActionInputParsingError"
ENTRIES: Mapping[str, tuple[str, ...]] = {
    "SimpleActionAgent": ("Action", "Action Input"),
    "ReasoningActionAgent": ("Thought", "Action", "Action Input"),
}
RESEARCH = ("Reflection", "Research Plan and Status", "Fact Check", "Thought", "Action", "Action Input")
SUMMARISED = 5000
"""Characters of an observation beyond which the agent remembered a summary of it."""
_PLAN = "Research Plan and Status"
"""The entry that the original edits before storing it, so that it cannot be compared with the reply."""


class Turn(NamedTuple):
    """A turn in the agent's stored history."""

    before: int
    """The number of steps in the trace before its action."""
    log: int
    """The turn's number in the names of its logs."""
    entries: Mapping[str, str]
    observation: str

    @property
    def acted(self) -> bool:
        """Whether it led to a step."""
        return not self.observation.startswith(UNREAD)


class AgentLog(NamedTuple):
    """The contents of the agent's own files."""

    state: Mapping[str, JsonValue]
    """The state in its last readable file; empty if there is none."""
    turns: Sequence[Turn]


def read_agent(logs: LogFolders, reader: Reader) -> AgentLog:
    """Read all files `agent_<step>_<turn>.json`: each contains the turns before it, and later ones may be incomplete."""
    state: Mapping[str, JsonValue] = {}
    found: dict[tuple[int, bool, int], Turn] = {}
    for last, number, path in _agent_files(reader.list(logs.agent, "agent_*.json")):
        read = reader.json(path)
        history = read.get("history_steps") if isinstance(read, dict) else None
        if not isinstance(read, dict) or not isinstance(history, list):
            if read is not None:
                reader.say(path, "holds no state of an agent")
            continue
        state = read
        for position, value in enumerate(history):
            turn = _turn(value, number if position == len(history) - 1 else position)
            if turn is None or turn.before > last + 1:
                continue
            key = (turn.before, turn.acted, 0 if turn.acted else turn.log)
            found.setdefault(key, turn)
    return AgentLog(state, [found[key] for key in sorted(found)])


def _agent_files(paths: Sequence[Path]) -> list[tuple[int, int, Path]]:
    named = [(re.fullmatch(r"agent_(-?[0-9]{1,9})_([0-9]{1,9})\.json", path.name), path) for path in paths]
    return sorted((int(match[1]), int(match[2]), path) for match, path in named if match)


def _turn(value: object, number: int) -> Turn | None:
    if not isinstance(value, dict):
        return None
    action, index = value.get("action"), value.get("step_idx")
    if not isinstance(action, dict) or not isinstance(index, int) or not isinstance(action.get("Action"), str):
        return None
    observation = text_of(value.get("observation", ""))
    if index < 0 or (index == 0 and not observation.startswith(UNREAD)):
        return None
    turn = Turn(index, number, {str(name): text_of(text) for name, text in action.items()}, observation)
    return turn._replace(before=index - 1) if turn.acted else turn


def of_this_run(turns: Sequence[Turn], trace: Trace, logs: LogFolders, reader: Reader) -> list[Turn]:
    """Return the turns that agree with the trace. A folder that two runs used also has turns of the earlier one."""
    kept = []
    for turn in turns:
        if turn.acted and turn.before < len(trace.steps):
            step = trace.steps[turn.before]
            same = step.observation == turn.observation or len(step.observation) > SUMMARISED
            if turn.entries["Action"].strip() != step.action or not same:
                reader.say(logs.agent, f"turn {turn.log} is not the trace's step {turn.before}: it is of another run, and was left out")
                continue
        elif turn.before >= len(trace.steps) + (not turn.acted) and trace.whole:
            reader.say(logs.agent, f"turn {turn.log} is beyond the trace's last step: it is of another run, and was left out")
            continue
        kept.append(turn)
    return kept


def remembered(turns: Sequence[Turn], trace: Trace) -> list[TraceStep]:
    """Return the steps that an incomplete trace lacks but the agent's history has. Bookkeeping steps between them are lost."""
    lost = [turn for turn in turns if turn.acted and turn.before >= len(trace.steps)]
    return [TraceStep(action := turn.entries["Action"].strip(), _arguments(action, turn), turn.observation, None) for turn in lost]


def _arguments(action: str, turn: Turn) -> Mapping[str, JsonValue]:
    raw = turn.entries.get("Action Input", "")
    try:
        value = cast(JsonValue, parse_json(raw.strip().removeprefix("```json").removeprefix("```").removesuffix("```")))
    except ValueError:
        return {"Action Input": raw}
    return arguments_of(action, value)


def reads(reply: str, entries: Sequence[str]) -> dict[str, str] | None:
    """Return a reply's entries as the original parses them; None if an entry is missing, or the action does not exist.

    The original's regular expression is greedy: of each label but the first, the last occurrence before the following labels counts.
    """
    positions, end = list[int](), len(reply)
    for entry in reversed(entries[1:]):
        end = reply.rfind(f"{entry}:", 0, end)
        positions.insert(0, end)
    first = reply.find(f"{entries[0]}:", 0, max(end, 0))
    if first < 0 or min(positions, default=0) < 0:
        return None
    starts = [position + len(entry) + 1 for position, entry in zip((first, *positions), entries, strict=True)]
    read = {entry: reply[start:stop] for entry, start, stop in zip(entries, starts, (*positions, len(reply)), strict=True)}
    return read if read["Action"].strip() in ACTIONS else None


class TurnLogs:
    """The model calls of an agent's turns. Each call is returned once."""

    def __init__(self, logs: LogFolders, entries: Sequence[str], reader: Reader) -> None:
        self._entries = entries
        self._reader = reader
        self._folder = logs.agent
        self._calls: dict[str, list[LoggedCall]] = {}
        for path in reader.list(logs.agent, "step_*_log.log*"):
            if not re.fullmatch(r"step_\d+_((summary|summarize_observation)_)?log\.log(_\d+)?", path.name):
                continue
            calls = read_calls(reader.text(path) or "")
            for number, call in enumerate(calls, 1):
                if not call.whole:
                    reader.say(path, f"breaks off in its call {number}")
            self._calls[path.name] = calls

    def replies(self, turn: Turn | None, number: int, action: str) -> tuple[list[LoggedCall], LoggedCall | None, dict[str, str]]:
        """Take the calls of a turn: those whose replies contain no action, the one that contains the turn's, and its entries.

        Args:
            turn: the turn in the agent's history; None if it is not there.
            number: the number of the turn's log.
            action: the name of the turn's action.
        """
        name = f"step_{number}_log.log"
        calls = self._calls.get(name, [])
        for position, call in enumerate(calls):
            read = reads(call.reply, self._entries)
            if self._is_of(turn, action, call, read):
                before, self._calls[name] = calls[:position], calls[position + 1 :]
                refused = [each for each in before if reads(each.reply, self._entries) is None]
                if len(refused) < len(before):
                    count = len(before) - len(refused)
                    self._reader.say(self._folder / name, f"{count} of its replies are of another run, and were left out")
                return refused, call, read or {}
        return [], None, {}

    @staticmethod
    def _is_of(turn: Turn | None, action: str, call: LoggedCall, read: Mapping[str, str] | None) -> bool:
        if turn is not None:
            return all(text in call.reply for entry, text in turn.entries.items() if entry != _PLAN)
        return read is not None and read["Action"].strip() == action

    def summary(self, number: int, content: str, tries: int) -> list[LoggedCall]:
        """Take the calls that made an entry of the research log: failed tries, and the one whose reply became the entry.

        Args:
            number: the number of the turn's log.
            content: the entry.
            tries: the most tries that the original makes.
        """
        name = f"step_{number}_summary_log.log"
        calls, taken = self._calls.get(name, []), list[LoggedCall]()
        failed = "Too long to summarize." in content
        while calls and (not failed or (len(taken) < tries and "[Reasoning]:" not in calls[0].reply)):
            call, calls = calls[0], calls[1:]
            _, found, rest = call.reply.partition("[Reasoning]:")
            written = found and rest.split("[Reasoning]:")[0] in content
            if found and not written:
                self._reader.say(self._folder / name, "holds a summary that no step has, which was left out")
                continue
            taken.append(call)
            if written:
                break
        self._calls[name] = calls
        return taken

    def shortening(self, number: int) -> list[LoggedCall]:
        """Take the calls that summarised a turn's long observation: first its parts, then the whole."""
        names = [name for name in self._calls if name.startswith(f"step_{number}_summarize_observation_log.log")]
        found = [call for name in sorted(names, key=_part) for call in self._calls[name]]
        for name in names:
            self._calls[name] = []
        return found

    def holds_no_action(self, call: LoggedCall) -> bool:
        """Return whether a reply contains no action that the original could parse."""
        return reads(call.reply, self._entries) is None

    def left(self, number: int) -> list[LoggedCall]:
        """Take the remaining calls of a turn that led to no step, such as those of the turn in which the run ended."""
        name = f"step_{number}_log.log"
        calls, self._calls[name] = self._calls.get(name, []), []
        return calls

    def unclaimed(self) -> Iterator[tuple[Path, list[LoggedCall]]]:
        """Yield the logs with calls that were not taken, since they belong to no step."""
        for name, calls in self._calls.items():
            if calls:
                yield self._folder / name, calls


def _part(name: str) -> float:
    """Return the sort key of a log of a long text's parts; the log of the call that joins them comes last."""
    part = name.rpartition("log_")[2]
    return float(part) if part.isdecimal() else float("inf")


def is_bookkeeping(step: TraceStep, chosen: bool) -> bool:
    """Return whether a step is bookkeeping of the research log, which the agent's program did and its model did not choose."""
    return not chosen and step.action in (APPEND, RETRIEVE)


def by_position(turns: Sequence[Turn]) -> tuple[dict[int, Turn], dict[int, list[Turn]]]:
    """Group turns: those that led to a step by its position, and those that led to none by the position of the step after them."""
    acted = {turn.before: turn for turn in turns if turn.acted}
    unread: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        if not turn.acted:
            unread[turn.before].append(turn)
    return acted, unread
