"""Grade the predictions by their accuracy."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Column, OneOf, Score, TableTask, row_score


def accuracy(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the share of passengers for whom the prediction is right."""
    right = found["Transported"] == answers["Transported"].to_numpy()
    said = found["Transported"] == "True"
    return row_score(right, details={"said_true": float(said.mean()), "rows": len(right)})


TABLE = TableTask("PassengerId", {"Transported": OneOf(("True", "False"))}, accuracy)
grade = TABLE.grade
