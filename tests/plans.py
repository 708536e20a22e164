"""Runs that a test carries out in its own process, without an engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mlagentbench import Result, RunSpec, Task
from mlagentbench.environment import Listener, SilentListener
from mlagentbench.model import Models
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.preflight import ReadyRun, make_spec, ready_run, task_of
from mlagentbench.runner.resume import resume
from mlagentbench.runner.run_once import AskPerson, RunHooks, run_once


class Plan(NamedTuple):
    """A run to be carried out: its task, what it is to do, and where it is kept."""

    task: Task
    spec: RunSpec
    log_directory: Path
    continues: RunDirectory | None = None
    parallel: int = 1

    def but(self, **changes: Any) -> Plan:
        """The same with other fields of its own or of its spec."""
        own = {name: changes.pop(name) for name in self._fields if name in changes}
        return self._replace(spec=self.spec.replace(**changes), **own)

    async def ready(self) -> ReadyRun:
        """It, checked."""
        return replace(await ready_run(self.spec, self.log_directory, continues=self.continues), parallel=self.parallel)

    async def conduct(
        self, models: Models, *, listener: Listener | None = None, stop: asyncio.Event | None = None, person: AskPerson | None = None
    ) -> Result:
        """Carry it out."""
        hooks = RunHooks(listener=lambda ready, number: listener or SilentListener(), stop=stop or asyncio.Event(), ask_person=person)
        return await run_once(await self.ready(), models, hooks)


def make_plan(task: Task, log_directory: Path, **fields: Any) -> Plan:
    """A run of a task's mini variant, compared with the paper's number, whose steps are not scored, unless the fields say otherwise."""
    whole = {name: fields.pop(name) for name in ("limits", "script_limits") if name in fields}
    defaults = {"variant": "mini", "baseline": "paper", "score_steps": False}
    return Plan(task, make_spec(task, {**defaults, **fields}).replace(**whole), log_directory)


@contextmanager
def resumed(path: Path, step: int | None = None, **how: Any) -> Iterator[Plan]:
    """What goes on with a run, or with a fork of it."""
    with resume(path, step, **how) as (spec, directory):
        yield Plan(task_of(spec), spec, directory.path.parent, directory)
