"""Whole runs through Inspect, in this process, by a provider on loopback; and what they asked of it."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mlagentbench.engine.evaluate import evaluate
from mlagentbench.engine.models.retries import RetryPolicy
from mlagentbench.records import Result
from mlagentbench.run_spec import NO_MODEL, ModelSpec, RunLimits
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.run_once import AskPerson, RunHooks
from mlagentbench.task.catalogue import load_task
from tests import plans
from tests.engine.server import Request, Wire
from tests.plans import Plan, resumed
from tests.runner.lives import make_task

MODELS: dict[Wire, str] = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-opus-4-5"}
QUICK = RetryPolicy(seconds=300.0, request=120, pause=0.05, longest_pause=0.1, useless=3)
"""Pauses shortly, and gives up nothing because this machine stood still."""


class Ended(NamedTuple):
    """A run that has ended."""

    result: Result
    directory: RunDirectory

    @property
    def actions(self) -> list[str]:
        """What was done, in order."""
        return [step.action.name for step in self.directory.steps()]


def make_plan(folder: Path, agent: str, steps: int = 20, **options: Any) -> Plan:
    """A run of a small task, without a sandbox."""
    task, limits = load_task(make_task(folder / "guess")), RunLimits(steps=steps, time=300)
    return plans.make_plan(task, folder / "runs", agent=agent, agent_options=options, sandbox="none", limits=limits)


def carry_out(
    plan: Plan,
    model: str = MODELS["openai"],
    retry_policy: RetryPolicy = QUICK,
    fast_model: str | None = None,
    person: AskPerson | None = None,
) -> Ended:
    """Carry a plan out, whole.

    Raises:
        whatever kept it from being carried out.
    """
    results: list[Result] = []
    with warnings.catch_warnings():
        # Inspect leaves streams to the garbage collector, which is done with them before the test is.
        warnings.simplefilter("ignore", ResourceWarning)
        named = {"agent": model} | ({"fast": fast_model} if fast_model else {})
        models = {role: ModelSpec(name=name, options=plan.spec.model("agent").options) for role, name in named.items() if name != NO_MODEL}
        hooks = RunHooks(finished=lambda ready, number, result: results.append(result), ask_person=person)
        evaluate([asyncio.run(plan.but(models=models).ready())], hooks, retry_policy=retry_policy)
        gc.collect()
        gc.freeze()  # what a run imported stays; the next collection would look through all of it for most of a second
    (result,) = results
    return Ended(result, RunDirectory(plan.log_directory / result.run))


def carry_out_until(seconds: float, plan: Plan, prepare: Callable[[], None], asked: Callable[[Ended], bool], **how: Any) -> Ended:
    """Carry a plan out with a limit of time, and again with a longer one where the run had not asked by then what it is to ask.

    A busy machine lets a run stand still for seconds.

    Args:
        seconds: the first limit.
        plan: what is carried out, in a log directory of its own each time.
        prepare: called before each time.
        asked: whether the run came as far as it is to come before its time is up.
        **how: as for `carry_out`.
    """
    for time in (seconds, 4 * seconds, 16 * seconds):
        prepare()
        limits = replace(plan.spec.limits, time=time)
        ended = carry_out(plan.but(limits=limits, log_directory=plan.log_directory / f"{time:g} s"), **how)
        if asked(ended):
            break
    return ended


def carry_on(ended: Ended, step: int, model: str = MODELS["openai"]) -> Ended:
    """Fork a run from a step, and carry that out."""
    with resumed(ended.directory.path, step) as plan:
        return carry_out(plan.but(score_steps=False), model)


def said(request: Request) -> list[Any]:
    """The messages of a request, but for what marks the end of what is cached."""
    return [_unmarked(message) for message in request.body["messages"]]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(part) for key, part in value.items() if key != "cache_control"}
    return [_unmarked(part) for part in value] if isinstance(value, list) else value
