"""Grade the predicted classes of nodes by their accuracy."""

from __future__ import annotations

import polars as pl

from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Number, align, align_rows

NAME = "submission.csv"
CLASSES = 40
UNNAMED = "0"
"""Pandas' name of a column that was given none."""


def grade(context: GradingContext) -> Score:
    """Score the share of test nodes whose class is right, as the Open Graph Benchmark does (arXiv 2005.00687, section 4).

    Raises:
        InvalidSubmission: the file is not a table of the test's nodes or of as many rows, or holds other values than classes.
    """
    answers = pl.read_csv(context.private / "answers.csv")
    data = context.submission.read_bytes(NAME)
    column = Number(low=0, high=CLASSES - 1)
    header = data.split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip().strip('"')
    if header in ("pred", UNNAMED):
        found = align_rows(data, NAME, count=len(answers), columns={header: column})[header]
    else:
        found = align(data, NAME, ids=answers["node"], id_column="node", columns={"pred": column})["pred"]
    fractions = found != found.round()
    if fractions.any():
        raise InvalidSubmission(f"{NAME}: pred is {found[fractions][0]:g}; write a class, a whole number from 0 to {CLASSES - 1}")
    right = found == answers["label"].to_numpy()
    return Score(value=float(right.mean()), details={"nodes": len(answers), "right": int(right.sum())})
