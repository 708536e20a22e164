"""Score the predicted scores by MCRMSE: the root mean squared error of each column, averaged over the six columns."""

from __future__ import annotations

import numpy as np
import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align

SCORES = ("cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions")
SCORE = Number(-1e12, 1e12)
"""Bounds far beyond any score, yet small enough that the squares of many can be summed."""


def grade(context: GradingContext) -> Score:
    """Return the MCRMSE, with the error of each column in the details.

    Raises:
        InvalidSubmission: the submission is no table with six finite scores for each essay of the test.
    """
    answers = pl.read_csv(context.private / "answers.csv", schema_overrides={"text_id": pl.String})
    submission = context.submission.read_bytes("submission.csv")
    found = align(submission, "submission.csv", ids=answers["text_id"], id_column="text_id", columns=dict.fromkeys(SCORES, SCORE))
    errors = {name: float(np.sqrt(np.mean((found[name] - answers[name].to_numpy()) ** 2))) for name in SCORES}
    return Score(value=sum(errors.values()) / len(errors), details={**errors, "rows": len(answers)})
