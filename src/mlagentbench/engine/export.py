"""Write an `.eval` log of a run that Inspect did not carry out, so that Inspect's viewer and dataframes can read it.

Each step is a span with its model calls and its action as a tool call, at the recorded times. The log has one sample, whose metadata
describe the run as a whole.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from inspect_ai.dataset import Sample
from inspect_ai.event import Event, InfoEvent, ModelEvent, SampleInitEvent, ScoreEvent, SpanBeginEvent, SpanEndEvent, ToolEvent
from inspect_ai.log import EvalConfig, EvalDataset, EvalError, EvalLog, EvalMetric, EvalResults, EvalSample, EvalScore, EvalSpec, EvalStats
from inspect_ai.log import write_eval_log as write_log
from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput, ModelUsage, StopReason
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCallError

from mlagentbench.engine.agents.tools import tool_name
from mlagentbench.engine.sample_metadata import HEAD, audit_metadata
from mlagentbench.engine.scorer import as_score
from mlagentbench.engine.task import conversation
from mlagentbench.records import ModelCall, Result, Step, Usage
from mlagentbench.results.load import Run
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.provenance import head_of
from mlagentbench.util.atomic import replacing

SCORER = "mlagentbench"


def log_path(run: Run) -> Path:
    """Return the path of a run's log: beside the run's directory, with a name like those of Inspect's own logs."""
    when = datetime.datetime.fromtimestamp(run.info.started, datetime.UTC).strftime("%Y-%m-%dT%H-%M-%S+00-00")
    return run.directory.path.parent / f"{when}_{run.info.spec.task}_{_id(run.name, 'task')}.eval"


def sample_uuid(run: str) -> str:
    """Return the id of the sample in a run's log."""
    return _id(run, "sample")


def write_eval_log(run: Run, *, folder: Path | None = None, events: bool = True) -> Path:
    """Write a run's log, replacing an earlier one atomically.

    Args:
        run: the run, which must have a result.
        folder: the folder that gets it; None for that of the run's directory.
        events: write each model call and tool call too, not only the conversation.

    Returns:
        The log's path.

    Raises:
        OSError: the disk is full or read-only.
    """
    path = log_path(run) if folder is None else folder / log_path(run).name
    with replacing(path) as temporary:
        write_log(_log(run, events=events), str(temporary), format="eval")
    return path


def _log(run: Run, *, events: bool) -> EvalLog:
    info, result = run.info, run.result
    assert result is not None, "a run is written when it is over"
    sample = _sample(run, result, events=events)
    failed = sample.error is not None
    scores = [] if result.score is None else [_summary(name, value) for name, value in as_score(result).as_dict().items()]
    return EvalLog(
        status="error" if failed else "success",
        error=sample.error,
        eval=EvalSpec(
            eval_id=_id(run.name, "eval"),
            run_id=_id(run.name, "run"),
            task_id=_id(run.name, "task"),
            created=_when(info.started),
            task=info.spec.task,
            solver=info.spec.agent,
            solver_args=dict(info.spec.agent_options),
            dataset=EvalDataset(name=info.spec.task, samples=1, sample_ids=[info.spec.task]),
            model=info.spec.model_names["agent"],
            config=EvalConfig(epochs=1),
            metadata=_metadata(info),
        ),
        results=EvalResults(total_samples=1, completed_samples=0 if failed else 1, scores=scores),
        stats=EvalStats(started_at=sample.started_at or "", completed_at=sample.completed_at or "", model_usage=dict(sample.model_usage)),
        samples=[sample],
    )


def _sample(run: Run, result: Result, *, events: bool) -> EvalSample:
    info = run.info
    calls = {number: run.calls(number) for number in range(1, len(run.steps) + 2)}
    usage = _usages((call.model, call.usage) for asked in calls.values() for call in asked)
    error = result.outcome.ended in ("infrastructure", "cancelled", "agent_error")
    message = result.outcome.reason or result.outcome.ended
    score = as_score(result) if result.score is not None else None
    return EvalSample(
        id=info.spec.task,
        epoch=1,
        uuid=sample_uuid(run.name),
        input=info.description,
        target="",
        messages=conversation(info.description, run.steps),
        output=ModelOutput.from_content(info.spec.model_names["agent"], result.final_answer or ""),
        scores={SCORER: score} if score else None,
        metadata={
            "run": run.name,
            "directory": str(run.directory.path),
            "outcome": result.outcome.model_dump(mode="json"),
            HEAD: head_of(run.directory),
            **audit_metadata(run.directory),
            **_metadata(info),
        },
        events=_events(run, result, calls, score) if events else [],
        model_usage=usage,
        role_usage=_usages((call.role, call.usage) for asked in calls.values() for call in asked),
        started_at=_when(info.started) if info.started else None,
        completed_at=_when(info.started + result.seconds) if info.started else None,
        total_time=result.seconds,
        error=EvalError(message=message, traceback=message, traceback_ansi=message) if error else None,
    )


