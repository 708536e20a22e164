"""Summarise the improvements of an agent's runs over tasks, so that neither few runs nor one diverged run mislead. Pure functions.

The groups of each function are the values of one task's runs, and each task counts once. Medians, interquartile means and the probability
of improvement are those of Agarwal et al. 2021 (arXiv 2108.13264, sections 4.1 to 4.3), and rliable's for as many runs of every task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mlagentbench.results.statistics.intervals import LEVEL, RESAMPLES, SEED, Interval

FEWEST = 3
"""Values below which nothing can be said of how a mean varies."""
FEWEST_TO_RESAMPLE = 5
"""Runs of each task from which on a mean's interval is studentised by resampling; below, resamples too often have no spread at all."""

CLIP = (-1.0, 10.0)
"""The bounds of improvements in averages: -100%, which is everything lost where more is better, and +1,000%, eleven times the baseline."""

Groups = Sequence[Sequence[float]]
Shared = Sequence[Sequence[float]]
"""For each baseline that the runs of a task share, what their mean moves by with each of its values (the delta method)."""


def clipped(improvement: float) -> float:
    """Return an improvement within the bounds of `CLIP`, so that one diverged but valid submission does not decide an average."""
    return min(max(improvement, CLIP[0]), CLIP[1])


def average(groups: Groups, shared: Sequence[Shared] = (), *, least: float = -math.inf) -> Interval | None:
    """Return the mean over tasks of means over runs; None for no tasks. For fewer than `FEWEST` values, its interval has no width.

    The interval says how the mean would vary with other runs of these same tasks, and with another measurement of the baselines. It is the
    studentised bootstrap over each task's runs (Efron and Tibshirani 1993, section 12.5), and Student's with Satterthwaite's degrees of
    freedom where a task has few runs. Where most tasks have a single run, whose spread is unknown, it is Student's over tasks, which is
    wider.

    Args:
        groups: the values of each task's runs; no group is empty.
        shared: what the task's mean moves by with each value of a baseline that its runs share, for each task; empty if they share none.
        least: the smallest value that there can be, such as 0 for an amount of time; the interval does not go below.
    """
    arrays = [np.asarray(values, dtype=float) for values in groups]
    if not arrays:
        return None
    value = float(np.mean([array.mean() for array in arrays]))
    moves = [np.asarray(each, dtype=float) / len(arrays) for of_task in shared for each in of_task]
    if sum(len(array) == 1 for array in arrays) > len(arrays) / 2:
        arrays, moves = [np.array([array.mean() for array in arrays])], []  # the tasks differ by their baselines' noise too
    else:
        arrays = [array for array in arrays if len(array) > 1]  # the spread of the others is taken to be that of the rest
    if sum(map(len, arrays)) < FEWEST:
        return Interval(value, value, value)
    parts = [*(array / len(arrays) for array in arrays), *moves]
    error, freedom = _standard_error(parts)
    if error == 0:
        return Interval(value, value, value)
    low, high = _studentised(parts) if min(map(len, parts)) >= FEWEST_TO_RESAMPLE else _students(freedom)
    return Interval(value, max(least, value - high * error), value - low * error)


def mean(values: Sequence[float], shared: Shared = (), *, least: float = -math.inf) -> Interval | None:
    """Return the mean of one task's values, with the interval of `average`; None for no values."""
    return average([values], [shared], least=least) if values else None


