"""Score the strengths by their root mean squared error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Column, Number, Score, TableTask


def error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the root mean squared error of the strengths, in MPa."""
    errors = found["strength"] - answers["strength"].to_numpy()
    return Score(value=float(np.sqrt((errors**2).mean())), details={"largest_error": float(np.abs(errors).max())})


TABLE = TableTask("id", {"strength": Number(-1000, 1000)}, error)
grade = TABLE.grade
