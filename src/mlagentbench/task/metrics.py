"""Metrics of numbers for a `TableTask`. They take the answers, and the submission's columns in the order of their rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.records import Score
from mlagentbench.task.sampling import row_score
from mlagentbench.task.tables import Column


def root_mean_squared_error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the root mean squared error; of several columns, the mean of theirs (MCRMSE), with each in the details."""
    errors = _errors(answers, found)
    by_column = {name: float(np.sqrt(np.mean(error**2))) for name, error in zip(found, errors.T, strict=True)}
    details = by_column if len(found) > 1 else {"bias": float(errors.mean())}
    return row_score(errors**2, lambda means: np.sqrt(means).mean(axis=-1), details={**details, "rows": len(answers)})


def mean_absolute_error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the mean absolute error over all columns, with the median in the details."""
    sizes = np.abs(_errors(answers, found))
    return row_score(sizes.mean(axis=1), details={"median_absolute_error": float(np.median(sizes)), "rows": len(answers)})


def _errors(answers: pl.DataFrame, found: Mapping[str, Column]) -> NDArray[np.float64]:
    """Return the errors of all columns: (rows, columns)."""
    return np.stack([column - answers[name].to_numpy() for name, column in found.items()], axis=1)
