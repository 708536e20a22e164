"""Compute confidence intervals of rates and means, and pass@k, and adjust p-values for one another. Pure functions.

Random draws come from a fixed seed, so that the same runs give the same report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 0


class Interval(NamedTuple):
    """An estimate with the bounds of its confidence interval."""

    value: float
    low: float
    high: float


def success_rate(successes: int, runs: int) -> Interval:
    """Return a success rate with its confidence interval.

    It is Wilson's score interval (1927), which keeps its level on average even with eight runs, where the normal approximation gives 0 +- 0
    for no success.

    Raises:
        ValueError: there are no runs, or more successes than runs.
    """
    if not 0 <= successes <= runs or runs == 0:
        raise ValueError(f"{successes} successes in {runs} runs have no rate")
    return _wilson(successes / runs, runs)


class Tally(NamedTuple):
    """The successes of one task's runs."""

    successes: int
    runs: int
    fewest: int | None = None
    """How many would be successes with the baseline at the upper bound of its own 95% interval; None where no runs share a baseline."""
    most: int | None = None
    """And at the lower bound."""


def average_rate(counts: Sequence[Tally | tuple[int, int]]) -> Interval | None:
    """Return the mean over tasks of success rates, each task counting once; None for no tasks.

    The interval says how the mean would vary with other runs of these same tasks, and holds even for few tasks with one run each. It is
    Wilson's interval of the mean, for as many runs as would leave a single rate as uncertain: k^2 / (1 / n1 + ... + 1 / nk). It is a little
    wide if tasks differ much, since the mean of unlike rates varies less than one rate of its size. For one task it is the task's own.

    Where runs share a baseline, another measurement of it would move their successes together. Its bounds' distances are added to those of
    Wilson's in quadrature, as for a sum of independent parts (Zou and Donner 2008, "MOVER").

    Args:
        counts: successes and runs of each task.

    Raises:
        ValueError: a task has no runs, or more successes than runs.
    """
    tallies = [Tally(*count) for count in counts]
    rates = [success_rate(each.successes, each.runs) for each in tallies]
    if not rates:
        return None
    value = sum(rate.value for rate in rates) / len(rates)
    found = rates[0] if len(rates) == 1 else _wilson(value, len(rates) ** 2 / sum(1 / each.runs for each in tallies))
    down, up = (
        sum(((each.successes - (each.successes if bound is None else bound)) / each.runs / len(tallies)) ** 2 for each, bound in bounds)
        for bounds in ([(each, each.fewest) for each in tallies], [(each, each.most) for each in tallies])
    )
    low, high = value - math.sqrt((value - found.low) ** 2 + down), value + math.sqrt((found.high - value) ** 2 + up)
    return Interval(value, max(0.0, low), min(1.0, high)) if down or up else found


def pass_at_k(successes: int, runs: int, k: int) -> float | None:
    """Return the unbiased estimate of the probability that at least one of k runs succeeds; None with fewer than k runs.

    See Chen et al. 2021, arXiv 2107.03374, section 2.1.
    """
    if runs < k:
        return None
    return 1 - math.comb(runs - successes, k) / math.comb(runs, k)


def average_pass_at_k(counts: Sequence[tuple[int, int]], k: int) -> Interval | None:
    """Return the mean over tasks of `pass_at_k`; None for no tasks, and if a task has fewer than k runs.

    For k = 1 it is `average_rate`. For more, the interval of each task's success rate p becomes that of 1 - (1 - p)^k, and the distances of
    the tasks' bounds are added in quadrature (Zou and Donner 2008, "MOVER"), which is a little wide.

    Args:
        counts: successes and runs of each task.
        k: how many runs are tried.
    """
    if not counts or any(runs < k for _, runs in counts):
        return None
    if k == 1:
        return average_rate(counts)
    values, down, up = [], 0.0, 0.0
    for successes, runs in counts:
        rate, value = success_rate(successes, runs), pass_at_k(successes, runs, k) or 0.0
        low, high = (1 - (1 - bound) ** k for bound in (rate.low, rate.high))
        values.append(value)
        down, up = down + max(0.0, value - low) ** 2, up + max(0.0, high - value) ** 2
    mean = sum(values) / len(values)
    return Interval(mean, max(0.0, mean - math.sqrt(down) / len(values)), min(1.0, mean + math.sqrt(up) / len(values)))


def adjusted(ps: Sequence[float]) -> list[float]:
    """Adjust the p-values of several tests for one another (Holm 1979), and return them in the same order.

    The smallest is multiplied by the number of tests, the next by one less, and so on, up to 1; no p-value becomes less than one that was
    smaller before.
    """
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    found = [0.0] * len(ps)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = largest
    return found


def _wilson(rate: float, runs: float) -> Interval:
    """Return Wilson's score interval of a rate over some runs; its bounds never exclude the rate by rounding."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle = (rate + z**2 / (2 * runs)) / (1 + z**2 / runs)
    margin = z / (1 + z**2 / runs) * math.sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2))
    return Interval(rate, max(0.0, min(rate, middle - margin)), min(1.0, max(rate, middle + margin)))
