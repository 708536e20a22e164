"""Grade every climb by the share of wrong digits, and read from it how many of the changes were made."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Column, GradingContext, OneOf, Score, TableTask, row_score

RUNGS = {4: {1: 0.85, 2: 0.42, 3: 0.14, 4: 0.075}, 5: {3: 0.42, 4: 0.14, 5: 0.075}}
"""By the number of faults, the largest error rate with which so many changes are in place. Of five, the first two are told only with the
third: with wrong labels, whole groups of like pictures can be right by luck, which looks like two changes."""


def error_rate(answers: pl.DataFrame, found: Mapping[str, Column], rungs: int) -> Score:
    """Return the share of wrong digits, with the rung that it stands for."""
    return with_rung(row_score(found["digit"] != answers["digit"].to_numpy()), RUNGS[rungs], rungs)


def with_rung(score: Score, bounds: Mapping[int, float], rungs: int) -> Score:
    """Return a score, less of which is better, with the last rung whose bound it keeps to, of so many."""
    reached = max((rung for rung, most in bounds.items() if score.value <= most), default=0)
    return score.model_copy(update={"rung": reached, "note": f"rung {reached} of {rungs}"})


def table(rungs: int) -> TableTask:
    """Return the task of submitting a digit for each picture."""
    return TableTask("id", {"digit": OneOf(tuple("0123456789"))}, lambda answers, found: error_rate(answers, found, rungs))


def grade(context: GradingContext, *, rungs: int) -> Score:
    """Score a submission.

    Raises:
        InvalidSubmission: the file is not a table with one digit for each picture of the test.
    """
    return table(rungs).grade(context)
