"""Many runs in one process, through Inspect: its concurrency, its rate limits, its log."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from inspect_ai import eval_async
from inspect_ai.log import EvalLog
from inspect_ai.util._display import init_display_type

from mlagentbench import interrupts
from mlagentbench.engine.patience import Patience, use_patience
from mlagentbench.engine.prices import check_prices
from mlagentbench.engine.providers import check_model, make_models
from mlagentbench.engine.task import inspect_task
from mlagentbench.environment import Listener
from mlagentbench.errors import InfrastructureError
from mlagentbench.records import Result
from mlagentbench.run.capacity import carried
from mlagentbench.run.conduct import Person, RunPlan
from mlagentbench.run.slots import Slots

NO_MODEL = "none/none"
LEAVING = 5.0
"""Seconds that what still goes on has to end when all runs are over."""


class Watch(NamedTuple):
    """Who is told what while runs go on."""

    listen: Callable[[RunPlan, int], Listener]
    """Makes the listener of a run, by its plan and its number from 1."""
    done: Callable[[RunPlan, int, Result], None]
    stopping: Callable[[], None]
    """The first interrupt has come: runs end, and are graded as they stand."""
    person: Person | None = None
    """Puts an agent's question to the person who watches; None where nobody does."""


class Evaluation(NamedTuple):
    """What came of it."""

    logs: Sequence[Path]
    stopped: bool
    not_started: int = 0
    """Runs that an interrupt came before."""
    failures: Sequence[Exception] = ()
    """Why runs could not be carried out that have no result."""


def evaluate(
    plans: Sequence[RunPlan],
    watch: Watch,
    *,
    model: str | None,
    fast_model: str | None = None,
    editor_model: str | None = None,
    runs: int = 1,
    parallel: int | None = None,
    patience: Patience = Patience(),
) -> Evaluation:
    """Carry out plans, each `runs` times. An interrupt ends all runs and has them graded; a second one stops at once.

    Args:
        plans: what to do; their model has the same options.
        watch: who is told.
        model: the agent's model, by Inspect's name for it; None for an agent without one.
        fast_model: the one that reads long texts; by default the agent's.
        editor_model: the one that edits scripts; by default the agent's.
        runs: how often each plan is carried out.
        parallel: how many runs go on at once; None for what the machine carries.
        patience: how long a provider that fails is asked again.

    Raises:
        ModelUnavailable: a model cannot be used; nothing was run.
        UsageError: a plan cannot be carried out, or has a limit of cost and a model of which no price is known.
        InfrastructureError: Inspect failed as a whole.
        KeyboardInterrupt: the second interrupt.
    """
    roles = {role: name for role, name in (("fast", fast_model), ("editor", editor_model)) if name}
    main = model or NO_MODEL
    for name in {main, *roles.values()}:
        check_model(name, plans[0].model_options if name == main else {})
    for plan in plans:
        check_prices(plan.run_limits, {main, *roles.values()} - {NO_MODEL}, plan.prices)
    with use_patience(patience):
        return interrupts.run(_left_behind(_evaluate(plans, watch, main, roles, runs, parallel or carried(plans))))


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


async def _evaluate(plans: Sequence[RunPlan], watch: Watch, model: str, roles: dict[str, str], runs: int, parallel: int) -> Evaluation:
    init_display_type("none")
    logging.getLogger("inspect_ai").setLevel(logging.ERROR)
    stop, slots = asyncio.Event(), Slots(min(parallel, runs * len(plans)))
    results, failures = list[Result](), list[Exception]()

    def done(plan: RunPlan, number: int, result: Result) -> None:
        results.append(result)
        watch.done(plan, number, result)

    def first_interrupt() -> None:
        watch.stopping()
        slots.close()
        stop.set()

    async with contextlib.AsyncExitStack() as clients:
        main, others = await make_models(clients, model, roles, plans[0].model_options, parallel)
        clients.enter_context(interrupts.first(first_interrupt))
        logs: list[EvalLog] = await eval_async(
            [
                inspect_task(
                    plan,
                    runs=runs,
                    listen=watch.listen,
                    stop=stop,
                    done=done,
                    failed=failures.append,
                    slots=slots,
                    person=watch.person,
                )
                for plan in plans
            ],
            model=main,
            model_roles=dict(others),
            log_dir=str(plans[0].log_directory),
            log_format="eval",
            # Inspect counts the samples of each task apart; that there are not more in all is for the slots to see to.
            max_samples=parallel,
            max_tasks=len(plans),
            fail_on_error=False,
            ctl_server=False,
        )
    for log in logs:
        if log.status == "error" and log.error is not None:
            raise InfrastructureError(f"Inspect could not run {log.eval.task}: {' '.join(log.error.message.split())[:300]}")
    if failures and not results:
        raise failures[0]
    not_started = runs * len(plans) - len(results) - len(failures)
    return Evaluation([Path(log.location) for log in logs], stop.is_set(), not_started, failures)
