"""Grade the predictions by their accuracy."""

from __future__ import annotations

import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import OneOf, align


def grade(context: GradingContext) -> Score:
    """Score the share of passengers for whom the prediction is right.

    Raises:
        InvalidSubmission: the file is not a table with True or False for each passenger of the test.
    """
    answers = pl.read_csv(context.private / "answers.csv", infer_schema=False)
    submission = context.submission.read_bytes("submission.csv")
    found = align(
        submission,
        "submission.csv",
        ids=answers["PassengerId"],
        id_column="PassengerId",
        columns={"Transported": OneOf(("True", "False"))},
    )
    right = found["Transported"] == answers["Transported"].to_numpy()
    said = found["Transported"] == "True"
    return Score(value=float(right.mean()), details={"said_true": float(said.mean()), "rows": len(right)})
