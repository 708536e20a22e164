"""How many runs a machine carries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlagentbench.run.capacity import carried, cores, free_memory_mb
from mlagentbench.run.conduct import RunPlan
from mlagentbench.sandbox.base import BoxLimits
from mlagentbench.tasks.catalogue import find_task
from mlagentbench.tasks.spec import Limits


def plan(script_mb: int, grading_mb: int) -> RunPlan:
    task = find_task("vectorization")
    task = task._replace(spec=task.spec.model_copy(update={"limits": Limits(memory_mb=script_mb, grading_memory_mb=grading_mb)}))
    return RunPlan(task=task, agent="research", log_directory=Path("runs"))


def test_no_more_runs_than_cores() -> None:
    assert carried([plan(1, 1)]) == min(cores(), free_memory_mb() - 1024)


def test_all_runs_together_fit_into_the_memory_whatever_they_take() -> None:
    half = free_memory_mb() // 2
    assert carried([plan(half, 1)]) == 1
    assert carried([plan(1, half)]) == 1, "grading counts too"
    assert carried([plan(1, 1), plan(half, 1)]) == 1, "the hungriest of several tasks counts"


def test_one_run_goes_on_even_if_its_limits_are_more_than_the_machine() -> None:
    assert carried([plan(1 << 30, 1)]) == 1


def test_what_a_user_sets_counts_and_not_the_tasks_own_limit() -> None:
    assert carried([replace(plan(1 << 30, 1), box_limits=BoxLimits(memory_mb=1))]) == min(cores(), free_memory_mb() - 1024)
