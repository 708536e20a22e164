"""Summarise the improvements of an agent's runs over tasks, so that neither few runs nor one diverged run mislead. Pure functions.

The groups of each function are the values of one task's runs, and each task counts once. Medians, interquartile means, performance profiles
and the probability of improvement are those of Agarwal et al. 2021 (arXiv 2108.13264, sections 4.1 to 4.3), and equal rliable's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mlagentbench.results.statistics import LEVEL, RESAMPLES, SEED, Interval

FEWEST = 3
"""Values below which nothing can be said of how a mean varies."""
FEWEST_TO_RESAMPLE = 5
"""Runs of each task from which on a mean's interval is studentised by resampling; below, resamples too often have no spread at all."""

Groups = Sequence[Sequence[float]]


def average(groups: Groups, *, least: float = -math.inf, level: float = LEVEL) -> Interval | None:
    """Return the mean over tasks of means over runs; None for no tasks. For fewer than `FEWEST` values, its interval has no width.

    The interval says how the mean would vary with other runs of these same tasks. It is the studentised bootstrap over each task's runs
    (Efron and Tibshirani 1993, section 12.5), and Student's with Satterthwaite's degrees of freedom where a task has few runs. Where most
    tasks have a single run, whose spread is unknown, it is Student's over tasks, which is wider.

    Args:
        groups: the values of each task's runs; no group is empty.
        least: the smallest value that there can be, such as 0 for an amount of time; the interval does not go below.
        level: the interval's confidence level.
    """
    arrays = [np.asarray(values, dtype=float) for values in groups]
    if not arrays:
        return None
    value = float(np.mean([array.mean() for array in arrays]))
    if sum(len(array) == 1 for array in arrays) > len(arrays) / 2:
        arrays = [np.array([array.mean() for array in arrays])]
    else:
        arrays = [array for array in arrays if len(array) > 1]  # the spread of the others is taken to be that of the rest
    if sum(map(len, arrays)) < FEWEST:
        return Interval(value, value, value)
    error, freedom = _standard_error(arrays, len(arrays))
    if error == 0:
        return Interval(value, value, value)
    low, high = _studentised(arrays, level) if min(map(len, arrays)) >= FEWEST_TO_RESAMPLE else _students(freedom, level)
    return Interval(value, max(least, value - high * error), value - low * error)


def mean(values: Sequence[float], *, least: float = -math.inf, level: float = LEVEL) -> Interval | None:
    """Return the mean of one task's values, with the interval of `average`; None for no values."""
    return average([values], least=least, level=level) if values else None


def difference(first: Groups, second: Groups, *, level: float = LEVEL) -> Interval | None:
    """Return the mean over tasks of the first agent's mean less the second's; None for no tasks.

    The interval is Student's with Satterthwaite's degrees of freedom (for one task, Welch's): it says how the difference would vary with
    other runs of these same tasks. Its bounds are NaN where some agent has a single run of a task.

    Args:
        first: the values of the first agent's runs, by task.
        second: those of the second agent's runs of the same tasks.
        level: the interval's confidence level.
    """
    if not first:
        return None
    pairs = [(np.asarray(one, dtype=float), np.asarray(other, dtype=float)) for one, other in zip(first, second, strict=True)]
    value = float(np.mean([one.mean() - other.mean() for one, other in pairs]))
    arrays = [array for pair in pairs for array in pair]
    if min(map(len, arrays)) < 2:
        return Interval(value, math.nan, math.nan)
    error, freedom = _standard_error(arrays, len(pairs))
    low, high = _students(freedom, level)
    return Interval(value, value + low * error, value + high * error)


def interquartile_mean(groups: Groups, *, level: float = LEVEL) -> Interval | None:
    """Return the mean of the middle half of all runs' values; None for no runs.

    The interval is a percentile bootstrap over the runs within each task.
    """
    return _resampled(groups, lambda values: _trimmed(values.reshape(len(values), -1)), level)


def median(groups: Groups, *, level: float = LEVEL) -> Interval | None:
    """Return the median of all runs' values; None for no runs. The interval is a percentile bootstrap over the runs within each task."""
    return _resampled(groups, lambda values: np.median(values.reshape(len(values), -1), axis=1), level)


def performance_profile(groups: Groups, thresholds: Sequence[float]) -> list[float]:
    """Return for each threshold the share of runs above it, averaged over tasks."""
    return [float(np.mean([(np.asarray(values) > threshold).mean() for values in groups])) for threshold in thresholds]


def probability_of_improvement(first: Groups, second: Groups) -> float:
    """Return the probability that a run of the first agent is better than one of the second, averaged over tasks; a tie counts half.

    Args:
        first: the values of the first agent's runs, by task; higher is better.
        second: those of the second agent's runs of the same tasks.
    """
    wins = []
    for ones, others in zip(first, second, strict=True):
        one, other = np.asarray(ones, dtype=float)[:, None], np.asarray(others, dtype=float)[None]
        wins.append(((one > other) + 0.5 * (one == other)).mean())
    return float(np.mean(wins))


def _standard_error(arrays: Sequence[NDArray[np.float64]], tasks: int) -> tuple[float, float]:
    """Return the standard error of a sum of means divided by the number of tasks, and its degrees of freedom (Satterthwaite 1946)."""
    parts = np.array([array.var(ddof=1) / len(array) for array in arrays]) / tasks**2
    total = parts.sum()
    squares = (parts**2 / np.array([len(array) - 1 for array in arrays])).sum()
    return math.sqrt(total), float(total**2 / squares) if squares else math.inf


def _students(freedom: float, level: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # imported here because it takes longer than most reports do

    bound = float(stdtrit(min(freedom, 1e6), (1 + level) / 2))
    return -bound, bound


def _studentised(arrays: Sequence[NDArray[np.float64]], level: float) -> tuple[float, float]:
    """Return the bounds of the mean's distance from the truth in standard errors, by resampling the runs of each task."""
    draw = np.random.default_rng(SEED)
    distance, variance = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for array in arrays:
        values = array[draw.integers(0, len(array), (RESAMPLES, len(array)))]
        distance += values.mean(axis=1) - array.mean()
        variance += values.var(axis=1, ddof=1) / len(array)
    moved = variance > 0
    low, high = np.quantile(distance[moved] / np.sqrt(variance[moved]), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _resampled(groups: Groups, statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], level: float) -> Interval | None:
    arrays = [np.asarray(values, dtype=float) for values in groups if len(values)]
    if not arrays:
        return None
    value = float(statistic(np.concatenate(arrays)[None])[0])
    draw = np.random.default_rng(SEED)
    found = statistic(np.concatenate([array[draw.integers(0, len(array), (RESAMPLES, len(array)))] for array in arrays], axis=1))
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))


def _trimmed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the middle half of each row."""
    cut = values.shape[1] // 4
    middle: NDArray[np.float64] = np.sort(values, axis=1)[:, cut : values.shape[1] - cut].mean(axis=1)
    return middle
