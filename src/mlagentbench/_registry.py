"""What Inspect finds by this package's entry point: a task for each of the catalogue, and the scripted model."""

from __future__ import annotations

from inspect_ai import task
from inspect_ai.model import ModelAPI, modelapi

from mlagentbench.engine.task import registered_tasks


@modelapi(name="scripted")
def scripted() -> type[ModelAPI]:
    """The provider of `scripted/<file>`."""
    from mlagentbench.engine.scripted import ScriptedAPI

    return ScriptedAPI


TASKS = {name: task(name=name)(make) for name, make in registered_tasks().items()}
