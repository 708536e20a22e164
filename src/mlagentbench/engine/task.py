"""A run as an Inspect sample: one task, one sample, as many epochs as runs.

Every task here is one that Inspect can make again from its log: `inspect eval-retry` calls it with the arguments that stand there, and
each of its samples then goes on with the run that it had begun.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from inspect_ai import Task as InspectTask
from inspect_ai import task as inspect_registered
from inspect_ai import task_with
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall

from mlagentbench.engine.model import current_models, current_prices
from mlagentbench.engine.samples import note_samples, sample_name
from mlagentbench.engine.scorer import RESULT, result_scorer
from mlagentbench.engine.tools import as_tool_call, tool_name
from mlagentbench.environment import Listener, RunLimits
from mlagentbench.errors import InfrastructureError
from mlagentbench.records import BaselineChoice, Price, Result, Step
from mlagentbench.run.conduct import Person, RunPlan, conduct
from mlagentbench.run.resume import is_over
from mlagentbench.run.slots import Slots
from mlagentbench.sandbox.base import BoxLimits
from mlagentbench.sandbox.isolation import Choice
from mlagentbench.store.run_directory import RunDirectory, find_sample
from mlagentbench.tasks.catalogue import Task, find_tasks, load_task
from mlagentbench.tasks.spec import Variant
from mlagentbench.workspace.snapshots import KeepLast


def inspect_task(
    plan: RunPlan,
    *,
    runs: int = 1,
    listen: Callable[[RunPlan, int], Listener] | None = None,
    stop: asyncio.Event | None = None,
    done: Callable[[RunPlan, int, Result], None] | None = None,
    failed: Callable[[Exception], None] | None = None,
    slots: Slots | None = None,
    person: Person | None = None,
) -> InspectTask:
    """A plan as an Inspect task.

    Args:
        plan: what each run does.
        runs: how many there are.
        listen: makes a listener for a run, by its number from 1.
        stop: set it to end all runs early.
        done: is told each run's result.
        failed: is told why a run could not be carried out, and has no result.
        slots: which runs go on at once; None leaves that to Inspect, but for the GPUs.
        person: asks the person who watches; None where nobody does.
    """
    return task_with(planned(**_arguments(plan)), solver=_conduct(plan, listen, stop, done, failed, slots, person), epochs=runs)


@inspect_registered(name="run")
def planned(
    folder: str,
    log_directory: str,
    agent: str,
    agent_options: dict[str, Any],
    variant: Variant,
    limits: dict[str, Any],
    script_limits: dict[str, Any],
    sandbox: Choice,
    python: str,
    gpus: list[str],
    score_steps: bool,
    baseline: BaselineChoice = "auto",
    keep: dict[str, Any] | None = None,
    continues: str | None = None,
    experience: str | None = None,
    model_options: dict[str, Any] | None = None,
    prices: dict[str, Any] | None = None,
) -> InspectTask:
    """A plan as an Inspect task, from what its log can hold; `mlab run` calls it, and a retry of its log."""
    return _task(
        RunPlan(
            task=load_task(Path(folder)),
            agent=agent,
            log_directory=Path(log_directory),
            variant=variant,
            agent_options=agent_options,
            limits=RunLimits(**limits),
            box_limits=BoxLimits(**script_limits),
            sandbox=sandbox,
            python=Path(python),
            gpus=tuple(gpus),
            score_steps=score_steps,
            baseline=baseline,
            keep=KeepLast(**keep) if keep else None,
            continues=RunDirectory(Path(continues)) if continues else None,
            experience=Path(experience) if experience else None,
            model_options=model_options or {},
            prices={model: Price.model_validate(price) for model, price in (prices or {}).items()},
        )
    )


def _arguments(plan: RunPlan) -> dict[str, Any]:
    """What `planned` makes a plan of again."""
    return {
        "folder": str(plan.task.folder),
        "log_directory": str(plan.log_directory.resolve()),
        "agent": plan.agent,
        "agent_options": dict(plan.agent_options),
        "variant": plan.variant,
        "limits": asdict(plan.run_limits),
        "script_limits": asdict(plan.script_limits),
        "sandbox": plan.sandbox,
        "python": str(plan.python),
        "gpus": list(plan.gpus),
        "score_steps": plan.score_steps,
        "baseline": plan.baseline,
        "keep": plan.keep._asdict() if plan.keep else None,
        "continues": str(plan.continues.path) if plan.continues else None,
        "experience": str(plan.experience.resolve()) if plan.experience else None,
        "model_options": dict(plan.model_options),
        "prices": {model: price.model_dump(mode="json") for model, price in plan.prices.items()},
    }


def _task(plan: RunPlan) -> InspectTask:
    note_samples()
    sample = Sample(id=plan.task.id, input=plan.task.problem, metadata={"variant": plan.variant})
    return InspectTask(
        name=plan.task.id,
        dataset=MemoryDataset([sample], name=plan.task.id),
        solver=_conduct(plan),
        scorer=result_scorer(),
        metadata={"agent": plan.agent, "variant": plan.variant},
    )


@solver(name="mlagentbench")
def _conduct(
    plan: RunPlan,
    listen: Callable[[RunPlan, int], Listener] | None = None,
    stop: asyncio.Event | None = None,
    done: Callable[[RunPlan, int, Result], None] | None = None,
    failed: Callable[[Exception], None] | None = None,
    slots: Slots | None = None,
    person: Person | None = None,
) -> Solver:
    places = slots or Slots()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        number = state.epoch
        async with places.slot(plan.gpus) as slot:
            if slot is None:
                # An error in the log, so that a retry carries it out.
                raise InfrastructureError("the run was not started, since the evaluation was stopped before")
            try:
                begun = _continued(
                    replace(plan, gpus=slot.gpus, parallel=places.parallel, prices=current_prices(plan.prices)), sample_name(state)
                )
                result = await _result(begun, listen(plan, number) if listen else None, stop, places.gradings, person)
            except Exception as error:
                # Whatever it is, Inspect has it as the sample's error, and would keep it to itself.
                if failed:
                    failed(error)
                raise
        directory = RunDirectory(plan.log_directory / result.run)
        state.messages = conversation(plan.task.problem, directory.steps())
        state.output = ModelOutput.from_content(str(state.model), result.final_answer or "")
        state.store.set(RESULT, result.model_dump(mode="json"))
        state.metadata |= {"run": result.run, "directory": str(directory.path)}
        if done:
            done(plan, number, result)
        if result.outcome.ended in ("infrastructure", "cancelled"):
            # An error in the log, so that a retry goes on with it.
            raise InfrastructureError(result.outcome.reason or "the run's infrastructure failed")
        return state

    return solve


def _continued(plan: RunPlan, sample: str | None) -> RunPlan:
    """The plan of a sample: it goes on with the run that the sample began when it was run before, if it was."""
    begun = plan.continues or (find_sample(plan.log_directory, sample) if sample else None)
    return replace(plan, continues=begun, sample=sample)


async def _result(
    plan: RunPlan,
    listener: Listener | None,
    stop: asyncio.Event | None,
    gradings: AbstractAsyncContextManager[object],
    person: Person | None,
) -> Result:
    """Carry a plan out, unless that has been done and only the evaluation does not know."""
    if plan.continues is None:
        return await conduct(plan, current_models(), listener=listener, stop=stop, through=as_tool_call, gradings=gradings, person=person)
    with plan.continues.lock():
        result = plan.continues.result
        if result is not None and is_over(plan.continues, plan.run_limits):
            return result
        models = current_models(plan.continues.replies())
        return await conduct(plan, models, listener=listener, stop=stop, through=as_tool_call, gradings=gradings, person=person)


def conversation(description: str, steps: Sequence[Step]) -> list[ChatMessage]:
    """A run as a chat, for Inspect's viewer."""
    messages: list[ChatMessage] = [ChatMessageUser(content=description)]
    for step in steps:
        name = tool_name(step.action.name)
        call = ToolCall(id=f"step-{step.number}", function=name, arguments=dict(step.action.arguments))
        thoughts = "\n\n".join(f"**{entry}**: {text}" for entry, text in step.entries.items())
        messages.append(ChatMessageAssistant(content=thoughts, tool_calls=[call]))
        messages.append(ChatMessageTool(content=step.observation, tool_call_id=call.id, function=name))
    return messages


def registered_tasks() -> dict[str, Callable[..., InspectTask]]:
    """A function for each task of the catalogue, as `inspect eval mlagentbench/<task>` calls it."""
    return {task.id: _registered(task) for task in find_tasks().values()}


def _registered(task: Task) -> Callable[..., InspectTask]:
    def make(
        agent: str = "research",
        agent_options: dict[str, Any] | None = None,
        experience: str | None = None,
        variant: Variant = "full",
        steps: int | None = None,
        time: float | None = None,
        sandbox: Choice = "auto",
        log_directory: str | None = None,
    ) -> InspectTask:
        # Inspect tells a task nothing of its log directory but through the environment.
        logs = Path(log_directory or os.environ.get("INSPECT_LOG_DIR", "./logs")).resolve()
        plan = RunPlan(
            task=task,
            agent=agent,
            agent_options=agent_options or {},
            log_directory=logs,
            variant=variant,
            sandbox=sandbox,
            experience=Path(experience).resolve() if experience else None,
        )
        limits = plan.run_limits
        return _task(replace(plan, limits=replace(limits, steps=steps or limits.steps, time=time or limits.time)))

    make.__name__ = task.spec.id.replace("-", "_")
    make.__doc__ = task.spec.title
    return make
