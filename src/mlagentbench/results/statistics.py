"""How sure a number is: intervals, pass@k, differences between agents, and how many runs would tell them apart. Pure functions.

Everything random is drawn from a fixed seed, so that the same runs give the same report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 0


class Interval(NamedTuple):
    """An estimate with the bounds of its confidence interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """One agent against another over the same tasks."""

    mean: Interval
    """The mean over tasks of the first one's rate less the second's."""
    tasks: int
    """Those that both have runs of."""
    p: float
    """How probable so large a difference is where there is none, by an exact sign-flip test over tasks (sampled over 16 tasks)."""


def success_rate(successes: int, runs: int, *, method: Literal["wilson", "exact"] = "wilson", level: float = LEVEL) -> Interval:
    """A rate with its interval.

    Wilson's score interval (1927) by default: it keeps its level on average even with eight runs, where the normal approximation gives
    0 +- 0 for no success. `exact` is Clopper and Pearson's (1934), which never falls below its level and is wider.

    Raises:
        ValueError: there are no runs, or more successes than runs.
    """
    if not 0 <= successes <= runs or runs == 0:
        raise ValueError(f"{successes} successes in {runs} runs have no rate")
    if method == "wilson":
        return _wilson(successes / runs, runs, level)
    from scipy.special import betaincinv  # takes longer to import than most reports take, and they need Wilson's only

    tail = (1 - level) / 2
    low = float(betaincinv(successes, runs - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, runs - successes, 1 - tail)) if successes < runs else 1.0
    return Interval(successes / runs, low, high)


def mean(values: Sequence[float], *, level: float = LEVEL) -> Interval | None:
    """A mean with its percentile bootstrap interval (Efron 1979); None for no values, and bounds equal to the value for a single one."""
    if not values:
        return None
    array = np.asarray(values, dtype=float)
    draws = np.random.default_rng(SEED).integers(0, len(array), (RESAMPLES, len(array)))
    low, high = np.quantile(array[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(array.mean()), float(low), float(high))


def average_rate(counts: Sequence[tuple[int, int]], *, level: float = LEVEL) -> Interval | None:
    """The mean over tasks of success rates, each task counting once; None for no tasks.

    The interval says how it would vary with other runs on these same tasks, however few they are, and even with one run a task: Wilson's,
    of the mean and of as many runs as would leave one rate as uncertain, k^2 / (1 / n1 + ... + 1 / nk). It is a little wide where tasks
    differ much, since the mean of unlike rates varies less than one rate of its size. Of a single task it is Wilson's.

    Args:
        counts: successes and runs of each task.
        level: the interval's confidence level.

    Raises:
        ValueError: a task has no runs, or more successes than runs.
    """
    rates = [success_rate(successes, runs, level=level) for successes, runs in counts]
    if len(rates) <= 1:
        return rates[0] if rates else None
    value = sum(rate.value for rate in rates) / len(rates)
    return _wilson(value, len(counts) ** 2 / sum(1 / runs for _, runs in counts), level)


def average(groups: Sequence[Sequence[float]], *, level: float = LEVEL) -> Interval | None:
    """The mean over tasks of means over runs, each task counting once; None for no tasks.

    The interval is a percentile bootstrap over the runs within each task: how the mean would vary with other runs on these same tasks.
    Where most tasks have one run only, nothing is known of that, and it is a bootstrap over tasks, which is wider.

    Args:
        groups: the values of each task's runs; none is empty.
        level: the interval's confidence level.
    """
    if not groups:
        return None
    arrays = [np.asarray(values, dtype=float) for values in groups]
    if sum(len(array) == 1 for array in arrays) > len(arrays) / 2:
        return mean([float(array.mean()) for array in arrays], level=level)
    draw = np.random.default_rng(SEED)
    means = np.mean([array[draw.integers(0, len(array), (RESAMPLES, len(array)))].mean(axis=1) for array in arrays], axis=0)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.mean([array.mean() for array in arrays])), float(low), float(high))


def pass_at_k(successes: int, runs: int, k: int) -> float | None:
    """How probable it is that one of k runs succeeds, without bias from the runs at hand (Chen et al. 2021, arXiv 2107.03374, section 2.1).

    None where there are fewer than k runs.
    """
    if runs < k:
        return None
    return 1 - math.comb(runs - successes, k) / math.comb(runs, k)


def paired_difference(first: Mapping[str, float], second: Mapping[str, float], *, level: float = LEVEL) -> Difference | None:
    """Two agents' rates by task, compared task by task; None where they share none.

    The interval is a percentile bootstrap over tasks: it says how the difference would vary with other tasks of this kind.
    """
    tasks = sorted(first.keys() & second.keys())
    gaps = np.array([first[task] - second[task] for task in tasks])
    interval = mean(gaps.tolist(), level=level)
    if interval is None:
        return None
    return Difference(interval, len(tasks), _sign_flips(gaps))


def runs_to_tell_apart(first: float, second: float, *, power: float = 0.8, level: float = LEVEL) -> int | None:
    """How many runs each of two agents needs for a two-sided test of their success rates to see the difference.

    The usual sample size for two proportions with unpooled variances (Fleiss, Levin and Paik 2003, section 4.2, without the continuity
    correction). None where the rates are equal.

    Args:
        first: a success rate, 0 to 1.
        second: another.
        power: how probable it shall be that the test sees the difference.
        level: the test's confidence level.
    """
    if first == second:
        return None
    middle = (first + second) / 2
    a, b = NormalDist().inv_cdf((1 + level) / 2), NormalDist().inv_cdf(power)
    spread = a * math.sqrt(2 * middle * (1 - middle)) + b * math.sqrt(first * (1 - first) + second * (1 - second))
    return math.ceil((spread / (first - second)) ** 2)


def adjusted(ps: Sequence[float]) -> list[float]:
    """The p of several tests at once, each adjusted for there being others (Holm 1979), in the same order.

    That of the smallest is multiplied by the number of tests, that of the next by one less, and so on; none falls below that of a smaller
    one.
    """
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    found = [0.0] * len(ps)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = largest
    return found


def _wilson(rate: float, runs: float, level: float) -> Interval:
    """Wilson's score interval of a rate over so many runs. The rate lies within it, also where rounding says otherwise."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (rate + z**2 / (2 * runs)) / (1 + z**2 / runs)
    margin = z / (1 + z**2 / runs) * math.sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2))
    return Interval(rate, max(0.0, min(rate, middle - margin)), min(1.0, max(rate, middle + margin)))


def _sign_flips(gaps: np.ndarray) -> float:
    """The share of all ways to swap the two agents on some tasks that give a mean at least as far from 0."""
    observed = abs(gaps.sum()) - 1e-12
    if len(gaps) <= 16:
        signs = 1 - 2 * ((np.arange(2 ** len(gaps))[:, None] >> np.arange(len(gaps))) & 1)
    else:
        signs = np.random.default_rng(SEED).choice([-1, 1], (RESAMPLES, len(gaps)))
    return float((np.abs(signs @ gaps) >= observed).mean())
