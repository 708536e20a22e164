"""Score predicted digits by the share that is wrong."""

from __future__ import annotations

import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import OneOf, align

TABLE = "submission.csv"
DIGITS = OneOf(tuple("0123456789"))


def grade(context: GradingContext) -> Score:
    """Return the error rate.

    Raises:
        InvalidSubmission: the table lacks pictures, or holds a value that is no digit.
    """
    answers = pl.read_csv(context.private / "answers.csv", infer_schema=False)
    found = align(context.submission.read_bytes(TABLE), TABLE, ids=answers["id"], id_column="id", columns={"digit": DIGITS})
    wrong = found["digit"] != answers["digit"].to_numpy()
    return Score(value=float(wrong.mean()), details={"images": len(wrong), "wrong": int(wrong.sum())})
