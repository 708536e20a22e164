"""Score the predictions by their root mean squared error."""

from __future__ import annotations

import numpy as np
import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align

PROGRESSION = Number(-1e12, 1e12)
"""Bounds far beyond any progression, yet small enough that the squares of many can be summed."""


def grade(context: GradingContext) -> Score:
    """Return the root mean squared error of the progression.

    Raises:
        InvalidSubmission: the submission is no table with one finite number for each patient of the test.
    """
    answers = pl.read_csv(context.private / "answers.csv")
    submission = context.submission.read_bytes("submission.csv")
    found = align(submission, "submission.csv", ids=answers["patient_id"], id_column="patient_id", columns={"progression": PROGRESSION})
    errors = found["progression"] - answers["progression"].to_numpy()
    return Score(value=float(np.sqrt(np.mean(errors**2))), details={"bias": float(errors.mean()), "rows": len(errors)})
