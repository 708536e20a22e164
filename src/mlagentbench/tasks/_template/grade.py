"""Score the strengths by their root mean squared error."""

from __future__ import annotations

import numpy as np
import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align


def grade(context: GradingContext) -> Score:
    """Return the root mean squared error of the strengths, in MPa.

    Raises:
        InvalidSubmission: the submission is no table with one finite strength for each batch of the test.
    """
    answers = pl.read_csv(context.private / "answers.csv")
    submission = context.submission.read_bytes("submission.csv")
    columns = {"strength": Number(-1000, 1000)}
    found = align(submission, "submission.csv", ids=answers["id"], id_column="id", columns=columns)
    errors = found["strength"] - answers["strength"].to_numpy()
    return Score(value=float(np.sqrt((errors**2).mean())), details={"largest_error": float(np.abs(errors).max())})
