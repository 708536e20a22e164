"""Grade the predicted class probabilities of film reviews by their accuracy."""

from __future__ import annotations

import numpy as np
import polars as pl

from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align

NAME = "submission.csv"
ROUNDING = 0.01
"""How far a row's two probabilities may be from 1 together, as half precision or two decimals may put them."""


def grade(context: GradingContext) -> Score:
    """Score the share of reviews whose more probable class is the true one; equal probabilities count as negative.

    Raises:
        InvalidSubmission: the file is not a table of the test's reviews, or its numbers are not probabilities.
    """
    answers = pl.read_csv(context.private / "answers.csv")
    probability = Number(low=0, high=1)
    found = align(
        context.submission.read_bytes(NAME),
        NAME,
        ids=answers["idx"],
        id_column="idx",
        columns={"negative": probability, "positive": probability},
    )
    missed = np.abs(found["negative"] + found["positive"] - 1)
    if missed.max() > ROUNDING:
        place = int(missed.argmax())
        negative, positive = found["negative"][place], found["positive"][place]
        raise InvalidSubmission(
            f"{NAME}: negative and positive are {negative:g} and {positive:g} in the row of {answers['idx'][place]}; "
            "write probabilities that are 1 together"
        )
    right = (found["positive"] > found["negative"]) == (answers["label"].to_numpy() == 1)
    return Score(value=float(right.mean()), details={"reviews": len(answers), "right": int(right.sum())})
