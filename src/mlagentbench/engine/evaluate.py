"""Many runs in one process, through Inspect: its concurrency, its rate limits, its log."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from inspect_ai import eval_async
from inspect_ai.log import EvalLog
from inspect_ai.util._display import init_display_type

from mlagentbench import interrupts
from mlagentbench.engine.patience import Patience, use_patience
from mlagentbench.engine.providers import make_models
from mlagentbench.engine.task import inspect_task
from mlagentbench.errors import InfrastructureError
from mlagentbench.records import Result
from mlagentbench.run.capacity import runs_at_once
from mlagentbench.run.conduct import RunHooks
from mlagentbench.run.preflight import ReadyRun
from mlagentbench.run.slots import Slots
from mlagentbench.run_spec import ROLES

LEAVING = 5.0
"""Seconds that what still goes on has to end when all runs are over."""


class Evaluation(NamedTuple):
    """What came of it."""

    logs: Sequence[Path]
    stopped: bool
    not_started: int = 0
    """Runs that an interrupt came before."""
    failures: Sequence[Exception] = ()
    """Why runs could not be carried out that have no result."""


def evaluate(
    runs: Sequence[ReadyRun], hooks: RunHooks, *, times: int = 1, parallel: int | None = None, patience: Patience = Patience()
) -> Evaluation:
    """Carry out runs, each some times. An interrupt ends all and has them graded; a second one stops at once.

    Args:
        runs: what to do, checked. All name the same models, and lie in one log directory.
        hooks: what the caller is told. How many runs go on at once, and when they stop, is decided here.
        times: how often each is carried out.
        parallel: how many go on at once; None for what the machine carries.
        patience: how long a provider that fails is asked again.

    Raises:
        ModelUnavailable: a model cannot be used; nothing was run.
        UsageError: a run cannot be carried out.
        InfrastructureError: Inspect failed as a whole.
        KeyboardInterrupt: the second interrupt.
    """
    with use_patience(patience):
        return interrupts.run(_left_behind(_evaluate(runs, hooks, times, parallel or runs_at_once(runs))))


async def _left_behind(evaluating: Coroutine[Any, Any, Evaluation]) -> Evaluation:
    """Evaluate, and leave agents behind that do not leave when they are told to: Python would wait for them for ever."""
    try:
        return await evaluating
    finally:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        stubborn = (await asyncio.wait(tasks, timeout=LEAVING))[1] if tasks else set()
        for task in stubborn:
            asyncio._unregister_task(task)
            # Never freed: Python would tell it so by one more exception, and wait for what it makes of that.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))


async def _evaluate(runs: Sequence[ReadyRun], hooks: RunHooks, times: int, parallel: int) -> Evaluation:
    init_display_type("none")
    logging.getLogger("inspect_ai").setLevel(logging.ERROR)
    results, failures = list[Result](), list[Exception]()
    spec = runs[0].spec

    def finished(ready: ReadyRun, number: int, result: Result) -> None:
        results.append(result)
        hooks.finished(ready, number, result)

    own = replace(hooks, finished=finished, failed=failures.append, slots=Slots(min(parallel, times * len(runs))))

    def first_interrupt() -> None:
        hooks.stopping()
        own.slots.close()
        own.stop.set()

    async with contextlib.AsyncExitStack() as clients:
        models = await make_models(clients, {role: spec.model(role) for role in ROLES}, parallel)
        clients.enter_context(interrupts.first(first_interrupt))
        logs: list[EvalLog] = await eval_async(
            [inspect_task(ready, own, runs=times) for ready in runs],
            model=models["agent"],
            model_roles={role: model for role, model in models.items() if role in spec.models and role != "agent"},
            log_dir=str(runs[0].log_directory),
            log_format="eval",
            # Inspect counts the samples of each task apart; that there are not more in all is for the slots to see to.
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
    not_started = times * len(runs) - len(results) - len(failures)
    return Evaluation([Path(log.location) for log in logs], own.stop.is_set(), not_started, failures)
