"""Which sample is running, by a name that a retry of its evaluation keeps.

A retry of an `.eval` log, of a sample that failed, or of an eval set gives a task the id that it had before. Inspect tells that id to its
hooks and not to a solver, so a hook notes it.
"""

from __future__ import annotations

from functools import cache

from inspect_ai.hooks import Hooks, SampleEnd, SampleStart, TaskEnd, TaskStart, hooks
from inspect_ai.solver import TaskState

_tasks: dict[str, str] = {}
"""Tasks' ids by those of their evaluations, while they run."""
_samples: dict[str, str] = {}
"""Samples' names by their ids, while they run."""


class _Notes(Hooks):
    async def on_task_start(self, data: TaskStart) -> None:
        _tasks[data.eval_id] = data.spec.task_id

    async def on_task_end(self, data: TaskEnd) -> None:
        _tasks.pop(data.eval_id, None)

    async def on_sample_start(self, data: SampleStart) -> None:
        _samples[data.sample_id] = f"{_tasks[data.eval_id]}/{data.summary.epoch}"

    async def on_sample_end(self, data: SampleEnd) -> None:
        _samples.pop(data.sample_id, None)


@cache
def note_samples() -> None:
    """Note samples from now on. Call it before an evaluation starts.

    It is no hook of the entry point, since Inspect greets its users with the list of those, on standard output.
    """
    hooks(name="mlagentbench", description="Knows a run again when it is retried.")(_Notes)


def sample_name(state: TaskState) -> str | None:
    """`<task id>/<epoch>` of a sample that is running; None where Inspect has not told."""
    return _samples.get(state.uuid)
