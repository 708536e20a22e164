"""Submissions and scripts by which every climb proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared
from mlagentbench.tasks.climb.changes import CHANGES, changed
from mlagentbench.tasks.climb.grade import table

TABLE = table(len(CHANGES))
oracle, naive = TABLE.oracle, TABLE.naive


def solution(*, rungs: int) -> Files:
    """Return the starter with all changes."""
    return changed(tuple(CHANGES)[-rungs:])


def ineffective(*, rungs: int) -> Files:
    """Return the starter with all changes but the first that it needs."""
    return changed(tuple(CHANGES)[1 - rungs :])


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    return {**TABLE.invalid(data), "ten": TABLE.refused(data, "'10'", digit=pl.col("digit").cast(pl.Int64) + 1)}
