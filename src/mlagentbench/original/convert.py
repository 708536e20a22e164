"""A log of the original as a run: its facts, steps, calls and workspaces together."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.original import facts as facts_of
from mlagentbench.original import guests
from mlagentbench.original.calls import LoggedCall, read_calls
from mlagentbench.original.facts import Facts, is_known, keeps_log, read_facts
from mlagentbench.original.files import Logs, Reader, digest
from mlagentbench.original.trace import APPEND, FINAL, SHUT_DOWN, Trace, TraceStep, inside, read_trace
from mlagentbench.original.turns import (
    ENTRIES,
    RESEARCH,
    SUMMARISED,
    Turn,
    TurnLogs,
    by_position,
    is_bookkeeping,
    of_this_run,
    read_agent,
    remembered,
)
from mlagentbench.records import Action, Imported, ModelCall, Role, RunInfo, Step, Usage
from mlagentbench.run.score import Ending
from mlagentbench.tasks.catalogue import BUILT_IN, load_task
from mlagentbench.tasks.original import our_name
from mlagentbench.tasks.spec import UNGRADED

ROLES: Mapping[str, Role] = {"Edit Script (AI)": "editor", "Edit Script Segment (AI)": "editor"}
"""Whom high-level actions ask; the others ask the fast model."""
TOLD_NOTHING = "nothing: the same was asked again"
BROKEN_OFF = "nothing: its log breaks off here"


class Converted(NamedTuple):
    """A run, ready to be written."""

    info: RunInfo
    steps: Sequence[Step]
    calls: Mapping[int, Sequence[ModelCall]]
    """By the number of the step they were made for; one past the last for those that led to none."""
    ending: Ending
    final_answer: str | None
    seconds: float
    workspaces: Mapping[int, Path]
    """The folders of the workspace by the number of the step they follow; 0 where there are no steps."""

    @property
    def usage(self) -> dict[Role, Usage]:
        """What models used, by role."""
        found: dict[Role, list[Usage]] = defaultdict(list)
        for calls in self.calls.values():
            for call in calls:
                found[call.role].append(call.usage)
        return {role: Usage.total(parts) for role, parts in found.items()}


class _Drafts:
    """What is gathered step by step, by position from 0: the environment's indices, but where a torn trace lacks some."""

    def __init__(self, steps: Sequence[TraceStep]) -> None:
        self.steps = steps
        self.entries: list[Mapping[str, str]] = [{} for _ in steps]
        self.calls: dict[int, list[ModelCall]] = defaultdict(list)
        self.details: list[dict[str, JsonValue]] = [{} for _ in steps]
        self.malformed = [0] * len(steps)
        self.own = [False] * len(steps)
        """Which are the agent's bookkeeping."""
        self.refused = 0
        """The last replies in a row that held no action."""


def convert(logs: Logs) -> Converted:
    """Read a log as a run. What cannot be read is named in `RunInfo.imported`, and the rest is kept."""
    reader = Reader(logs.root)
    trace = read_trace(logs, reader)
    agent = read_agent(logs, reader)
    found = read_facts(logs, trace, agent.state, reader)
    guest = guests.autogpt(logs, reader) if not trace.steps and found.agent in ("AutoGPTAgent", "") else None
    if guest and guest.steps:
        indices: list[int] = []
        drafts = _of_guest(guest, found)
        turns: list[Turn] = []
    else:
        turns = of_this_run(agent.turns, trace, logs, reader)
        lost = remembered(turns, trace)
        if lost:
            reader.say(logs.env / "trace.json", f"lacks steps; {len(lost)} are kept as the agent remembered them, without their times")
        indices = [*range(len(trace.steps)), *(turn.before for turn in turns if turn.acted and turn.before >= len(trace.steps))]
        drafts = _Drafts([*trace.steps, *lost])
        _fill(drafts, _moved(turns, len(trace.steps)), indices, logs, trace, found, reader)
    models = _named(found, drafts, logs)
    answer = _answer(drafts.steps)
    ending = facts_of.ending(found, trace._replace(steps=drafts.steps), len([turn for turn in turns if turn.acted]), drafts.refused)
    if ending.ended == "cancelled" and found.agent == "LangChainAgent" and (said := guests.finished(logs, reader)) is not None:
        ending, answer = Ending("final_answer"), said
    if ending.ended == "cancelled" and guest and guest.steps and found.seconds is not None:
        ending = Ending("final_answer" if guest.steps[-1].action == "task_complete" else "limit_steps")
    times = _times(drafts.steps, found.seconds, ending)
    workspaces = _workspaces(logs, indices, len(drafts.steps), reader)
    info = _info(logs, trace, found, models, times, reader)
    return Converted(
        info=info,
        steps=_steps(drafts, times, trace),
        calls={number + 1: calls for number, calls in drafts.calls.items()},
        ending=ending,
        final_answer=answer,
        seconds=found.seconds if found.seconds is not None else sum(seconds for _, seconds in times.steps),
        workspaces=workspaces,
    )


