"""Convert a log of the original into a run, with its steps, model calls and workspaces."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.errors import UsageError
from mlagentbench.grading.score import Ending
from mlagentbench.original import other_agents, run_info
from mlagentbench.original.assignment import StepParts, fill, from_autogpt, moved, numbers_in_words
from mlagentbench.original.files import LogFolders, Reader, digest, path_text
from mlagentbench.original.own_agents import Turn, of_this_run, read_agent, remembered
from mlagentbench.original.run_info import LONGEST_NAME, LoggedRun, is_known, keeps_log, read_run
from mlagentbench.original.trace import FINAL, Trace, TraceStep, inside, read_trace
from mlagentbench.records import Action, ModelCall, Role, Step, Usage
from mlagentbench.run_spec import NO_MODEL, Imported, ModelSpec, RunInfo, RunLimits, RunSpec
from mlagentbench.task.catalogue import BUILT_IN, load_task
from mlagentbench.task.formats.original import our_name
from mlagentbench.task.spec import UNGRADED

OTHER_INTERFACES: Mapping[str, str] = {
    "vectorization": "the original's vectorization is another task: its starter's Conv2DLayer keeps its weights in kernel_matrices, where "
    "the grader here sets weights, and takes images with their channels last, here first",
}
"""Tasks of the paper whose submissions are code that our graders cannot run, whatever the agent did, with the reason."""


class Converted(NamedTuple):
    """A converted run, ready to be written."""

    info: RunInfo
    steps: Sequence[Step]
    calls: Mapping[int, Sequence[ModelCall]]
    """The model calls by the number of their step; those that led to no step have the number after the last."""
    ending: Ending
    final_answer: str | None
    seconds: float
    workspaces: Mapping[int, Path]
    """The workspace's folder after each step, by the step's number; the final one has number 0 if there are no steps."""

    @property
    def usage(self) -> dict[Role, Usage]:
        """The usage of models, by role."""
        found: dict[Role, list[Usage]] = defaultdict(list)
        for calls in self.calls.values():
            for call in calls:
                found[call.role].append(call.usage)
        return {role: Usage.total(parts) for role, parts in found.items()}


def convert(logs: LogFolders) -> Converted:
    """Convert a log into a run. `RunInfo.imported` lists what could not be read; the rest is converted.

    Raises:
        UsageError: the run's name would be too long for a file name.
    """
    reader = Reader(logs.root)
    trace = read_trace(logs, reader)
    agent = read_agent(logs, reader)
    found = read_run(logs, trace, agent.state, reader)
    autogpt_run = other_agents.autogpt(logs, reader) if not trace.steps and found.agent in ("AutoGPTAgent", "") else None
    if autogpt_run and autogpt_run.steps:
        indices: list[int] = []
        parts = from_autogpt(autogpt_run, found)
        turns: list[Turn] = []
    else:
        turns = of_this_run(agent.turns, trace, logs, reader)
        lost = remembered(turns, trace)
        if lost:
            reader.say(logs.env / "trace.json", f"lacks steps; {len(lost)} are kept as the agent remembered them, without their times")
        indices = [*range(len(trace.steps)), *(turn.before for turn in turns if turn.acted and turn.before >= len(trace.steps))]
        parts = StepParts([*trace.steps, *lost])
        fill(parts, moved(turns, len(trace.steps)), indices, logs, trace, found, reader)
    models = _named(found, parts, logs)
    answer = _answer(parts.steps)
    ending = run_info.ending(found, trace._replace(steps=parts.steps), len([turn for turn in turns if turn.acted]), parts.refused)
    if ending.ended == "cancelled" and found.agent == "LangChainAgent" and (said := other_agents.finished(logs, reader)) is not None:
        ending, answer = Ending("final_answer"), said
    if ending.ended == "cancelled" and autogpt_run and autogpt_run.steps and found.seconds is not None:
        ending = Ending("final_answer" if autogpt_run.steps[-1].action == "task_complete" else "limit_steps")
    times = _times(parts.steps, found.seconds, ending)
    workspaces = _workspaces(logs, indices, len(parts.steps), reader)
    info = _info(logs, trace, found, models, times, _beginning(trace, found, autogpt_run), reader)
    return Converted(
        info=info,
        steps=_steps(parts, times, trace),
        calls={number + 1: calls for number, calls in parts.calls.items()},
        ending=ending,
        final_answer=answer,
        seconds=found.seconds if found.seconds is not None else sum(seconds for _, seconds in times.steps),
        workspaces=workspaces,
    )


def _answer(steps: Sequence[TraceStep]) -> str | None:
    last = next((step for step in steps if step.action in (FINAL, "task_complete")), None)
    if last is None:
        return None
    values = last.arguments.get("final_answer", last.arguments.get("reason", ""))
    return values if isinstance(values, str) else json.dumps(values, ensure_ascii=False)


def _named(found: LoggedRun, parts: StepParts, logs: LogFolders) -> dict[Role, str]:
    """Return the models' names from the command line, or else from the logs of calls, or from the folder two levels above the run."""
    if found.models["agent"] != run_info.UNKNOWN:
        return found.models
    called = next((call.model for calls in parts.calls.values() for call in calls if call.role == "agent"), run_info.UNKNOWN)
    if called == run_info.UNKNOWN:
        names = logs.root.resolve().parts
        if len(names) > 3 and names[-1].isdecimal() and is_known(our_name(names[-2])):
            called = names[-3]
    return {**found.models, "agent": called}


