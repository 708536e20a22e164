"""Grade the climbs on a table by the error of the price's logarithm, and read from it how many of the changes were made."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Column, GradingContext, Number, Score, TableTask, row_score
from mlagentbench.tasks.climb.grade import with_rung

RUNGS = {
    2: {1: 0.993, 2: 0.45},
    3: {1: 0.985, 2: 0.8, 3: 0.32},
    6: {1: 1.017, 2: 0.895, 3: 0.55, 4: 0.309, 5: 0.224, 6: 0.188},
}
"""By the number of faults, the largest error with which so many changes are in place."""


def error(answers: pl.DataFrame, found: Mapping[str, Column], rungs: int) -> Score:
    """Return the root mean squared error of the natural logarithm of the price, with the rung that it stands for."""
    errors = np.log(np.asarray(found["price"], dtype=float)) - np.log(answers["price"].to_numpy())
    return with_rung(row_score(errors**2, np.sqrt), RUNGS[rungs], rungs)


def table(rungs: int) -> TableTask:
    """Return the task of submitting a price for each stone, in dollars."""
    return TableTask("stone", {"price": Number(1, 1e9)}, lambda answers, found: error(answers, found, rungs))


def grade(context: GradingContext, *, rungs: int) -> Score:
    """Score a submission.

    Raises:
        InvalidSubmission: the file is not a table with one price of at least a dollar for each stone of the test.
    """
    return table(rungs).grade(context)
