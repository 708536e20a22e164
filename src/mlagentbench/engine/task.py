"""A run as an Inspect sample: one task, one sample, as many epochs as runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from inspect_ai import Task as InspectTask
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall

from mlagentbench.actions import ACTIONS
from mlagentbench.engine.model import current_models
from mlagentbench.engine.scorer import RESULT, result_scorer
from mlagentbench.engine.tools import as_tool_call
from mlagentbench.environment import Listener
from mlagentbench.errors import InfrastructureError
from mlagentbench.records import Result, Step
from mlagentbench.run.conduct import RunPlan, conduct
from mlagentbench.sandbox.isolation import Choice
from mlagentbench.store.run_directory import RunDirectory
from mlagentbench.tasks.catalogue import Task, find_tasks
from mlagentbench.tasks.spec import Variant


def inspect_task(
    plan: RunPlan,
    *,
    runs: int = 1,
    listen: Callable[[RunPlan, int], Listener] | None = None,
    stop: asyncio.Event | None = None,
    done: Callable[[RunPlan, int, Result], None] | None = None,
) -> InspectTask:
    """A plan as an Inspect task.

    Args:
        plan: what each run does.
        runs: how many there are.
        listen: makes a listener for a run, by its number from 1.
        stop: set it to end all runs early.
        done: is told each run's result.
    """
    sample = Sample(id=plan.task.id, input=plan.task.problem, metadata={"variant": plan.variant})
    return InspectTask(
        name=plan.task.id,
        dataset=MemoryDataset([sample], name=plan.task.id),
        solver=_conduct(plan, listen, stop, done),
        scorer=result_scorer(),
        epochs=runs,
        metadata={"agent": plan.agent, "variant": plan.variant},
    )


@solver(name="mlagentbench")
def _conduct(
    plan: RunPlan,
    listen: Callable[[RunPlan, int], Listener] | None = None,
    stop: asyncio.Event | None = None,
    done: Callable[[RunPlan, int, Result], None] | None = None,
) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        number = state.epoch
        replies = plan.continues.replies() if plan.continues else {}
        result = await conduct(
            plan, current_models(replies), listener=listen(plan, number) if listen else None, stop=stop, through=as_tool_call
        )
        directory = RunDirectory(plan.log_directory / result.run)
        state.messages = _conversation(plan.task, directory.steps())
        state.output = ModelOutput.from_content(str(state.model), result.final_answer or "")
        state.store.set(RESULT, result.model_dump(mode="json"))
        state.metadata |= {"run": result.run, "directory": str(directory.path)}
        if done:
            done(plan, number, result)
        if result.outcome.ended == "infrastructure":
            raise InfrastructureError(result.outcome.reason or "the run's infrastructure failed")
        return state

    return solve


def _conversation(task: Task, steps: list[Step]) -> list[ChatMessage]:
    """A run as a chat, for Inspect's viewer."""
    messages: list[ChatMessage] = [ChatMessageUser(content=task.problem)]
    for step in steps:
        name = ACTIONS[step.action.name].tool_name if step.action.name in ACTIONS else step.action.name
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
        agent: str = "research", variant: Variant = "full", steps: int | None = None, time: float | None = None, sandbox: Choice = "auto"
    ) -> InspectTask:
        # Inspect tells a task nothing of its log directory but through the environment.
        plan = RunPlan(
            task=task, agent=agent, log_directory=Path(os.environ.get("INSPECT_LOG_DIR", "./logs")), variant=variant, sandbox=sandbox
        )
        limits = plan.run_limits
        return inspect_task(replace(plan, limits=replace(limits, steps=steps or limits.steps, time=time or limits.time)))

    make.__name__ = task.spec.id.replace("-", "_")
    make.__doc__ = task.spec.title
    return make
