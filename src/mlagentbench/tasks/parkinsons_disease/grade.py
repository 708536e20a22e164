"""Grade predicted ratings by SMAPE+1, the metric of the AMP-PD challenge.

This is the symmetric mean absolute percentage error after adding 1 to predictions and truth, so that a small error on a rating of 0 costs
little: the mean of 200 |prediction - truth| / (|prediction + 1| + |truth + 1|), where 0 / 0 is 0. It lies between 0 and 200.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align

RATING = Number(-1e12, 1e12)
"""The ratings accepted: far beyond any real one, yet small enough for the arithmetic."""


def grade(context: GradingContext) -> Score:
    """Score SMAPE+1 over all ratings, in percent; the details have that of each part.

    Raises:
        InvalidSubmission: the file is not a table with one finite rating for each `prediction_id` of the sample.
    """
    answers = pl.read_csv(context.private / "answers.csv")
    submission = context.submission.read_bytes("submission.csv")
    found = align(submission, "submission.csv", ids=answers["prediction_id"], id_column="prediction_id", columns={"rating": RATING})
    errors = smape_terms(answers["rating"].to_numpy(), found["rating"])
    parts = answers["prediction_id"].str.extract(r"_(updrs_[1-4])_plus_").to_numpy()
    by_part = {str(part): float(errors[parts == part].mean()) for part in np.unique(parts)}
    return Score(value=float(errors.mean()), details={**by_part, "rows": len(errors)})


def smape_terms(truth: NDArray[Any], prediction: NDArray[Any]) -> NDArray[Any]:
    """Compute each prediction's term of SMAPE+1, in percent; SMAPE+1 is their mean."""
    size = np.abs(truth + 1) + np.abs(prediction + 1)
    terms: NDArray[Any] = np.zeros(len(size))
    np.divide(np.abs(prediction - truth), size, out=terms, where=size > 0)
    return 200 * terms
