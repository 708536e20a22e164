"""Score the predictions by their root mean squared error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Column, Number, Score, TableTask


def error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the root mean squared error of the progression."""
    errors = found["progression"] - answers["progression"].to_numpy()
    return Score(value=float(np.sqrt(np.mean(errors**2))), details={"bias": float(errors.mean()), "rows": len(errors)})


# The bounds are far beyond any progression, yet small enough that the squares of many can be summed.
TABLE = TableTask("patient_id", {"progression": Number(-1e12, 1e12)}, error)
grade = TABLE.grade