class _Times(NamedTuple):
    started: float
    steps: Sequence[tuple[float, float]]
    """The start of each step in seconds from the epoch, and its duration in seconds."""


def _times(steps: Sequence[TraceStep], seconds: float | None, ending: Ending) -> _Times:
    """Compute the start and duration of steps from the times at which they ended.

    The log does not say when the run started. If the run ended with its last step, it started its total time before that; otherwise the
    first step's duration is unknown, and given as 0. A resumed run has steps from before its start.
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


def _steps(parts: StepParts, times: _Times, trace: Trace) -> list[Step]:
    found = []
    for position, step in enumerate(parts.steps):
        details: dict[str, JsonValue] = dict(parts.details[position])
        if step.action == FINAL:
            details["final_answer"] = step.arguments.get("final_answer", "")
        found.append(
            Step(
                number=position + 1,
                entries=parts.entries[position],
                action=Action(name=step.action, arguments=step.arguments),
                observation=step.observation,
                status=step.status,
                counted=not parts.own[position],
                started=times.steps[position][0],
                seconds=times.steps[position][1],
                usage=Usage.total(call.usage for call in parts.calls.get(position, [])),
                malformed=parts.malformed[position],
                details=details,
                inside=inside(trace, position) if position < len(trace.steps) else (),
            )
        )
    return found


def _info(
    logs: LogFolders, trace: Trace, found: LoggedRun, models: dict[Role, str], times: _Times, beginning: str, reader: Reader
) -> RunInfo:
    task = load_task(BUILT_IN / found.task.replace("-", "_")) if is_known(found.task) else None
    spec = task.spec if task else None
    agent = run_info.AGENTS.get(found.agent, found.agent or run_info.UNKNOWN)
    options: dict[str, JsonValue] = {"research_log": True} if keeps_log(found, trace, logs, reader) else {}
    contents = digest(logs)
    first = next((step.timestamp for step in trace.steps if step.timestamp is not None), None)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(first or times.started)) if times.started else "undated"
    name = f"{stamp}-{found.task}-original-{re.sub('[^A-Za-z0-9_]+', '-', agent)}-{_sha256(beginning or contents)[:8]}"
    if len(name) > LONGEST_NAME:
        raise UsageError(f"a run's name would have {len(name):,} characters: the task is named {found.task[:40]}…, the agent {agent[:40]}…")
    return RunInfo(
        run=name,
        spec=RunSpec(
            task=found.task,
            agent=agent,
            agent_options=options,
            models={} if models["agent"] == NO_MODEL else {role: ModelSpec(name=name) for role, name in models.items()},
            limits=RunLimits(steps=int(found.limit("max_steps", run_info.LIMIT_STEPS)), time=found.limit("max_time", run_info.LIMIT_TIME)),
            sandbox="none",
            # The paper's baseline is the one to compare with, but times measured here compare only with a baseline measured here.
            baseline="auto" if spec and spec.submission.mode == "code" else "paper",
        ),
        category=spec.category if spec else "",
        published=spec.published if spec else None,
        description=found.description,
        metric=spec.metric.name if spec else UNGRADED,
        unit=spec.metric.unit if spec else "",
        direction=spec.metric.direction if spec else "maximize",
        isolation="none",
        started=times.started,
        versions={"MLAgentBench": "the original"},
        hardware={},
        imported=Imported(
            folder=path_text(logs.root.resolve()),
            digest=contents,
            problems=tuple(reader.problems),
            beginning=beginning,
            not_graded=OTHER_INTERFACES.get(found.task),
        ),
    )


def _beginning(trace: Trace, found: LoggedRun, autogpt_run: other_agents.AutoGPTRun | None) -> str:
    """Return a hash of the run's first own step or call; empty if there is none. A resumed run begins with another's steps."""
    resumed = found.arguments.get("resume")
    before = found.arguments.get("resume_step") if resumed else -1
    own = trace.steps[before + 1 :] if isinstance(before, int) and before >= -1 else ()
    if own and own[0].timestamp is not None:
        return _sha256(json.dumps([resumed, own[0].action, own[0].arguments, own[0].timestamp], sort_keys=True))
    return _sha256(autogpt_run.calls[0].call.prompt + autogpt_run.calls[0].call.reply) if autogpt_run and autogpt_run.calls else ""


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _workspaces(logs: LogFolders, indices: Sequence[int], steps: int, reader: Reader) -> dict[int, Path]:
    """Return the workspace's folders by step number. For the last step it is the final folder, if there is one."""
    found = {position + 1: path for position, index in enumerate(indices) if reader.is_folder(path := logs.traces / f"step_{index}_files")}
    final = logs.traces / "step_final_files"
    if reader.is_folder(final):
        found[steps] = final
    else:
        reader.say(final, "is missing" + ("; the last step's files stand for it" if steps in found else ""))
    lacking = [index for position, index in enumerate(indices) if position + 1 not in found]
    if lacking:
        reader.say(logs.traces, f"the files after {numbers_in_words('step', lacking)} are missing")
    return found
