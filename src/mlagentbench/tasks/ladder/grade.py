"""Grade every ladder by the error of the target, and report up to which step the submission's readings are right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench import Column, GradingContext, Number, Score, TableTask, row_score
from mlagentbench.tasks.ladder.world import MODULUS

ENOUGH = 0.95
"""Share of readings that must be right for a step to count as solved; one wrong number of a step makes about 5% of them wrong."""


def error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the root mean squared error of the target; the details have the number of steps solved before the first unsolved one."""
    steps = [name for name in found if name != "target"]
    difference = found["target"] - answers["target"].to_numpy()
    shares = [float((found[step] % MODULUS == answers[step].to_numpy()).mean()) for step in steps]
    holds = [share >= ENOUGH for share in shares]
    reached = holds.index(False) if False in holds else len(holds)
    score = row_score(
        difference**2,
        np.sqrt,
        details={
            "rungs": len(steps),
            "rungs_reached": reached,
            "broke_at_rung": reached + 1 if reached < len(steps) else None,
            "share_right_after_step": [round(share, 4) for share in shares],
        },
    )
    return score.model_copy(update={"rung": reached, "note": f"rung {reached} of {len(steps)}"})


def table(private: Path) -> TableTask:
    """Return the task of submitting a target and a reading after each step, of which there are as many as in the answers."""
    steps = [name for name in pl.read_csv(private / "answers.csv", n_rows=0).columns if name.startswith("step_")]
    return TableTask("id", {"target": Number(-1e6, 1e6), **dict.fromkeys(steps, Number(-1e9, 1e9))}, error)


def grade(context: GradingContext) -> Score:
    """Score a submission.

    Raises:
        InvalidSubmission: the file is not a table with one row for each row of the test, of a target and a reading after every step.
    """
    return table(context.private).grade(context)
