"""How many runs a machine carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil

from mlagentbench import Prepared
from mlagentbench.runner.capacity import runs_at_once
from mlagentbench.runner.preflight import ReadyRun, make_spec
from mlagentbench.sandbox.plain import PlainSandbox
from mlagentbench.task.catalogue import find_task
from mlagentbench.task.spec import Limits
from mlagentbench.util.machine import cores, free_memory_mb


def run(script_mb: int, grading_mb: int, **fields: Any) -> ReadyRun:
    task = find_task("vectorization")
    task = task._replace(spec=task.spec.model_copy(update={"limits": Limits(memory_mb=script_mb, grading_memory_mb=grading_mb)}))
    return ReadyRun(make_spec(task, fields), Path("runs"), task, PlainSandbox(), Prepared(Path("public"), Path("private")), None)


ALL_MB = psutil.virtual_memory().total >> 20
"""The machine's memory: what is free of it changes while others work."""


def test_no_more_runs_than_cores() -> None:
    assert runs_at_once([run(1, 1)]) == max(1, min(cores(), free_memory_mb() - 1024))


def test_all_runs_together_fit_into_the_memory_whatever_they_take() -> None:
    half = ALL_MB // 2
    assert runs_at_once([run(half, 1)]) == 1
    assert runs_at_once([run(1, half)]) == 1, "grading counts too"
    assert runs_at_once([run(1, 1), run(half, 1)]) == 1, "the hungriest of several tasks counts"


def test_one_run_goes_on_even_if_its_limits_are_more_than_the_machine() -> None:
    assert runs_at_once([run(1 << 30, 1)]) == 1


def test_what_a_user_sets_counts_and_not_the_tasks_own_limit() -> None:
    assert runs_at_once([run(1 << 30, 1, script_limits={"memory_mb": 1})]) == max(1, min(cores(), free_memory_mb() - 1024))