def difference(first: Groups, second: Groups, shared: Sequence[Shared] = ()) -> Interval | None:
    """Return the mean over tasks of the first agent's mean less the second's; None for no tasks.

    The interval is Student's with Satterthwaite's degrees of freedom (for one task, Welch's): it says how the difference would vary with
    other runs of these same tasks. Its bounds are NaN where some agent has a single run of a task.

    Args:
        first: the values of the first agent's runs, by task.
        second: those of the second agent's runs of the same tasks.
        shared: what the task's difference moves by with each value of a baseline, for each task, as in `average`.
    """
    if not first:
        return None
    pairs = [(np.asarray(one, dtype=float), np.asarray(other, dtype=float)) for one, other in zip(first, second, strict=True)]
    value = float(np.mean([one.mean() - other.mean() for one, other in pairs]))
    parts = [array / len(pairs) for pair in pairs for array in pair]
    if min(map(len, parts)) < 2:
        return Interval(value, math.nan, math.nan)
    error, freedom = _standard_error([*parts, *(np.asarray(moves, dtype=float) / len(pairs) for of_task in shared for moves in of_task)])
    low, high = _students(freedom)
    return Interval(value, value + low * error, value + high * error)


def interquartile_mean(groups: Groups, shared: Sequence[Shared] = ()) -> Interval | None:
    """Return the mean of the middle half of all runs' values, each task counting once; None for no runs.

    With as many runs of every task it is rliable's, where that number of runs in all is divisible by 4; else the runs at the quartiles
    count in part. The interval is that of `median`.
    """
    return _resampled(groups, shared, _middle_half)


def median(groups: Groups, shared: Sequence[Shared] = ()) -> Interval | None:
    """Return the median of all runs' values, each task counting once; None for no runs.

    The interval is a percentile bootstrap over the runs within each task, and over the values of the baseline that they share (`average`),
    with its tails expanded for few runs (Hesterberg 2015, arXiv 1411.5279, "expanded percentile interval"). It has no width where most
    tasks have fewer than `FEWEST` runs, and for a single task with fewer than `FEWEST_TO_RESAMPLE`: even their extremes hold it too rarely.
    """
    return _resampled(groups, shared, _weighted_median)


def probability_of_improvement(first: Groups, second: Groups) -> Interval | None:
    """Return the probability that a run of the first agent is better than one of the second, averaged over tasks; None for no tasks.

    A tie counts half. The interval is a percentile bootstrap over the runs of each agent within each task, as rliable's. It has no width
    where most tasks have fewer than `FEWEST` runs of either.

    Args:
        first: the values of the first agent's runs, by task; higher is better, and minus infinity is worst.
        second: those of the second agent's runs of the same tasks.
    """
    if not first:
        return None
    draw = np.random.default_rng(SEED)
    value, resampled, few = 0.0, np.zeros(RESAMPLES), 0
    for ones, others in zip(first, second, strict=True):
        one, other = np.asarray(ones, dtype=float), np.asarray(others, dtype=float)
        wins = (one[:, None] > other) + 0.5 * (one[:, None] == other)
        value += wins.mean() / len(first)
        picked, against = (draw.integers(0, len(array), (RESAMPLES, len(array))) for array in (one, other))
        by_other = wins[picked].mean(axis=1)
        resampled += np.take_along_axis(by_other, against, axis=1).mean(axis=1) / len(first)
        few += min(len(one), len(other)) < FEWEST
    if few > len(first) / 2:
        return Interval(value, value, value)
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))


def best_of(groups: Groups, most: int) -> list[Interval]:
    """Return the mean over tasks of the expected best of k runs, drawn without replacement, for each k from 1 to `most`.

    The estimate is unbiased, as pass@k is (`intervals.pass_at_k`). The interval is a percentile bootstrap over the runs of each task; it
    has no width where most tasks have fewer than `FEWEST` runs.

    Args:
        groups: at least `most` values of each task's runs; higher is better.
        most: the largest k.
    """
    draw = np.random.default_rng(SEED)
    values, resampled = np.zeros(most), np.zeros((RESAMPLES, most))
    for group in groups:
        ordered = np.sort(np.asarray(group, dtype=float))
        # The value of each rank is the best of as many sets of k as there are ways to choose the others below it.
        ways = [[math.comb(rank, k - 1) / math.comb(len(ordered), k) for k in range(1, most + 1)] for rank in range(len(ordered))]
        values += ordered @ np.array(ways) / len(groups)
        drawn = ordered[np.sort(draw.integers(0, len(ordered), (RESAMPLES, len(ordered))), axis=1)]
        resampled += drawn @ np.array(ways) / len(groups)
    if sum(len(group) < FEWEST for group in groups) > len(groups) / 2:
        return [Interval(value, value, value) for value in values.tolist()]
    lows, highs = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return [
        Interval(value, min(value, low), max(value, high))
        for value, low, high in zip(values.tolist(), lows.tolist(), highs.tolist(), strict=True)
    ]


