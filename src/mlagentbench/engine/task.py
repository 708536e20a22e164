"""Present runs as Inspect tasks: each task has one sample, and as many epochs as runs.

Inspect can recreate every task from its log: `inspect eval-retry` calls the task function with the logged arguments, and each sample then
resumes the run that it had begun.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspect_ai import Task as InspectTask
from inspect_ai import task as inspect_registered
from inspect_ai import task_with
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ModelOutput
from inspect_ai.model import Model as InspectModel
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall
from inspect_ai.util import SandboxEnvironmentSpec

from mlagentbench.agents.base import make_agent
from mlagentbench.engine.agents.tools import as_tool_call, tool_name
from mlagentbench.engine.box import box_sandbox
from mlagentbench.engine.models.model import current_models, current_prices
from mlagentbench.engine.sample_metadata import HEAD, audit_metadata
from mlagentbench.engine.sample_names import note_samples, sample_name
from mlagentbench.engine.scorer import RESULT, result_scorer
from mlagentbench.errors import InfrastructureError, UsageError
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import Result, Role, Step, Variant
from mlagentbench.run_spec import RunSpec, check_spec
from mlagentbench.rundir.directory import RunDirectory, find_named, find_sample
from mlagentbench.rundir.provenance import head_of
from mlagentbench.runner.preflight import ReadyRun, make_spec, ready_run, task_of
from mlagentbench.runner.resume import is_over, seal_if_killed
from mlagentbench.runner.run_once import RunHooks, run_once
from mlagentbench.task.catalogue import Task, find_tasks


def inspect_task(ready: ReadyRun, hooks: RunHooks, models: Mapping[Role, InspectModel], *, runs: int = 1) -> InspectTask:
    """Return a checked run, which each epoch carries out, as an Inspect task."""
    continues = str(ready.continues.path) if ready.continues else None
    made = run_task(ready.spec.model_dump(mode="json"), str(ready.log_directory), continues, list(ready.names) or None)

    async def source() -> ReadyRun:
        return ready

    others: dict[str, str | InspectModel | Sequence[str | InspectModel]] = {
        role: model for role, model in models.items() if role in ready.spec.models and role != "agent"
    }
    return task_with(made, solver=_run_solver(source, hooks), epochs=runs, model=models["agent"], model_roles=others)


@inspect_registered(name="run")
def run_task(spec: dict[str, Any], log_directory: str, continues: str | None = None, names: Sequence[str] | None = None) -> InspectTask:
    """Return a spec as an Inspect task. Its arguments are JSON, so that a retry can call it with those in the log."""
    read = check_spec(spec, "the log's spec")
    begun = RunDirectory(Path(continues)) if continues else None
    return _task(read, task_of(read).problem, _checked_once(read, Path(log_directory), begun, tuple(names or ())))


def _task(spec: RunSpec, problem: str, source: Source) -> InspectTask:
    note_samples()
    sample = Sample(id=spec.task, input=problem, metadata={"variant": spec.variant})
    return InspectTask(
        name=spec.task,
        dataset=MemoryDataset([sample], name=spec.task),
        solver=_run_solver(source, RunHooks()),
        scorer=result_scorer(),
        sandbox=_sandbox(spec),
        metadata={"agent": spec.agent, "variant": spec.variant},
    )


def _sandbox(spec: RunSpec) -> SandboxEnvironmentSpec | None:
    """Return the sandbox that Inspect is to know of: that of an agent which runs in one itself."""
    try:
        agent = make_agent(spec.agent, spec.agent_options)
    except UsageError:
        return None  # the check of the run says what is wrong
    return box_sandbox() if getattr(agent, "isolation", None) == "bubblewrap" else None


Source = Callable[[], Awaitable[ReadyRun]]
"""Returns the checked run of a solver's samples."""


def _checked_once(spec: RunSpec, log_directory: Path, continues: RunDirectory | None = None, names: tuple[str, ...] = ()) -> Source:
    """Return a source that checks a spec, of an evaluation that Inspect started, when the first sample begins."""
    lock, ready = asyncio.Lock(), list[ReadyRun]()

    async def source() -> ReadyRun:
        async with lock:
            if not ready:
                ready.append(replace(await ready_run(spec, log_directory, continues=continues), names=names))
            return ready[0]

    return source


