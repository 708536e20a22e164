"""Carry out many runs in one process through Inspect, with its concurrency, its rate limits and its log."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from inspect_ai import eval_async
from inspect_ai.log import EvalLog

from mlagentbench.engine.compat import hide_display
from mlagentbench.engine.models.limiter import FOLDER, SharedLimiter, use_limiter
from mlagentbench.engine.models.providers import make_models
from mlagentbench.engine.models.retries import RetryPolicy, use_retry_policy
from mlagentbench.engine.task import inspect_task
from mlagentbench.errors import InfrastructureError, UsageError
from mlagentbench.records import Result
from mlagentbench.run_spec import ROLES
from mlagentbench.runner.capacity import runs_at_once
from mlagentbench.runner.preflight import ReadyRun
from mlagentbench.runner.run_once import RunHooks
from mlagentbench.runner.slots import Slots
from mlagentbench.util import interrupts

_evaluating = threading.Lock()
"""Held during an evaluation: Inspect carries out one at a time in a process."""


class Evaluation(NamedTuple):
    """The outcome of an evaluation."""

    logs: Sequence[Path]
    stopped: bool
    not_started: int = 0
    """The number of runs that were not started because of an interrupt."""
    failures: Sequence[Exception] = ()
    """The errors of the runs that could not be carried out and have no result."""


def evaluate(
    runs: Sequence[ReadyRun], hooks: RunHooks, *, times: int = 1, parallel: int | None = None, retry_policy: RetryPolicy = RetryPolicy()
) -> Evaluation:
    """Carry out runs, each `times` times. An interrupt ends all runs and grades them; a second one stops at once.

    Args:
        runs: the checked runs, in one log directory.
        hooks: the caller's callbacks. Its `slots` and `failed` are replaced here.
        times: how often each run is carried out, unless it has names: then once for each of them.
        parallel: how many runs go on at once; None for as many as the machine has capacity for.
        retry_policy: how long a failing provider is retried.

    Raises:
        ModelUnavailable: a model cannot be used; nothing was run.
        UsageError: no run could be carried out, for a reason that the user can mend.
        InfrastructureError: Inspect failed as a whole.
        KeyboardInterrupt: the second interrupt.
    """
    return interrupts.run(evaluate_async(runs, hooks, times=times, parallel=parallel, retry_policy=retry_policy))


async def evaluate_async(
    runs: Sequence[ReadyRun], hooks: RunHooks, *, times: int = 1, parallel: int | None = None, retry_policy: RetryPolicy = RetryPolicy()
) -> Evaluation:
    """Do what `evaluate` does, in the running event loop. An interrupt is left to that loop's owner.

    Raises:
        UsageError: another evaluation is in progress in this process, or no run could be carried out, for a reason that the user can mend.
        InfrastructureError: Inspect failed as a whole.
    """
    if not _evaluating.acquire(blocking=False):
        raise UsageError("another evaluation is in progress in this process; give all specs to one call, which does them in parallel")
    try:
        stated = {model: limit for run in runs for model, limit in run.spec.rate_limits.items()}
        limiter = SharedLimiter(runs[0].log_directory / FOLDER, stated)
        with use_retry_policy(retry_policy), contextlib.closing(limiter), use_limiter(limiter):
            return await _evaluate(runs, hooks, times, parallel or runs_at_once(runs))
    finally:
        _evaluating.release()


async def _evaluate(runs: Sequence[ReadyRun], hooks: RunHooks, times: int, parallel: int) -> Evaluation:
    hide_display()
    results, failures = list[Result](), list[Exception]()
    count = sum(len(run.names) or times for run in runs)

    def finished(ready: ReadyRun, number: int, result: Result) -> None:
        results.append(result)
        hooks.finished(ready, number, result)

    own = replace(hooks, finished=finished, failed=failures.append, slots=Slots(min(parallel, count)))

    def first_interrupt() -> None:
        hooks.stopping()
        own.slots.close()
        own.stop.set()

    async with contextlib.AsyncExitStack() as clients:
        models = await make_models(clients, [run.spec.model(role) for run in runs for role in ROLES], parallel)
        roles = [{role: models(run.spec.model(role)) for role in ROLES} for run in runs]
        clients.enter_context(interrupts.first(first_interrupt))
        logs: list[EvalLog] = await eval_async(
            [inspect_task(run, own, named, runs=len(run.names) or times) for run, named in zip(runs, roles, strict=True)],
            # Each task has its own; without one here, Inspect would look for one in the environment.
            model=roles[0]["agent"],
            log_dir=str(runs[0].log_directory),
            log_format="eval",
            # Inspect applies this limit to each task on its own; the slots limit the total.
            max_samples=parallel,
            max_tasks=len(runs),
            fail_on_error=False,
            ctl_server=False,
        )
    for log in logs:
        if log.status == "error" and log.error is not None:
            raise InfrastructureError(f"Inspect could not run {log.eval.task}: {' '.join(log.error.message.split())[:300]}")
    if failures and not results:
        raise failures[0]
    not_started = count - len(results) - len(failures)
    return Evaluation([Path(log.location) for log in logs], own.stop.is_set(), not_started, failures)
