"""Resume a run from its last step, or fork a new run from any of its steps.

The run's directory is all that is needed: however the process ended, the published steps are complete.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mlagentbench.audit.audit import audit_run
from mlagentbench.errors import LimitReached, UsageError
from mlagentbench.grading.cache import task_digest
from mlagentbench.records import Price, Usage
from mlagentbench.run_spec import ROLES, ModelSpec, RunLimits, RunSpec
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.fork import fork
from mlagentbench.rundir.names import new_name
from mlagentbench.rundir.provenance import INFO, is_sealed, rewriting, seal
from mlagentbench.runner.preflight import task_of
from mlagentbench.sandbox import isolation
from mlagentbench.task.spec import UNGRADED
from mlagentbench.util.machine import free_disk_mb, hardware, versions
from mlagentbench.workspace.snapshots.snapshots import Manifest

RAISED = ("limit_steps", "limit_time", "limit_tokens", "limit_cost")
"""The limits after which a run can go on if they are raised."""


class Resumed(NamedTuple):
    """A run to go on with, and its spec from here on."""

    spec: RunSpec
    directory: RunDirectory


@contextmanager
def resume(
    path: Path,
    step: int | None = None,
    *,
    model: str | None = None,
    prices: Mapping[str, Price] = {},
    steps: int | None = None,
    seconds: float | None = None,
    storage_mb: int | None = None,
) -> Iterator[Resumed]:
    """Lock a run, or a fork of it, and yield what is needed to go on with it.

    Args:
        path: the run's directory.
        step: the step to fork from: a new run begins with a copy of the steps up to it; None to go on with the run itself.
        model: the model of all roles instead of those in the run's spec; only with `step`.
        prices: the price of `model`.
        steps: another limit of steps, including those already done.
        seconds: another limit of time, including the time already spent.
        storage_mb: another limit of storage, in megabytes (2^20 bytes), including what is already stored; it then holds whatever the run's
            share of the disk.

    Raises:
        UsageError: the run has no such step, is over, or another process works on it.
        RunNotFound: the path holds no run, or one that is damaged.
        TaskError: its task is gone.
        StorageFailed: the disk is full or read-only.
    """
    directory = RunDirectory(path.resolve())
    if directory.info.imported is not None:
        raise UsageError(f"{directory.name} was imported: what carried it out is not here, so it cannot go on; begin a new run of its task")
    spec = directory.info.spec
    task_of(spec)  # raise for a missing task before a fork is made
    raised = {"steps": steps, "time": seconds, "storage_mb": storage_mb}
    spec = spec.replace(limits=replace(spec.limits, **{name: value for name, value in raised.items() if value}))  # type: ignore[arg-type]
    if step is not None:
        if model is not None:
            spec = spec.replace(models={role: ModelSpec(name=model) for role in ROLES}, prices=prices)
        forked = _fork(directory, spec, step)
        with forked.lock():
            yield Resumed(forked.info.spec, forked)
        return
    if model is not None:
        raise UsageError(f"{directory.name} has its model; fork it with --step to go on with another")
    with directory.lock():
        info = directory.info.model_copy(update={"spec": spec})
        if storage_mb is not None:
            info = info.model_copy(update={"disk_share_mb": None})
            directory.discard_result("limit_storage")
        _check(directory, spec)
        if info != directory.info:
            with rewriting(directory, INFO):
                directory.write_info(info)
        yield Resumed(spec, directory)


def seal_if_killed(directory: RunDirectory) -> bool:
    """Seal and audit a run that is over, if its process was killed before it had done so. The caller has locked it.

    Returns:
        Whether it was not sealed before.

    Raises:
        RunNotFound: the run is damaged.
        TaskError: its task is gone.
        StorageFailed: the disk is full or read-only.
    """
    info = directory.info
    if info.imported is not None or is_sealed(directory) or not is_over(directory, info.spec.limits):
        return False
    task = task_of(info.spec)
    seal(directory, task_digest(task))
    if info.spec.audit:
        audit_run(directory, task)
    return True


def is_over(directory: RunDirectory, limits: RunLimits) -> bool:
    """Return whether a run is over and completely graded.

    It is not after an interrupt or an infrastructure failure, nor if the limit that ended it has been raised.
    """
    result = directory.result
    if result is None or (result.outcome.verdict == "ungraded" and directory.info.metric != UNGRADED):
        return False
    if directory.info.spec.score_steps and not result.step_scores and directory.steps():
        return False
    if result.outcome.ended in RAISED:
        return _limit_reached(directory, limits) is not None
    return result.outcome.ended not in ("cancelled", "infrastructure")


def _limit_reached(directory: RunDirectory, limits: RunLimits) -> LimitReached | None:
    done = directory.steps()
    try:
        limits.check(
            steps=sum(step.counted for step in done),
            seconds=sum(step.seconds for step in done),
            waited=sum(step.waited_seconds for step in done),
            used=Usage.total(directory.usage().values()),
        )
    except LimitReached as limit:
        return limit
    return None


def _check(directory: RunDirectory, spec: RunSpec) -> None:
    """Check that a run can go on.

    Raises:
        UsageError: the run is over, or this machine isolates scripts in another way.
        RunNotFound: its last snapshot is damaged.
    """
    _check_isolation(directory, spec)
    done = directory.steps()
    if done:
        Manifest.load(directory.manifest(len(done)))
    if not is_over(directory, spec.limits):
        return
    if done and "final_answer" in done[-1].details:
        last = len(done) - 1
        raise UsageError(f"{directory.name} has ended by its final answer; fork it from an earlier step with --step, from 0 to {last}")
    if limit := _limit_reached(directory, spec.limits):
        raise UsageError(f"{directory.name} has ended: {limit}; give it more with --steps or --time, or fork it with --step")
    reason = directory.result.outcome.reason if directory.result else None
    if directory.result and directory.result.outcome.ended == "limit_storage":
        raise UsageError(f"{directory.name} has ended: {reason}; make room and give it more with --storage, or fork it with --step")
    raise UsageError(f"{directory.name} has ended: {reason}; fork it with --step")


def _check_isolation(directory: RunDirectory, spec: RunSpec) -> None:
    """Raise UsageError if this machine's isolation is not the one that `run.json` says all the run's scripts had."""
    had, found = directory.info.isolation, isolation.choose(spec.sandbox).isolation
    if found != had:
        raise UsageError(f"the scripts of {directory.name} ran in {had}, and this machine gives {found}; fork it with --step to go on here")


def _fork(directory: RunDirectory, spec: RunSpec, step: int) -> RunDirectory:
    steps = directory.steps()
    last = len(steps) - bool(steps and "final_answer" in steps[-1].details)
    if not 0 <= step <= last:
        raise UsageError(f"{directory.name} can be forked from the steps 0 to {last}, not from {step}")
    if not directory.manifest(step).exists():
        raise UsageError(f"{directory.name} was never started, so it has nothing to fork; go on with it without --step")
    Manifest.load(directory.manifest(step))
    # The description and the experience stay as they were, since the fork's first steps were done with them.
    changed = {
        "run": new_name(spec.task, spec.agent),
        "spec": spec,
        "parent": f"{directory.name}/{step}",
        "sample": None,
        "isolation": isolation.choose(spec.sandbox).isolation,
        "disk_share_mb": free_disk_mb(directory.path.parent),
        "started": time.time(),
        "versions": versions(),
        "hardware": hardware(),
    }
    return fork(directory, directory.info.model_copy(update=changed), step)
