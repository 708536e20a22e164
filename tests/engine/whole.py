"""Whole runs through Inspect, in this process, by a provider on loopback; and what they asked of it."""

from __future__ import annotations

import gc
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mlagentbench.engine.evaluate import Watch, evaluate
from mlagentbench.engine.patience import Patience
from mlagentbench.environment import RunLimits, Silent
from mlagentbench.records import Result
from mlagentbench.run.conduct import Person, RunPlan
from mlagentbench.run.resume import resume
from mlagentbench.store.run_directory import RunDirectory
from mlagentbench.tasks.catalogue import load_task
from tests.engine.server import Request, Wire
from tests.run.lives import make_task

MODELS: dict[Wire, str] = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-opus-4-5"}
QUICK = Patience(seconds=30.0, request=10, pause=0.05, longest_pause=0.1, spoiled=3)


class Ended(NamedTuple):
    """A run that has ended."""

    result: Result
    directory: RunDirectory

    @property
    def actions(self) -> list[str]:
        """What was done, in order."""
        return [step.action.name for step in self.directory.steps()]


def make_plan(folder: Path, agent: str, steps: int = 20, **options: Any) -> RunPlan:
    """A run of a small task, without a sandbox."""
    return RunPlan(
        task=load_task(make_task(folder / "guess")),
        agent=agent,
        agent_options=options,
        log_directory=folder / "runs",
        variant="mini",
        baseline="paper",
        sandbox="none",
        limits=RunLimits(steps=steps, time=300),
        score_steps=False,
    )


def carry_out(
    plan: RunPlan, model: str = MODELS["openai"], patience: Patience = QUICK, fast_model: str | None = None, person: Person | None = None
) -> Ended:
    """Carry a plan out, whole.

    Raises:
        whatever kept it from being carried out.
    """
    results: list[Result] = []
    with warnings.catch_warnings():
        # Inspect leaves streams to the garbage collector, which is done with them before the test is.
        warnings.simplefilter("ignore", ResourceWarning)
        watch = Watch(lambda plan, number: Silent(), lambda plan, number, result: results.append(result), lambda: None, person)
        evaluate([plan], watch, model=model, fast_model=fast_model, patience=patience)
        gc.collect()
    (result,) = results
    return Ended(result, RunDirectory(plan.log_directory / result.run))


def carry_on(ended: Ended, step: int, model: str = MODELS["openai"]) -> Ended:
    """Fork a run from a step, and carry that out."""
    with resume(ended.directory.path, step) as plan:
        return carry_out(replace(plan, score_steps=False), model)


def said(request: Request) -> list[Any]:
    """The messages of a request, but for what marks the end of what is cached."""
    return [_unmarked(message) for message in request.body["messages"]]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(part) for key, part in value.items() if key != "cache_control"}
    return [_unmarked(part) for part in value] if isinstance(value, list) else value
