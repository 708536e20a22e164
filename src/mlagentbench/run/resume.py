"""Going on with a run from its last step, or with a new one from any step of it.

The run's directory is all that is needed: whatever ended the process, what was published is whole.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from mlagentbench.environment import RunLimits
from mlagentbench.errors import UsageError
from mlagentbench.records import RunInfo
from mlagentbench.run.conduct import RunPlan, run_info
from mlagentbench.sandbox.base import BoxLimits
from mlagentbench.sandbox.isolation import Choice
from mlagentbench.store.run_directory import RunDirectory
from mlagentbench.tasks.catalogue import load_task


def plan_again(info: RunInfo, log_directory: Path) -> RunPlan:
    """The plan that a run was made by.

    Raises:
        TaskError: the task's folder is gone, or has changed so that it is none.
    """
    return RunPlan(
        task=load_task(Path(info.task_folder)),
        agent=info.agent,
        agent_options=info.agent_options,
        log_directory=log_directory,
        variant=info.variant,
        limits=RunLimits(**info.limits),  # type: ignore[arg-type]
        box_limits=BoxLimits(**info.script_limits) if info.script_limits else None,  # type: ignore[arg-type]
        sandbox=cast(Choice, info.sandbox),
        python=Path(info.python),
        gpus=info.gpus,
    )


def resume(path: Path, step: int | None = None) -> RunPlan:
    """A plan that goes on with a run.

    Args:
        path: the run's directory.
        step: the step to go on from, in a new run that has the steps up to it; None to go on with the run itself.

    Raises:
        UsageError: the run has no such step, or has ended by its final answer.
        RunNotFound: the path holds no run.
    """
    directory = RunDirectory(path.resolve())
    info = directory.info
    plan = plan_again(info, directory.path.parent)
    steps = directory.steps()
    answered = bool(steps) and "final_answer" in steps[-1].details
    last = len(steps) - answered
    if step is None:
        if answered:
            raise UsageError(f"{directory.name} has ended by its final answer; fork it from an earlier step with --step, from 0 to {last}")
        return replace(plan, continues=directory)
    if not 0 <= step <= last:
        raise UsageError(f"{directory.name} can be forked from the steps 0 to {last}, not from {step}")
    child = run_info(plan, info.models, info.isolation).model_copy(update={"parent": f"{directory.name}/{step}"})
    return replace(plan, continues=directory.fork(child, step))
