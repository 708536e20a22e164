"""Grade finished runs again, from their snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mlagentbench.data.prepare import prepare
from mlagentbench.errors import MLAgentBenchError, UsageError
from mlagentbench.grading.cache import task_digest
from mlagentbench.grading.fork_server import ForkServer, fork_server
from mlagentbench.grading.score import Ending, Scoring, score_run
from mlagentbench.records import Result
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.provenance import RESULT, rewriting
from mlagentbench.runner.preflight import find_baseline, task_of
from mlagentbench.task.formats.mlgym import is_mlgym
from mlagentbench.util.machine import cores


class Regraded(NamedTuple):
    """A run's result before and after it was graded again."""

    directory: RunDirectory
    before: Result | None
    """None if the run's result cannot be read, or there is none."""
    after: Result | None
    """None if the run could not be graded."""
    reason: str = ""
    """Why the run could not be graded."""


async def regrade_all(
    directories: Sequence[RunDirectory],
    *,
    every_step: bool = False,
    again: bool = False,
    parallel: int | None = None,
    on_done: Callable[[Regraded], None] = lambda regraded: None,
) -> list[Regraded]:
    """Grade finished runs again, several at once, and write their results. A run that cannot be graded keeps its result.

    Args:
        directories: the runs; each must have a result.
        every_step: grade each step's submission, too.
        again: grade again what is in the cache of gradings.
        parallel: how many runs at once; None for one a core.
        on_done: called with each run when it is done.
    """
    slots = asyncio.Semaphore(parallel or cores())

    async def one(directory: RunDirectory, forks: ForkServer | None) -> Regraded:
        async with slots:
            found = await _one(directory, every_step, again, forks)
        on_done(found)
        return found

    async with fork_server() as forks:
        return list(await asyncio.gather(*(one(directory, forks) for directory in directories)))


async def _one(directory: RunDirectory, every_step: bool, again: bool, forks: ForkServer | None) -> Regraded:
    before = None
    try:
        before = directory.result
        return Regraded(directory, before, await regrade(directory, every_step=every_step, again=again, forks=forks))
    except MLAgentBenchError as error:
        return Regraded(directory, before, None, str(error))


async def regrade(directory: RunDirectory, *, every_step: bool = False, again: bool = False, forks: ForkServer | None = None) -> Result:
    """Grade a finished run again and write its result.

    How the agent ended stays the same, and so does the baseline, unless it is measured beside the submission or there was none. An imported
    run that this version's graders cannot grade keeps its result.

    Raises:
        UsageError: the run has no result, another process works on it, or its task or data is gone.
        StorageFailed: the result could not be written.
    """
    before = directory.result
    if before is None:
        raise UsageError(f"{directory.name} has no result yet; go on with it: mlab resume {directory.path}")
    info = directory.info
    if info.imported and info.imported.not_graded:
        return before
    spec = info.spec
    if spec.task_folder is not None and not (
        spec.task_folder.is_dir() or (spec.task_folder.parent / "task.toml").is_file() or is_mlgym(spec.task_folder)
    ):
        raise UsageError(f"its task {spec.task} is gone: there is no {spec.task_folder}; put its folder back there")
    task = task_of(spec)
    found = await asyncio.to_thread(prepare, task, spec.variant, key=info.data, digest=info.data_digest, mini_seed=spec.mini_seed)
    data = found.data
    baseline = before.baseline if before.baseline and before.baseline.source != "side_by_side" else None
    if before.baseline is None:
        baseline = await find_baseline(spec, task)
    scoring = Scoring(task, spec.variant, data.private, spec.sandbox, baseline, forks=forks)
    # The reason of a final answer came from the grading, which is done again.
    ending = Ending(before.outcome.ended, before.outcome.reason if before.outcome.ended != "final_answer" else None)
    with directory.lock(), rewriting(directory, RESULT, await asyncio.to_thread(task_digest, task)):
        after = await score_run(directory, scoring, ending, before.usage, steps_too=every_step, again=again)
        unchanged: dict[str, object] = {} if every_step or not before.step_scores else {"step_scores": before.step_scores}
        if directory.info.imported:
            # The imported log's totals are more than the sum of its steps.
            unchanged |= {"seconds": before.seconds, "final_answer": before.final_answer}
        if unchanged:
            after = after.model_copy(update=unchanged)
            await asyncio.to_thread(directory.write_result, after)
    return after
