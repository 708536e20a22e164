"""Grade house prices by their mean absolute error."""

from __future__ import annotations

import numpy as np
import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align

PRICE = Number(-1e12, 1e12)
"""The prices accepted: far beyond any real one, yet small enough that their sum stays finite."""


def grade(context: GradingContext) -> Score:
    """Score predicted prices by their mean absolute error, in dollars.

    Raises:
        InvalidSubmission: the file is not a table with one finite price for each house of the test.
    """
    answers = pl.read_csv(context.private / "answers.csv")
    submission = context.submission.read_bytes("submission.csv")
    found = align(submission, "submission.csv", ids=answers["Id"], id_column="Id", columns={"SalePrice": PRICE})
    errors = np.abs(found["SalePrice"] - answers["SalePrice"].to_numpy())
    return Score(value=float(errors.mean()), details={"median_absolute_error": float(np.median(errors)), "rows": len(errors)})
