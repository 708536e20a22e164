"""Score predicted digits by the share that is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Column, OneOf, Score, TableTask, row_score


def error_rate(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the share of pictures whose digit is wrong."""
    wrong = found["digit"] != answers["digit"].to_numpy()
    return row_score(wrong, details={"images": len(wrong), "wrong": int(wrong.sum())})


TABLE = TableTask("id", {"digit": OneOf(tuple("0123456789"))}, error_rate)
grade = TABLE.grade
