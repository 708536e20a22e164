"""Score a submission by the rows of a test set, and find out how far the score is from what other rows would give.

    return row_score(found["label"] == labels)                  # accuracy: a mean of rows
    return row_score(errors**2, np.sqrt)                        # root mean squared error: a function of a mean
    return row_score(np.stack([hits, lengths], axis=1), lambda means: means[..., 0] / means[..., 1])

The standard error of a mean is the rows' standard deviation over the root of their number. Any other score, and any difference of two, has
that of a bootstrap over rows (Efron and Tibshirani 1993, chapter 6), which draws the same rows for every submission. Two submissions are
wrong on the same hard rows, so the error of their difference is mostly much smaller than that of either.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import JsonValue

from mlagentbench.records import LARGEST, Score
from mlagentbench.task.seeds import SEED

RESAMPLES = 200
"""How often rows are drawn: enough for a standard error (Efron and Tibshirani 1993, section 6.4), which is then within 5% of its limit."""
MOST_UNITS = 2000
"""Of more rows than this, random groups of equal size are drawn instead, which bounds the time and gives the same error."""
Means = NDArray[np.float64]


def row_score(rows: ArrayLike, of_means: Callable[[Means], Any] | None = None, *, details: Mapping[str, JsonValue] | None = None) -> Score:
    """Return a score that is the mean of a number for each row of the test set, or a function of such means, with its standard error.

    Args:
        rows: an array of shape (rows,), or (rows, terms) where the score takes several means. Rows must be independent: where some belong
            together, such as a patient's visits, give their sums as one row.
        of_means: turns means of shape () or (terms,) into the score, and means of shape (samples,) or (samples, terms) into as many scores.
            None where the score is the mean itself.
        details: the details of the score.
    """
    terms = np.asarray(rows, dtype=np.float64)
    mean = of_means or (lambda means: means)
    score = Score(value=float(mean(terms.mean(axis=0))), details=details or {})
    if len(terms) < 2:
        return score
    units, sizes = _units(terms)
    drawn = _draws(len(units))
    with np.errstate(all="ignore"):  # a sample may lack what the score divides by; it then has no error
        means = (drawn @ units) / (drawn @ sizes).reshape(-1, *[1] * (terms.ndim - 1))
        resampled = np.asarray(mean(means), dtype=np.float64)
        error = resampled.std(ddof=1) if of_means else terms.std(ddof=1) / math.sqrt(len(terms))
    return _with_error(score, resampled, float(error))


def resample(score: Score, rows: int, score_of: Callable[[NDArray[np.int64]], float]) -> Score:
    """Return a score with its standard error, for a metric that only gives the score of whole tables.

    Args:
        score: the score of all rows.
        rows: how many rows the test set has.
        score_of: gives the score of the rows with these numbers, some of which repeat; it is called `RESAMPLES` times.
    """
    drawn = np.random.default_rng(SEED).integers(rows, size=(RESAMPLES, rows))
    resampled = np.array([score_of(numbers) for numbers in drawn])
    return _with_error(score, resampled, float(resampled.std(ddof=1)))


def _with_error(score: Score, resampled: NDArray[np.float64], error: float) -> Score:
    if not (np.abs(resampled) <= LARGEST).all():  # it is false for NaN, too
        return score
    return score.model_copy(update={"standard_error": error, "resampled": tuple(resampled.tolist())})


def _units(terms: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of the terms over what is drawn, rows or random groups of rows, and how many rows each holds."""
    count = len(terms)
    if count <= MOST_UNITS:
        return terms, np.ones(count)
    group = np.random.default_rng(SEED).permutation(count) % MOST_UNITS
    columns = terms.reshape(count, -1).T
    sums: NDArray[np.float64] = np.stack([np.bincount(group, weights=column, minlength=MOST_UNITS) for column in columns], axis=1)
    return sums.reshape(MOST_UNITS, *terms.shape[1:]), np.bincount(group, minlength=MOST_UNITS).astype(np.float64)


@functools.lru_cache(maxsize=2)
def _draws(units: int) -> NDArray[np.float64]:
    """Return how often each unit is drawn in each sample: (samples, units). The same for every submission, so that they can be paired."""
    drawn = np.random.default_rng(SEED).integers(units, size=(RESAMPLES, units))
    places = drawn + units * np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=RESAMPLES * units).reshape(RESAMPLES, units).astype(np.float64)