def _metadata(info: RunInfo) -> dict[str, object]:
    spec = info.spec.model_dump(mode="json", include={"agent", "agent_options", "variant", "limits"})
    found = {**spec, "models": info.spec.model_names, **info.model_dump(mode="json", include={"isolation", "imported"})}
    return {key: value for key, value in found.items() if value is not None}


def _events(run: Run, result: Result, calls: Mapping[int, Sequence[ModelCall]], score: Score | None) -> list[Event]:
    begun = run.info.started
    sample = Sample(id=run.info.spec.task, input=run.info.description)
    events: list[Event] = [SampleInitEvent(sample=sample, state={}, timestamp=_time(begun), working_start=0.0)]
    if run.problems:
        events.append(InfoEvent(source="problems", data=list(run.problems), timestamp=_time(begun), working_start=0.0))
    for step in run.steps:
        events += _step_events(step, calls[step.number], begun)
    end = begun + result.seconds
    rest = calls[len(run.steps) + 1]
    events += [event for call in rest for event in _call_events(call, end, begun, None)]
    if score is not None:
        events.append(ScoreEvent(score=score, scorer=SCORER, timestamp=_time(end), working_start=result.seconds))
    return events


def _step_events(step: Step, calls: Sequence[ModelCall], begun: float) -> list[Event]:
    """Return the events of a step, in a span of their own. Model calls get the time at which the step began."""
    span, ended = f"step-{step.number}", step.started + step.seconds
    events: list[Event] = [
        SpanBeginEvent(
            id=span,
            name=f"{step.number} {step.action.name}",
            type="step",
            span_id=span,
            timestamp=_time(step.started),
            working_start=max(0.0, step.started - begun),
        )
    ]
    events += [event for call in calls for event in _call_events(call, step.started, begun, span)]
    events.append(
        ToolEvent(
            id=span,
            function=tool_name(step.action.name),
            arguments=dict(step.action.arguments),
            result=step.observation,
            error=None if step.status == "ok" else ToolCallError(type="unknown", message=step.status),
            failed=step.status != "ok" or None,
            completed=_time(ended),
            working_time=step.seconds,
            span_id=span,
            timestamp=_time(step.started),
            working_start=max(0.0, step.started - begun),
        )
    )
    events.append(SpanEndEvent(id=span, span_id=span, timestamp=_time(ended), working_start=max(0.0, ended - begun)))
    return events


def _call_events(call: ModelCall, when: float, begun: float, span: str | None) -> list[Event]:
    known: tuple[StopReason, ...] = get_args(StopReason)
    unknown: StopReason = "unknown"
    stop_reason = next((reason for reason in known if reason == (call.stop_reason or "stop")), unknown)
    output = ModelOutput.from_content(call.model, call.reply, stop_reason)
    output.usage = _usage(call.usage)
    at, since = _time(when), max(0.0, when - begun)
    events: list[Event] = [
        ModelEvent(
            model=call.model,
            role=call.role,
            input=[ChatMessageUser(content=call.prompt)],
            tools=[],
            tool_choice="auto",
            config=GenerateConfig(),
            output=output,
            metadata={"purpose": call.purpose},
            span_id=span,
            timestamp=at,
            working_start=since,
        )
    ]
    if call.rejected is not None:
        events.append(InfoEvent(source="the reply held no action", data=call.rejected, span_id=span, timestamp=at, working_start=since))
    return events


def _summary(name: str, value: object) -> EvalScore:
    number = float(value) if isinstance(value, int | float) else math.nan
    return EvalScore(name=name, scorer=SCORER, metrics={"mean": EvalMetric(name="mean", value=number)})


def _usages(parts: Iterable[tuple[str, Usage]]) -> dict[str, ModelUsage]:
    found: dict[str, list[Usage]] = {}
    for name, usage in parts:
        found.setdefault(name, []).append(usage)
    return {name: _usage(Usage.total(usages)) for name, usages in found.items()}


def _usage(usage: Usage) -> ModelUsage:
    return ModelUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.tokens or 0,
        input_tokens_cache_read=usage.cache_read_tokens or None,
        input_tokens_cache_write=usage.cache_write_tokens or None,
        total_cost=usage.cost,
    )


def _id(name: str, what: str) -> str:
    """Return an id that looks like Inspect's random ones, but is the same each time the run is exported."""
    return hashlib.sha256(f"{what} {name}".encode()).hexdigest()[:22]


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def _when(seconds: float) -> str:
    return _time(seconds).isoformat()
