"""Registers with Inspect, through its entry point: a task for each of the catalogue, the task of `mlab run`, and the scripted model."""

from __future__ import annotations

from inspect_ai import task
from inspect_ai.model import ModelAPI, modelapi

from mlagentbench.engine.task import registered_tasks, run_task


@modelapi(name="scripted")
def scripted() -> type[ModelAPI]:
    """Return the provider of `scripted/<file>`."""
    from mlagentbench.engine.models.scripted import ScriptedAPI

    return ScriptedAPI


RUN = run_task
TASKS = {name: task(name=name)(make) for name, make in registered_tasks().items()}
