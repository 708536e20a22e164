"""Score the predicted scores by MCRMSE: the root mean squared error of each column, averaged over the six columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Column, Number, Score, TableTask

SCORES = ("cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions")


def error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the MCRMSE, with the error of each column in the details."""
    errors = {name: float(np.sqrt(np.mean((found[name] - answers[name].to_numpy()) ** 2))) for name in SCORES}
    return Score(value=sum(errors.values()) / len(errors), details={**errors, "rows": len(answers)})


# The bounds are far beyond any score, yet small enough that the squares of many can be summed.
TABLE = TableTask("text_id", dict.fromkeys(SCORES, Number(-1e12, 1e12)), error)
grade = TABLE.grade
