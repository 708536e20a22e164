"""Read how far an experiment is: its matrix with outcomes, what it has used, and when it will be done."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from mlagentbench.errors import RunNotFound
from mlagentbench.experiments.matrix import Matrix, MatrixCell
from mlagentbench.experiments.state import ExperimentState
from mlagentbench.records import Usage

RunStage = Literal["done", "running", "failed", "waiting"]
"""How far a run is. `failed` is one that ended as `infrastructure` or `cancelled`, and goes on when it is tried again."""


class RunState(NamedTuple):
    """How far a run is."""

    name: str
    stage: RunStage
    outcome: str | None
    """Its verdict if it is done, how it ended if it failed; None before."""
    steps: int
    seconds: float
    """Since it began, or of the whole run."""
    usage: Usage


class CellState(NamedTuple):
    """How far the runs of a cell are."""

    cell: MatrixCell
    runs: tuple[RunState, ...]

    def count(self, stage: RunStage) -> int:
        """Return how many of its runs are that far."""
        return sum(run.stage == stage for run in self.runs)

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many runs came out in each way."""
        return Counter(run.outcome for run in self.runs if run.outcome is not None)

    @property
    def usage(self) -> Usage:
        """What its runs have used so far."""
        return Usage.total(run.usage for run in self.runs)


class MatrixState(NamedTuple):
    """How far an experiment is."""

    name: str
    cells: tuple[CellState, ...]
    driven: bool
    """Whether a process drives it now."""
    over_budget: str | None
    """Which part of its budget is used up."""
    seconds_left: float | None
    """Until all runs are done, if as many as now go on at once; None if no run is done yet, or none goes on."""

    def count(self, stage: RunStage) -> int:
        """Return how many runs are that far."""
        return sum(cell.count(stage) for cell in self.cells)

    @property
    def usage(self) -> Usage:
        """What all runs have used so far."""
        return Usage.total(cell.usage for cell in self.cells)

    def as_json(self) -> dict[str, Any]:
        """Return it as `mlab experiment status --json` prints it."""
        stages: tuple[RunStage, ...] = ("done", "running", "failed", "waiting")
        return {
            "experiment": self.name,
            "runs": sum(len(cell.runs) for cell in self.cells),
            **{stage: self.count(stage) for stage in stages},
            "driven": self.driven,
            "over_budget": self.over_budget,
            "seconds_left": self.seconds_left,
            "tokens": self.usage.tokens,
            "cost": self.usage.cost,
            "cells": [
                {
                    "group": state.cell.group,
                    "task": state.cell.task,
                    "agent": state.cell.agent,
                    "model": state.cell.model,
                    **{stage: state.count(stage) for stage in stages},
                    "outcomes": dict(sorted(state.outcomes.items())),
                    "tokens": state.usage.tokens,
                    "cost": state.usage.cost,
                    "runs": [
                        {"run": run.name, "stage": run.stage, "outcome": run.outcome, "steps": run.steps, "seconds": run.seconds}
                        for run in state.runs
                    ],
                }
                for state in self.cells
            ],
        }


def read_status(state: ExperimentState, matrix: Matrix) -> MatrixState:
    """Return how far an experiment is, by its runs' directories."""
    cells = tuple(CellState(cell, tuple(_run(state, name) for name in cell.names)) for cell in matrix.cells)
    return MatrixState(matrix.name, cells, state.driven, state.over_budget(matrix), _seconds_left(cells))


def _run(state: ExperimentState, name: str) -> RunState:
    directory, result = state.run(name), state.result(name)
    held = directory.held
    if result is not None and not held:
        done = state.committed(name)
        outcome = result.outcome.verdict if done else result.outcome.ended
        return RunState(name, "done" if done else "failed", outcome, result.steps, result.seconds, result.total_usage)
    try:
        began = directory.info.started if held else 0.0
        steps = len(directory.step_numbers())
    except (OSError, RunNotFound):
        return RunState(name, "waiting", None, 0, 0.0, Usage())
    return RunState(name, "running" if held else "waiting", None, steps, time.time() - began if held else 0.0, state.usage(name))


def _seconds_left(cells: Sequence[CellState]) -> float | None:
    """Return the seconds until all runs are done: what they are expected to take, shared among as many as go on now."""
    done = {state.cell.id: [run.seconds for run in state.runs if run.stage == "done"] for state in cells}
    all_done = [seconds for one in done.values() for seconds in one]
    running = sum(state.count("running") for state in cells)
    left = 0.0
    for state in cells:
        expected = statistics.fmean(done[state.cell.id] or all_done or [0.0])
        left += sum(max(0.0, expected - run.seconds * (run.stage == "running")) for run in state.runs if run.stage != "done")
    if not any(run.stage != "done" for state in cells for run in state.runs):
        return 0.0
    return left / running if running and all_done else None
