"""Name the running sample by a name that stays the same when its evaluation is retried.

A retry of an `.eval` log, of a failed sample or of an eval set gives a task the id that it had before. Inspect passes that id to hooks but
not to solvers, so a hook records it.
"""

from __future__ import annotations

from functools import cache

from inspect_ai.hooks import Hooks, SampleEnd, SampleStart, TaskEnd, TaskStart, hooks
from inspect_ai.solver import TaskState

_tasks: dict[str, str] = {}
"""The ids of running tasks, by the ids of their evaluations."""
_samples: dict[str, str] = {}
"""The names of running samples, by their ids."""


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
    """Record the names of samples from now on. Call it before an evaluation starts.

    The hook is not registered by the package's entry point, since Inspect prints a list of such hooks to standard output.
    """
    hooks(name="mlagentbench", description="Knows a run again when it is retried.")(_Notes)


def sample_name(state: TaskState) -> str | None:
    """Return the name of a running sample, `<task id>/<epoch>`; None if the hook was not called for it."""
    return _samples.get(state.uuid)