def _moved(turns: Sequence[Turn], known: int) -> list[Turn]:
    """Turns by the positions of their steps: beyond the trace's last, the steps stand close, whatever is lost between them."""
    at, found = known, []
    for turn in turns:
        found.append(turn if turn.before < known else turn._replace(before=at))
        at += turn.acted and turn.before >= known
    return found


def _fill(drafts: _Drafts, turns: Sequence[Turn], indices: Sequence[int], logs: Logs, trace: Trace, found: Facts, reader: Reader) -> None:
    """Put thoughts and calls to the steps of the original's own agents."""
    acted, unread = by_position(turns)
    own = found.agent in ("ResearchAgent", *ENTRIES)
    thoughts = guests.langchain(logs, drafts.steps, reader) if found.agent == "LangChainAgent" else [{} for _ in drafts.steps]
    replies = TurnLogs(logs, ENTRIES.get(found.agent, _entries(found)), reader)
    tries = int(found.limit("max_retries", 5))
    number, unread_in_a_row, last = 0, 0, 0
    for place, step in enumerate(drafts.steps):
        for turn in unread.get(place, []):
            _take(drafts, place, replies, turn, turn.log, "", found)
            last, unread_in_a_row = turn.log, unread_in_a_row + 1
        drafts.own[place] = is_bookkeeping(step, place in acted)
        if not drafts.own[place] and own:
            known = acted.get(place)
            last = known.log if known else number + unread_in_a_row
            drafts.entries[place] = _take(drafts, place, replies, known, last, step.action, found)
            if known and known.observation != step.observation:
                drafts.details[place]["observation_as_remembered"] = known.observation
            number, unread_in_a_row = number + 1, 0
        elif not drafts.own[place]:
            drafts.entries[place] = thoughts[place]
        drafts.calls[place] += [
            call.as_call(ROLES.get(step.action, "fast"), step.action, found.models) for call in _tool(logs, indices[place], step, reader)
        ]
        if step.action == APPEND and drafts.own[place]:
            made = replies.summary(last, str(step.arguments.get("content", "")), tries)
            drafts.calls[place] += [call.as_call("fast", APPEND, found.models) for call in made]
        elif not drafts.own[place] and len(step.observation) > SUMMARISED:
            drafts.calls[place + 1] += [call.as_call("fast", "summary", found.models) for call in replies.shortening(last)]
    _rest(
        drafts,
        replies,
        [number + unread_in_a_row, number + unread_in_a_row + len(unread.get(len(drafts.steps), []))],
        unread,
        trace,
        found,
        reader,
    )
    _stray_tools(logs, indices, trace, reader)


def _entries(found: Facts) -> tuple[str, ...]:
    named = found.arguments.get("valid_format_entires")
    return (
        tuple(str(name) for name in named) if isinstance(named, list) and {"Action", "Action Input"} <= set(map(str, named)) else RESEARCH
    )


def _take(drafts: _Drafts, place: int, replies: TurnLogs, turn: Turn | None, number: int, action: str, found: Facts) -> dict[str, str]:
    """A turn's calls, put before a step, and what was thought."""
    refused, call, read = replies.replies(turn, number, action)
    if call is None and turn is not None:
        # Where the file that tells a turn's number is lost, the number is a little higher than its place.
        for other in range(number + 1, number + 6):
            refused, call, read = replies.replies(turn, other, action)
            if call is not None:
                break
    calls = [*refused, *([call] if call else [])]
    unread = turn is not None and not turn.acted
    for each, following in zip_longest(calls, calls[1:]):
        rejected = _told(each, following) if each is not call else turn.observation if unread and turn else None
        drafts.calls[place].append(each.as_call("agent", "agent", found.models, rejected))
    if place < len(drafts.steps):
        drafts.malformed[place] += len(refused) + unread
    entries = dict(turn.entries) if turn is not None else read
    return {name: text for name, text in entries.items() if name not in ("Action", "Action Input")}


