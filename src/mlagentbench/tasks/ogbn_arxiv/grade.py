"""Grade the predicted classes of nodes by their accuracy."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Column, GradingContext, InvalidSubmission, Number, Score, TableTask, align_rows, row_score

CLASSES = 40
UNNAMED = "0"
"""Pandas' name of a column that was given none."""


def accuracy(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the share of nodes whose class is right, as the Open Graph Benchmark does (arXiv 2005.00687, section 4).

    Raises:
        InvalidSubmission: a prediction is no whole number.
    """
    (classes,) = found.values()
    fractions = classes != classes.round()
    if fractions.any():
        raise InvalidSubmission(f"{TABLE.file}: pred is {classes[fractions][0]:g}; write a class, a whole number from 0 to {CLASSES - 1}")
    right = classes == answers["label"].to_numpy()
    return row_score(right, details={"nodes": len(answers), "right": int(right.sum())})


TABLE = TableTask(
    "node", {"pred": Number(0, CLASSES - 1)}, accuracy, submitted=lambda answers: answers.select("node", pl.col("label").alias("pred"))
)


def grade(context: GradingContext) -> Score:
    """Score the classes of the test nodes, given by node, or in one column in the order of the test nodes.

    Raises:
        InvalidSubmission: the file is not a table of the test's nodes or of as many rows, or holds other values than classes.
    """
    data = context.submission.read_bytes(TABLE.file)
    header = data.split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip().strip('"')
    if header not in TABLE.columns and header != UNNAMED:
        return TABLE.grade(context)
    answers = TABLE.answers(context.private)
    return accuracy(answers, align_rows(data, TABLE.file, count=len(answers), columns={header: TABLE.columns["pred"]}))
