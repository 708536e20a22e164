"""Metrics of numbers for a `TableTask`. They take the answers, and the submission's columns in the order of their rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench.records import Score
from mlagentbench.task.tables import Column


def root_mean_squared_error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the root mean squared error; of several columns, the mean of theirs (MCRMSE), with each in the details."""
    errors = _errors(answers, found)
    by_column = {name: float(np.sqrt(np.mean(error**2))) for name, error in errors.items()}
    details = by_column if len(errors) > 1 else {"bias": float(next(iter(errors.values())).mean())}
    return Score(value=sum(by_column.values()) / len(by_column), details={**details, "rows": len(answers)})


def mean_absolute_error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the mean absolute error over all columns, with the median in the details."""
    sizes = np.abs(np.concatenate(list(_errors(answers, found).values())))
    return Score(value=float(sizes.mean()), details={"median_absolute_error": float(np.median(sizes)), "rows": len(answers)})


def _errors(answers: pl.DataFrame, found: Mapping[str, Column]) -> dict[str, Column]:
    return {name: column - answers[name].to_numpy() for name, column in found.items()}
