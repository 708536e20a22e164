"""How often the untouched starter of a task is a success by another seed alone, which it must be in less than one of twenty runs.

    python benchmarks/false_success.py                 20 seeds of every starter whose score depends on the seed; an hour on two cores
    python benchmarks/false_success.py clrs --runs 5   of some tasks
    python benchmarks/false_success.py --quick         two seeds of climb-4

The baseline is the mean over the seeds that a run is compared with, and each further seed is judged as a run's last submission is: by the
paper's rule of more than 10%, and by the noise-calibrated rule, which a gain within chance does not meet.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from typing import NamedTuple

from mlagentbench.data.prepare import prepared
from mlagentbench.grading.baseline import ScriptSettings, measure, run_starter
from mlagentbench.task.catalogue import Task, find_task, find_tasks
from mlagentbench.task.success import clears_noise, gain_error, is_success
from mlagentbench.util.machine import ONE_THREAD

SETTINGS = ScriptSettings(environment=ONE_THREAD)
"""As many starters as cores go on at once, so each has one."""


class Found(NamedTuple):
    """What the further seeds of a starter came to."""

    baseline: float
    spread: float
    gains: list[float]
    by_paper: int
    by_noise: int


async def with_other_seeds(task: Task, runs: int, at_once: asyncio.Semaphore) -> Found | None:
    """Run a starter with seeds that its baseline does not have; None where the seed makes no difference."""
    baseline = (await measure(task, "mini", settings=SETTINGS)).baseline
    if baseline.source != "measured" or len(set(baseline.values)) == 1:
        return None
    data, metric = await asyncio.to_thread(prepared, task, "mini"), task.spec.metric

    async def one(seed: int) -> tuple[float, bool, bool]:
        async with at_once:
            score = (await run_starter(task, "mini", data, settings=SETTINGS, seed=seed)).score
        assert score is not None, f"the starter of {task.id} leaves no score with the seed {seed}"
        clear = clears_noise(metric, score.value, baseline, gain_error(score, baseline))
        return metric.gain(score.value, baseline.value) / baseline.value, is_success(metric, score.value, baseline.value), clear is True

    seeds = range(1000, 1000 + runs)
    gains, by_paper, by_noise = zip(*await asyncio.gather(*map(one, seeds)), strict=True)
    return Found(baseline.value, statistics.stdev(baseline.values) / baseline.value, list(gains), sum(by_paper), sum(by_noise))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks; all whose starter runs without these")
    parser.add_argument("--runs", type=int, default=20, help="further seeds of each (default: 20)")
    parser.add_argument("--quick", action="store_true", help="two seeds of climb-4")
    given = parser.parse_args()
    tasks = [find_task(name) for name in given.tasks or (["climb-4"] if given.quick else find_tasks())]
    at_once = asyncio.Semaphore(os.cpu_count() or 1)
    print("| task | baseline | its seeds | largest gain | success by 10% | and beyond noise |\n|---|---|---|---|---|---|")
    for task in tasks:
        # A timed task is compared with the starter in the same minute.
        if task.spec.starter.state != "runs" or task.spec.metric.unit == "s":
            continue
        found = await with_other_seeds(task, 2 if given.quick else given.runs, at_once)
        if found is not None:
            of = len(found.gains)
            print(
                f"| {task.id} | {found.baseline:.4g} | {found.spread:.1%} | {max(found.gains):+.1%} | {found.by_paper} of {of} "
                f"| {found.by_noise} of {of} |",
                flush=True,
            )


if __name__ == "__main__":
    asyncio.run(main())
