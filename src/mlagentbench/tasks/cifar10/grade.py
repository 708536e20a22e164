"""Score predicted probabilities of every class by their accuracy: the largest of them is the prediction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align

TABLE = "submission.csv"
CLASSES = 10
PROBABILITY = Number(0, 1 + 1e-6)
"""A little more than 1 is allowed, for the rounding of float32."""


def grade(context: GradingContext) -> Score:
    """Return the share of the test pictures whose class is right.

    Raises:
        InvalidSubmission: the table lacks pictures or classes, or holds a value that is no probability.
    """
    return accuracy(context, CLASSES)


def accuracy(context: GradingContext, classes: int) -> Score:
    """Return the share of rows whose largest probability, of equal ones the first, is that of the true class."""
    answers = pl.read_csv(context.private / "answers.csv", schema_overrides={"id": pl.String})
    columns = {str(number): PROBABILITY for number in range(classes)}
    found = align(context.submission.read_bytes(TABLE), TABLE, ids=answers["id"], id_column="id", columns=columns)
    right = _largest(list(found.values())) == answers["label"].to_numpy()
    return Score(value=float(right.mean()), details={"images": len(right), "right": int(right.sum())})


def _largest(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return the number of each row's largest column, of equal ones the first; column by column, which is faster than by rows."""
    best, place = columns[0], np.zeros(len(columns[0]), dtype=np.int64)
    for number, column in enumerate(columns[1:], start=1):
        place = np.where(column > best, number, place)
        best = np.maximum(best, column)
    return place
