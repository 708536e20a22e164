"""Going on with a run from its last step, or with a new one from any step of it.

The run's directory is all that is needed: whatever ended the process, what was published is whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from mlagentbench.environment import RunLimits
from mlagentbench.errors import LimitReached, UsageError
from mlagentbench.records import Price, RunInfo, Usage
from mlagentbench.run.conduct import RunPlan, run_info
from mlagentbench.sandbox import isolation
from mlagentbench.sandbox.base import BoxLimits
from mlagentbench.sandbox.isolation import Choice
from mlagentbench.store.run_directory import RunDirectory
from mlagentbench.tasks.catalogue import load_task
from mlagentbench.tasks.spec import UNGRADED
from mlagentbench.workspace.snapshots import KeepLast, Manifest

RAISED = ("limit_steps", "limit_time", "limit_tokens", "limit_cost")
"""The ends after which a run can go on, given more."""


def plan_again(info: RunInfo, log_directory: Path) -> RunPlan:
    """The plan that a run was made by.

    Raises:
        TaskError: the task's folder is gone, or has changed so that it is none.
    """
    return RunPlan(
        task=load_task(Path(info.task_folder)),
        agent=info.agent,
        agent_options=info.agent_options,
        model_options=info.model_options,
        prices=info.prices,
        log_directory=log_directory,
        variant=info.variant,
        limits=RunLimits(**info.limits),  # type: ignore[arg-type]
        box_limits=BoxLimits(**info.script_limits) if info.script_limits else None,  # type: ignore[arg-type]
        sandbox=cast(Choice, info.sandbox),
        python=Path(info.python or sys.executable),
        gpus=info.gpus,
        score_steps=info.score_steps,
        baseline=info.baseline,
        keep=KeepLast(**info.keep) if info.keep else None,  # type: ignore[arg-type]
        experience=Path(info.experience.folder) if info.experience else None,
    )


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
) -> Iterator[RunPlan]:
    """Hold a run, and give the plan that goes on with it. The models are those that its directory names.

    Args:
        path: the run's directory.
        step: the step to go on from, in a new run that has the steps up to it; None to go on with the run itself.
        model: another model than the run had, in all roles; only for a new run.
        prices: what that one costs.
        steps: another limit of steps, those before included.
        seconds: another limit of time, that before included.
        storage_mb: another limit of what it stores, that before included; the run then has no smaller share of the disk.

    Raises:
        UsageError: the run has no such step, is over, or another process works on it.
        RunNotFound: the path holds no run, or one that is damaged.
        StorageFailed: the disk is full or read-only.
    """
    directory = RunDirectory(path.resolve())
    if directory.info.imported is not None:
        raise UsageError(f"{directory.name} was imported: what carried it out is not here, so it cannot go on; begin a new run of its task")
    plan = plan_again(directory.info, directory.path.parent)
    limits = plan.run_limits
    limits = replace(limits, steps=steps or limits.steps, time=seconds or limits.time, storage_mb=storage_mb or limits.storage_mb)
    plan = replace(plan, limits=limits)
    if step is not None:
        if model is not None:
            plan = replace(plan, model_options={}, prices=prices)
        continued = _fork(directory, plan, step, model)
        with continued.lock():
            yield replace(plan, continues=continued)
        return
    if model is not None:
        raise UsageError(f"{directory.name} has its model; fork it with --step to go on with another")
    with directory.lock():
        info = directory.info.model_copy(update={"limits": asdict(plan.run_limits)})
        if storage_mb is not None:
            info = info.model_copy(update={"disk_share_mb": None})
            directory.discard_result("limit_storage")
        _check(directory, plan)
        if info != directory.info:
            directory.write_info(info)
        yield replace(plan, continues=directory)


def is_over(directory: RunDirectory, limits: RunLimits) -> bool:
    """Whether a run has come to an end that is graded: neither an interrupt's nor a failure's, nor at a limit that is now a higher one."""
    result = directory.result
    if result is None or (result.outcome.verdict == "ungraded" and directory.info.metric != UNGRADED):
        return False
    if directory.info.score_steps and not result.step_scores and directory.steps():
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


def _check(directory: RunDirectory, plan: RunPlan) -> None:
    """See that a run can go on.

    Raises:
        UsageError: it cannot.
    """
    _check_isolation(directory, plan)
    done = directory.steps()
    if done:
        Manifest.load(directory.manifest(len(done)))
    if not is_over(directory, plan.run_limits):
        return
    if done and "final_answer" in done[-1].details:
        last = len(done) - 1
        raise UsageError(f"{directory.name} has ended by its final answer; fork it from an earlier step with --step, from 0 to {last}")
    if limit := _limit_reached(directory, plan.run_limits):
        raise UsageError(f"{directory.name} has ended: {limit}; give it more with --steps or --time, or fork it with --step")
    reason = directory.result.outcome.reason if directory.result else None
    if directory.result and directory.result.outcome.ended == "limit_storage":
        raise UsageError(f"{directory.name} has ended: {reason}; make room and give it more with --storage, or fork it with --step")
    raise UsageError(f"{directory.name} has ended: {reason}; fork it with --step")


def _check_isolation(directory: RunDirectory, plan: RunPlan) -> None:
    """A run says what its scripts ran in; that must stay true."""
    had, found = directory.info.isolation, isolation.choose(plan.sandbox).isolation
    if found != had:
        raise UsageError(f"the scripts of {directory.name} ran in {had}, and this machine gives {found}; fork it with --step to go on here")


def _fork(directory: RunDirectory, plan: RunPlan, step: int, model: str | None) -> RunDirectory:
    steps = directory.steps()
    last = len(steps) - bool(steps and "final_answer" in steps[-1].details)
    if not 0 <= step <= last:
        raise UsageError(f"{directory.name} can be forked from the steps 0 to {last}, not from {step}")
    if not directory.manifest(step).exists():
        raise UsageError(f"{directory.name} was never started, so it has nothing to fork; go on with it without --step")
    Manifest.load(directory.manifest(step))
    info = directory.info
    models = {role: model or name for role, name in info.models.items()}
    # Its experience is the run's own copy, whatever the folder holds by now.
    child = run_info(replace(plan, experience=None), models, isolation.choose(plan.sandbox).isolation, info.data)
    same = {"description": info.description, "experience": info.experience}
    return directory.fork(child.model_copy(update={"parent": f"{directory.name}/{step}", **same}), step)
