"""Grade the predicted class probabilities of film reviews by their accuracy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Column, InvalidSubmission, Number, Score, TableTask, row_score

ROUNDING = 0.01
"""How far a row's two probabilities may be from 1 together, as half precision or two decimals may put them."""


def accuracy(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the share of reviews whose more probable class is the true one; equal probabilities count as negative.

    Raises:
        InvalidSubmission: the probabilities of a review are not 1 together.
    """
    missed = np.abs(found["negative"] + found["positive"] - 1)
    if missed.max() > ROUNDING:
        place = int(missed.argmax())
        negative, positive = found["negative"][place], found["positive"][place]
        raise InvalidSubmission(
            f"{TABLE.file}: negative and positive are {negative:g} and {positive:g} in the row of {answers['idx'][place]}; "
            "write probabilities that are 1 together"
        )
    right = (found["positive"] > found["negative"]) == (answers["label"].to_numpy() == 1)
    return row_score(right, details={"reviews": len(answers), "right": int(right.sum())})


def certain(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the submission that gives each review's true class a probability of 1."""
    positive = pl.col("label").cast(pl.Float64)
    return answers.select("idx", negative=1 - positive, positive=positive)


TABLE = TableTask("idx", {"negative": Number(0, 1), "positive": Number(0, 1)}, accuracy, submitted=certain)
grade = TABLE.grade