@solver(name="mlagentbench")
def _run_solver(source: Source, hooks: RunHooks) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        number = state.epoch
        try:
            checked = await source()
        except Exception as error:
            # Inspect records any exception as the sample's error, but does not report it to our caller.
            hooks.failed(error)
            raise
        async with hooks.slots.slot(checked.spec.gpus, hooks.rank.get(checked.name(number) or "", 0)) as slot:
            if slot is None or not hooks.may_start():
                # Raised so that the log has an error, and a retry carries the run out.
                raise InfrastructureError("the run was not started, since the evaluation was stopped before")
            try:
                ready = _continued(replace(checked, parallel=hooks.slots.parallel), sample_name(state), slot.gpus, number)
                result = await _result(ready, hooks, number)
            except Exception as error:
                hooks.failed(error)
                raise
        directory = RunDirectory(ready.log_directory / result.run)
        state.messages = conversation(ready.task.problem, directory.steps())
        state.output = ModelOutput.from_content(str(state.model), result.final_answer or "")
        state.store.set(RESULT, result.model_dump(mode="json"))
        state.metadata |= {"run": result.run, "directory": str(directory.path), HEAD: head_of(directory), **audit_metadata(directory)}
        hooks.finished(ready, number, result)
        if result.outcome.ended in ("infrastructure", "cancelled"):
            # Raised so that the log has an error, and a retry resumes the run.
            raise InfrastructureError(result.outcome.reason or "the run's infrastructure failed")
        return state

    return solve


def _continued(ready: ReadyRun, sample: str | None, gpus: tuple[str, ...], number: int) -> ReadyRun:
    """Return the run of a sample, set to resume the run that it began before, if there is one: that of its name, or of the sample."""
    begun = ready.continues
    if begun is None and (name := ready.name(number)):
        begun = find_named(ready.log_directory, name)
    elif begun is None and sample:
        begun = find_sample(ready.log_directory, sample)
    spec = ready.spec.replace(gpus=gpus, prices=current_prices(ready.spec.prices))
    return replace(ready, spec=spec, continues=begun, sample=sample)


async def _result(ready: ReadyRun, hooks: RunHooks, number: int) -> Result:
    """Carry out a run, unless it was over before the evaluation was retried, and return its result."""
    hooks = replace(hooks, middleware=as_tool_call)
    if ready.continues is None:
        return await run_once(ready, current_models(), hooks, number=number)
    with ready.continues.lock():
        result = ready.continues.result
        if result is not None and is_over(ready.continues, ready.spec.limits):
            await asyncio.to_thread(seal_if_killed, ready.continues)
            return result
        return await run_once(ready, current_models(ready.continues.replies()), hooks, number=number)


def conversation(description: str, steps: Sequence[Step]) -> list[ChatMessage]:
    """Return a run as a chat, for Inspect's viewer."""
    messages: list[ChatMessage] = [ChatMessageUser(content=description)]
    for step in steps:
        name = tool_name(step.action.name)
        call = ToolCall(id=f"step-{step.number}", function=name, arguments=dict(step.action.arguments))
        thoughts = "\n\n".join(f"**{entry}**: {text}" for entry, text in step.entries.items())
        messages.append(ChatMessageAssistant(content=thoughts, tool_calls=[call]))
        messages.append(ChatMessageTool(content=step.observation, tool_call_id=call.id, function=name))
    return messages


def registered_tasks() -> dict[str, Callable[..., InspectTask]]:
    """Return a function for each task of the catalogue, for `inspect eval mlagentbench/<task>`."""
    return {task.id: _registered(task) for task in find_tasks().values()}


def _registered(task: Task) -> Callable[..., InspectTask]:
    def make(
        agent: str = "research",
        agent_options: dict[str, Any] | None = None,
        experience: str | None = None,
        examples: list[str] | None = None,
        documents: str | None = None,
        variant: Variant = "full",
        mini_seed: int | None = None,
        steps: int | None = None,
        time: float | None = None,
        sandbox: SandboxChoice = "auto",
        log_directory: str | None = None,
    ) -> InspectTask:
        # Inspect passes its log directory to a task only through this environment variable.
        logs = Path(log_directory or os.environ.get("INSPECT_LOG_DIR", "./logs")).resolve()
        limits = {name: value for name, value in (("steps", steps), ("time", time)) if value is not None}
        given = {
            "agent": agent,
            "agent_options": agent_options or {},
            "variant": variant,
            "mini_seed": mini_seed,
            "sandbox": sandbox,
            "experience": Path(experience).resolve() if experience else None,
            "examples": [Path(example).resolve() for example in examples or ()],
            "documents": documents,
            "limits": limits,
        }
        spec = make_spec(task, given, "the task's parameters")
        return _task(spec, task.problem, _checked_once(spec, logs))

    make.__name__ = task.spec.id.replace("-", "_")
    make.__doc__ = task.spec.title
    return make
