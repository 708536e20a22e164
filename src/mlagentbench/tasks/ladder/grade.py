"""Grade every ladder by the error of the target, and report up to which step the submission's readings are right."""

from __future__ import annotations

import numpy as np
import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Kind, Number, align
from mlagentbench.tasks.ladder.world import MODULUS

ENOUGH = 0.95
"""Share of readings that must be right for a step to count as solved; one wrong number of a step makes about 5% of them wrong."""


def grade(context: GradingContext) -> Score:
    """Score the root mean squared error of the target; the details have the number of steps solved before the first unsolved one.

    Raises:
        InvalidSubmission: the file is not a table with one row for each row of the test, of a target and a reading after every step.
    """
    answers = pl.read_csv(context.private / "answers.csv")
    steps = [column for column in answers.columns if column.startswith("step_")]
    columns: dict[str, Kind] = {"target": Number(-1e6, 1e6), **{step: Number(-1e9, 1e9) for step in steps}}
    found = align(context.submission.read_bytes("submission.csv"), "submission.csv", ids=answers["id"], id_column="id", columns=columns)
    error = found["target"] - answers["target"].to_numpy()
    shares = [float((found[step] % MODULUS == answers[step].to_numpy()).mean()) for step in steps]
    holds = [share >= ENOUGH for share in shares]
    reached = holds.index(False) if False in holds else len(holds)
    return Score(
        value=float(np.sqrt(np.mean(error**2))),
        details={
            "rungs": len(steps),
            "rungs_reached": reached,
            "broke_at_rung": reached + 1 if reached < len(steps) else None,
            "share_right_after_step": [round(share, 4) for share in shares],
        },
    )