def _told(call: LoggedCall, following: LoggedCall | None) -> str:
    """What a model was told of a reply that held no action: how the next prompt differs."""
    if not call.whole:
        return BROKEN_OFF
    if following is None:
        return TOLD_NOTHING
    shared = next((n for n, (a, b) in enumerate(zip(call.prompt, following.prompt, strict=False)) if a != b), len(call.prompt))
    ending = call.prompt[shared:]
    added = following.prompt[shared:]
    return (added.removesuffix(ending) if ending else added).strip() or TOLD_NOTHING


def _tool(logs: Logs, index: int, step: TraceStep, reader: Reader) -> list[LoggedCall]:
    """The calls of a step's action. A folder that was used twice has more of them: the last are this run's."""
    folder = logs.env / "tool_logs"
    paths = [folder / f"step_{index}_tool_log.log"]
    parts = [path for path in folder.glob(f"step_{index}_tool_log.log_*") if path.name.rpartition("_")[2].isdecimal()]
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


def _stray_tools(logs: Logs, indices: Sequence[int], trace: Trace, reader: Reader) -> None:
    known = set(indices)
    for path in sorted((logs.env / "tool_logs").glob("step_*_tool_log.log*")):
        match = re.match(r"step_(\d+)_", path.name)
        if match and int(match[1]) not in known:
            what = "is of a step that the trace has not" if trace.whole else "is of a step that is lost"
            reader.say(path, f"{what}, and was left out")


def _rest(
    drafts: _Drafts, replies: TurnLogs, numbers: Sequence[int], unread: Mapping[int, list[Turn]], trace: Trace, found: Facts, reader: Reader
) -> None:
    """What was asked after the last step, and what belongs to none."""
    end = len(drafts.steps)
    for turn in unread.get(end, []):
        _take(drafts, end, replies, turn, turn.log, "", found)
    for number in dict.fromkeys(numbers):
        calls = replies.left(number)
        for call, following in zip_longest(calls, calls[1:]):
            empty = call.whole and replies.holds_no_action(call)
            drafts.refused = drafts.refused + 1 if empty else 0
            drafts.calls[end].append(call.as_call("agent", "agent", found.models, _told(call, following) if empty else None))
    for path, calls in replies.unclaimed():
        if trace.whole:
            reader.say(path, f"holds {len(calls)} calls that led to no step: they are of another run, and were left out")
            continue
        reader.say(path, f"holds {len(calls)} calls of steps that are lost; they stand after the last step")
        role: Role = "fast" if "summar" in path.name else "agent"
        drafts.calls[end] += [call.as_call(role, "agent" if role == "agent" else "summary", found.models) for call in calls]


def _of_guest(guest: guests.GuestRun, found: Facts) -> _Drafts:
    drafts = _Drafts(guest.steps)
    drafts.entries = list(guest.entries)
    for each in guest.calls:
        role: Role = "agent" if each.commands else "fast"
        purpose = "agent" if each.commands else "memory"
        drafts.calls[each.step].append(each.call.as_call(role, purpose, found.models, each.rejected))
        if each.rejected and each.step < len(drafts.steps):
            drafts.malformed[each.step] += 1
    return drafts


def _answer(steps: Sequence[TraceStep]) -> str | None:
    last = next((step for step in steps if step.action in (FINAL, "task_complete")), None)
    if last is None:
        return None
    values = last.arguments.get("final_answer", last.arguments.get("reason", ""))
    return values if isinstance(values, str) else json.dumps(values, ensure_ascii=False)


def _named(found: Facts, drafts: _Drafts, logs: Logs) -> dict[Role, str]:
    """The models' names: as the command line had them, or else as the calls' logs do, or the folder two above the run."""
    if found.models["agent"] != facts_of.UNKNOWN:
        return found.models
    called = next((call.model for calls in drafts.calls.values() for call in calls if call.role == "agent"), facts_of.UNKNOWN)
    if called == facts_of.UNKNOWN:
        parts = logs.root.resolve().parts
        if len(parts) > 3 and parts[-1].isdecimal() and is_known(our_name(parts[-2])):
            called = parts[-3]
    return {**found.models, "agent": called}


class _Times(NamedTuple):
    started: float
    steps: Sequence[tuple[float, float]]
    """When each step began, and how many seconds it took."""