def _standard_error(parts: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the standard error of a sum of means, and its degrees of freedom (Satterthwaite 1946)."""
    variances = np.array([array.var(ddof=1) / len(array) for array in parts])
    total = variances.sum()
    squares = (variances**2 / np.array([len(array) - 1 for array in parts])).sum()
    return math.sqrt(total), float(total**2 / squares) if squares else math.inf


def _students(freedom: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # imported here because it takes longer than most reports do

    bound = float(stdtrit(min(freedom, 1e6), (1 + LEVEL) / 2))
    return -bound, bound


def _studentised(arrays: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the bounds of the mean's distance from the truth in standard errors, by resampling the runs of each task."""
    draw = np.random.default_rng(SEED)
    distance, variance = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for array in arrays:
        values = array[draw.integers(0, len(array), (RESAMPLES, len(array)))]
        distance += values.mean(axis=1) - array.mean()
        variance += values.var(axis=1, ddof=1) / len(array)
    moved = variance > 0
    low, high = np.quantile(distance[moved] / np.sqrt(variance[moved]), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _resampled(
    groups: Groups,
    shared: Sequence[Shared],
    statistic: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> Interval | None:
    """Return a statistic of all values, which takes rows of values and their weights, with its percentile bootstrap interval."""
    arrays = [np.asarray(values, dtype=float) for values in groups]
    if not arrays:
        return None
    weights = np.concatenate([np.full(len(array), 1 / (len(arrays) * len(array))) for array in arrays])
    value = float(statistic(np.concatenate(arrays)[None], weights)[0])
    sizes = np.array([len(array) for array in arrays])
    freedom = int((sizes - 1).sum())
    if (sizes < FEWEST).sum() > len(arrays) / 2 or freedom < FEWEST_TO_RESAMPLE - 1:
        return Interval(value, value, value)
    draw = np.random.default_rng(SEED)
    rows = []
    for array, of_task in zip(arrays, shared or [()] * len(arrays), strict=True):
        drawn = array[draw.integers(0, len(array), (RESAMPLES, len(array)))]
        for moves in map(np.asarray, of_task):
            drawn = drawn + moves[draw.integers(0, len(moves), (RESAMPLES, len(moves)))].mean(axis=1, keepdims=True)
        rows.append(drawn)
    # Resamples of n runs vary less than runs do, by (n - 1) / n, and as if their variance were known.
    runs = float(sizes[sizes > 1].mean())
    tail = NormalDist().cdf(_students(freedom)[0] * math.sqrt(runs / (runs - 1)))
    low, high = np.quantile(statistic(np.concatenate(rows, axis=1), weights), [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def _middle_half(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the middle half of each row, by weight."""
    ordered, ends = _ordered(values, weights)
    inside = np.clip(ends, 0.25, 0.75) - np.clip(ends - np.diff(ends, axis=1, prepend=0.0), 0.25, 0.75)
    found: NDArray[np.float64] = (ordered * inside).sum(axis=1) / 0.5
    return found


def _weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each row, by weight: the middle value, or the mean of the two in the middle."""
    ordered, ends = _ordered(values, weights)
    half = 0.5 * ends[:, -1:]
    places = [(ends < half - 1e-9).sum(axis=1), (ends < half + 1e-9).sum(axis=1)]
    found: NDArray[np.float64] = np.mean([np.take_along_axis(ordered, place[:, None], axis=1)[:, 0] for place in places], axis=0)
    return found


def _ordered(values: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each row in ascending order, and the sums of the weights up to each value."""
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.cumsum(weights[order], axis=1)
