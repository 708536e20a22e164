"""Grade predicted ratings by SMAPE+1, the metric of the AMP-PD challenge.

This is the symmetric mean absolute percentage error after adding 1 to predictions and truth, so that a small error on a rating of 0 costs
little: the mean of 200 |prediction - truth| / (|prediction + 1| + |truth + 1|), where 0 / 0 is 0. It lies between 0 and 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench import Column, Number, Score, TableTask, row_score


def error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return SMAPE+1 over all ratings, in percent, with that of each part in the details."""
    errors = smape_terms(answers["rating"].to_numpy(), found["rating"])
    parts = answers["prediction_id"].str.extract(r"_(updrs_[1-4])_plus_").to_numpy()
    by_part = {str(part): float(errors[parts == part].mean()) for part in np.unique(parts)}
    # A patient's ratings are errors of one kind, so the patients are the rows.
    patients = answers["prediction_id"].str.extract(r"^([^_]*)_").rank("dense").to_numpy().astype(np.int64) - 1
    sums = np.stack([np.bincount(patients, weights=errors), np.bincount(patients)], axis=1)
    return row_score(sums, lambda means: means[..., 0] / means[..., 1], details={**by_part, "rows": len(errors)})


def smape_terms(truth: NDArray[Any], prediction: NDArray[Any]) -> NDArray[Any]:
    """Compute each prediction's term of SMAPE+1, in percent; SMAPE+1 is their mean."""
    size = np.abs(truth + 1) + np.abs(prediction + 1)
    terms: NDArray[Any] = np.zeros(len(size))
    np.divide(np.abs(prediction - truth), size, out=terms, where=size > 0)
    return 200 * terms


# The bounds are far beyond any rating, yet small enough for the arithmetic.
TABLE = TableTask("prediction_id", {"rating": Number(-1e12, 1e12)}, error)
grade = TABLE.grade