def _times(steps: Sequence[TraceStep], seconds: float | None, ending: Ending) -> _Times:
    """When steps began and how long they took, from when they ended.

    The log has no beginning. Where nothing came after the last step, the run began its whole time before it; elsewhere the first step's own
    time is not known, and stands as 0. A run that was resumed has steps of before its beginning.
    """
    stamps = [step.timestamp for step in steps if step.timestamp is not None]
    if not stamps:
        return _Times(0.0, [(0.0, 0.0)] * len(steps))
    at_once = seconds is not None and ending.ended in ("final_answer", "limit_steps", "limit_time")
    began = max(stamps) - seconds if at_once and seconds is not None else stamps[0]
    found: list[tuple[float, float]] = []
    before: float | None = None
    for step in steps:
        if step.timestamp is None:
            found.append((before or began, 0.0))
            continue
        start = began if before is None or before < began <= step.timestamp else before
        start = min(start, step.timestamp)
        found.append((start, step.timestamp - start))
        before = step.timestamp
    return _Times(min(began, stamps[0]), found)


def _steps(drafts: _Drafts, times: _Times, trace: Trace) -> list[Step]:
    found = []
    for place, step in enumerate(drafts.steps):
        details: dict[str, JsonValue] = dict(drafts.details[place])
        if step.action == FINAL:
            details["final_answer"] = step.arguments.get("final_answer", "")
        found.append(
            Step(
                number=place + 1,
                entries=drafts.entries[place],
                action=Action(name=step.action, arguments=step.arguments),
                observation=step.observation,
                status=step.status,
                counted=not drafts.own[place],
                started=times.steps[place][0],
                seconds=times.steps[place][1],
                usage=Usage.total(call.usage for call in drafts.calls.get(place, [])),
                malformed=drafts.malformed[place],
                details=details,
                inside=inside(trace, place) if place < len(trace.steps) else (),
            )
        )
    return found


def _info(logs: Logs, trace: Trace, found: Facts, models: dict[Role, str], times: _Times, reader: Reader) -> RunInfo:
    task = load_task(BUILT_IN / found.task.replace("-", "_")) if is_known(found.task) else None
    spec = task.spec if task else None
    agent = facts_of.AGENTS.get(found.agent, found.agent or facts_of.UNKNOWN)
    options: dict[str, JsonValue] = {"research_log": True} if keeps_log(found, trace) else {}
    contents = digest(logs)
    first = next((step.timestamp for step in trace.steps if step.timestamp is not None), None)
    resumed = found.arguments.get("resume") and [step.timestamp for step in trace.steps]
    identity = hashlib.sha256(json.dumps([trace.description, first, resumed] if first else contents).encode()).hexdigest()[:8]
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(first or times.started)) if times.started else "undated"
    return RunInfo(
        run=f"{stamp}-{found.task}-original-{re.sub('[^A-Za-z0-9_]+', '-', agent)}-{identity}",
        task=found.task,
        category=spec.category if spec else "",
        published=spec.published if spec else None,
        variant="full",
        agent=agent,
        agent_options=options,
        models=models,
        description=found.description,
        metric=spec.metric.name if spec else UNGRADED,
        unit=spec.metric.unit if spec else "",
        direction=spec.metric.direction if spec else "maximize",
        isolation="none",
        limits={"steps": int(found.limit("max_steps", facts_of.LIMIT_STEPS)), "time": found.limit("max_time", facts_of.LIMIT_TIME)},
        started=times.started,
        versions={"MLAgentBench": "the original"},
        hardware={},
        task_folder=str(task.folder) if task else "",
        # What the paper's runs were compared with; but a time that is measured here only compares with one that is measured beside it.
        baseline="auto" if spec and spec.submission.mode == "code" else "paper",
        imported=Imported(folder=str(logs.root.resolve()), digest=contents, problems=tuple(reader.problems)),
    )


def _workspaces(logs: Logs, indices: Sequence[int], steps: int, reader: Reader) -> dict[int, Path]:
    """The folders of the workspace, by step number. The last step's is the run's end, whatever happened between."""
    found = {place + 1: path for place, index in enumerate(indices) if (path := logs.traces / f"step_{index}_files").is_dir()}
    final = logs.traces / "step_final_files"
    if final.is_dir() and not final.is_symlink():
        found[steps] = final
    else:
        reader.say(final, "is missing" + ("; the last step's files stand for it" if steps in found else ""))
    return {number: path for number, path in found.items() if not path.is_symlink()}
