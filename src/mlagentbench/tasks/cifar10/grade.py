"""Accuracy by the largest of the probabilities that are given for every class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.tasks.tables import Number, align

TABLE = "submission.csv"
CLASSES = 10
PROBABILITY = Number(0, 1 + 1e-6)
"""With room for what float32 rounds."""


def grade(context: GradingContext) -> Score:
    """The share of the test pictures whose class is right.

    Raises:
        InvalidSubmission: the table lacks pictures or classes, or holds what is no probability.
    """
    return accuracy(context, CLASSES)


def accuracy(context: GradingContext, classes: int) -> Score:
    """The share of rows whose largest probability, of equal ones the first, is that of the true class."""
    assert context.private is not None
    answers = pl.read_csv(context.private / "answers.csv", schema_overrides={"id": pl.String})
    columns = {str(number): PROBABILITY for number in range(classes)}
    found = align(context.submission.read_bytes(TABLE), TABLE, ids=answers["id"], id_column="id", columns=columns)
    right = _largest(list(found.values())) == answers["label"].to_numpy()
    return Score(value=float(right.mean()), details={"images": len(right), "right": int(right.sum())})


def _largest(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    """The number of the column that is largest in each row, of equal ones the first; column by column, which is faster than by rows."""
    best, place = columns[0], np.zeros(len(columns[0]), dtype=np.int64)
    for number, column in enumerate(columns[1:], start=1):
        place = np.where(column > best, number, place)
        best = np.maximum(best, column)
    return place
