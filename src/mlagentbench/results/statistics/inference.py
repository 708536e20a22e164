"""Test whether one agent succeeds more often than another. Pure functions.

There are two questions, and each has a test and an interval that belong together: the interval holds 0 exactly where the test rejects
nothing.

- **On these tasks** (`on_these_tasks`): would other runs of these same tasks say the same? The runs are the sample, the tasks are fixed.
- **On other tasks of this kind** (`on_other_tasks`): would other tasks say the same? The tasks are the sample, and each is one observation,
  however many runs it has (Miller 2024, arXiv 2411.00640, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlagentbench.results.statistics.intervals import LEVEL, RESAMPLES, SEED, Interval

ALL_SUBSETS = 16
"""Up to as many tasks, every subset of them is used; above, `RESAMPLES` random ones."""
POWER = 0.8
"""How probable it is that a test with `runs_needed` runs sees a difference."""
MOST_RUNS = 500
"""The most runs a task for which the power is computed."""
DRAWS = 4000
"""How many experiments are simulated for a power."""
FEW_RUNS = 30
"""The most runs of a single task for which the power is exact rather than simulated."""


class TaskCounts(NamedTuple):
    """The runs of one task by two agents."""

    first_successes: int
    first_runs: int
    second_successes: int
    second_runs: int


class Inference(NamedTuple):
    """A difference of two success rates, as a fraction, with its test."""

    difference: Interval
    p: float
    """Two-sided; 0.05 or less exactly where the interval excludes 0."""
    tasks: int
    smallest_p: float
    """The smallest p-value that these numbers of runs or tasks can reach."""

    @property
    def can_tell(self) -> bool:
        """Return whether any result could have been significant at the 5% level."""
        return self.smallest_p <= 1 - LEVEL


def on_these_tasks(counts: Sequence[TaskCounts]) -> Inference | None:
    """Compare two agents' success rates over fixed tasks; None if there are no tasks.

    The difference is the Mantel-Haenszel risk difference, which weights a task by n1 n2 / (n1 + n2): with as many runs of every task it is
    the difference of the averages over tasks. The test is the exact conditional one within tasks (for one task, Fisher's), two-sided by
    the distance from the expectation. The interval inverts the stratified score test (Miettinen and Nurminen 1985), so p is the larger
    of the two tests' values at 0, and the bound next to 0 is 0 where only the exact test keeps it.

    Raises:
        ValueError: a task has no runs of one agent, or more successes than runs.
    """
    for task in counts:
        if not (0 <= task.first_successes <= task.first_runs and 0 <= task.second_successes <= task.second_runs):
            raise ValueError(f"{task} has more successes than runs")
        if not (task.first_runs and task.second_runs):
            raise ValueError(f"{task} has no runs of one agent")
    if not counts:
        return None
    value, low, high, score_p = _score_interval(counts)
    exact, smallest = _exact(counts)
    p = max(exact, score_p)
    if exact > 1 - LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    return Inference(Interval(value, low, high), p, len(counts), smallest)


def on_other_tasks(differences: Sequence[float]) -> Inference | None:
    """Test whether the mean over tasks of two agents' differences is 0 for tasks of this kind; None if there are no tasks.

    The test flips the signs of the tasks' differences, and the interval consists of the means that it does not reject, bounded by subset
    means (Hartigan 1969, typical values). With k tasks p is at least 2 / 2^k: fewer than six tasks can show nothing, and their interval
    is all that a difference of rates can be, from -1 to 1.

    Args:
        differences: for each task the first agent's success rate minus the second's, from -1 to 1.
    """
    values = np.asarray(differences, dtype=float)
    if not len(values):
        return None
    means = _subset_means(values)
    total = len(means) + 1  # the empty subset, which has no mean
    tiny = 1e-12  # two equal sums may differ by rounding
    tails = [int((means <= tiny).sum()) + 1, int((means >= -tiny).sum()) + 1]
    p = min(1.0, 2 * min(tails) / total)
    place = math.floor((1 - LEVEL) / 2 * total)
    low, high = (float(means[place - 1]), float(means[-place])) if place else (-1.0, 1.0)
    return Inference(Interval(float(values.mean()), max(-1.0, low), min(1.0, high)), p, len(values), min(1.0, 2 / 2 ** len(values)))


def runs_needed(rates: Sequence[tuple[float, float]]) -> int | None:
    """Return how many runs of each task both agents need for `on_these_tasks` to reject equal rates with a power of `POWER`.

    None where the rates do not differ on average, or where `MOST_RUNS` runs of each task are not enough.

    Args:
        rates: both agents' success rates on each task.
    """
    first, second = np.array([pair[0] for pair in rates]), np.array([pair[1] for pair in rates])
    if not len(rates) or math.isclose(first.sum(), second.sum()):
        return None
    low, high = 1, MOST_RUNS
    if power_of(first, second, high) < POWER:
        return None
    while low < high:
        middle = (low + high) // 2
        if power_of(first, second, middle) >= POWER:
            high = middle
        else:
            low = middle + 1
    return low


def power_of(first: NDArray[np.float64], second: NDArray[np.float64], runs: int) -> float:
    """Return how often `on_these_tasks` would reject equal rates, with some runs of each task by both agents.

    For few runs of one task it is exact. For more it is simulated with the normal form of the exact test, with its continuity correction.

    Args:
        first: the first agent's success rate on each task.
        second: the second agent's.
        runs: the runs of each task by each agent.
    """
    if len(first) == 1 and runs <= FEW_RUNS:
        return _power_on_one_task(float(first[0]), float(second[0]), runs)
    random = np.random.default_rng(SEED)
    ones = random.binomial(runs, first, (DRAWS, len(first)))
    others = random.binomial(runs, second, (DRAWS, len(second)))
    successes, both = ones + others, 2 * runs
    variance = (successes * (both - successes)).sum(axis=1) * runs**2 / (both**2 * max(1, both - 1))
    distance = np.abs((ones - successes / 2).sum(axis=1)) - 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where(variance > 0, distance / np.sqrt(variance), 0.0)
    return float((z >= NormalDist().inv_cdf((1 + LEVEL) / 2)).mean())


def _power_on_one_task(first: float, second: float, runs: int) -> float:
    from scipy.stats import binom, hypergeom  # imported here because it takes longer than most reports do

    possible = np.arange(runs + 1)
    chances = [binom.pmf(possible, runs, rate) for rate in (first, second)]
    power = 0.0
    for successes in range(2 * runs + 1):
        ones = possible[max(0, successes - runs) : min(successes, runs) + 1]
        by_chance, distance = hypergeom.pmf(ones, 2 * runs, successes, runs), np.abs(ones - successes / 2)
        p = np.array([by_chance[distance >= each - 1e-9].sum() for each in distance])
        power += float((chances[0][ones] * chances[1][successes - ones])[p <= 1 - LEVEL].sum())
    return power


def _exact(counts: Sequence[TaskCounts]) -> tuple[float, float]:
    """Return the p-value of the exact conditional test, and the smallest that the numbers of runs allow."""
    chances = reduce(np.convolve, [_hypergeometric(task) for task in counts])
    least = sum(max(0, task.first_successes + task.second_successes - task.second_runs) for task in counts)
    possible = least + np.arange(len(chances))
    expected = sum(
        (task.first_successes + task.second_successes) * task.first_runs / (task.first_runs + task.second_runs) for task in counts
    )
    distance = np.abs(possible - expected)
    observed = abs(sum(task.first_successes for task in counts) - expected)
    p = chances[distance >= observed - 1e-9].sum()
    # The result that is least likely by chance is that one agent always succeeds and the other never.
    apart = math.prod(1 / math.comb(task.first_runs + task.second_runs, task.first_runs) for task in counts)
    return float(min(1.0, p)), min(1.0, apart * (2 if all(task.first_runs == task.second_runs for task in counts) else 1))


def _hypergeometric(task: TaskCounts) -> NDArray[np.float64]:
    """Return the chance of each possible number of the first agent's successes, given how many both have together."""
    successes = task.first_successes + task.second_successes
    possible = range(max(0, successes - task.second_runs), min(successes, task.first_runs) + 1)
    ways = [math.comb(task.first_runs, each) * math.comb(task.second_runs, successes - each) for each in possible]
    return np.array([each / sum(ways) for each in ways])


def _score_interval(counts: Sequence[TaskCounts]) -> tuple[float, float, float, float]:
    """Return the Mantel-Haenszel risk difference, the bounds of its score interval, and the p-value of the score test of 0."""
    x, n, y, m = (np.array(column, dtype=float) for column in zip(*counts, strict=True))
    weights = n * m / (n + m)
    weights /= weights.sum()
    value = float((weights * (x / n - y / m)).sum())
    normal = NormalDist()
    limit = normal.inv_cdf((1 + LEVEL) / 2)

    def z(difference: float) -> float:
        one, other = _restricted(x, n, y, m, difference)
        variance = (one * (1 - one) / n + other * (1 - other) / m) * (n + m) / (n + m - 1)
        spread = math.sqrt(float((weights**2 * variance).sum()))
        return (
            math.copysign(math.inf, value - difference) if spread == 0 and value != difference else (value - difference) / (spread or 1.0)
        )

    def bound(inside: float, outside: float) -> float:
        if abs(z(outside)) <= limit:
            return outside
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if abs(z(middle)) <= limit else (inside, middle)
        return inside

    return value, bound(value, -1.0), bound(value, 1.0), 2 * (1 - normal.cdf(abs(z(0.0))))


def _restricted(
    x: NDArray[np.float64], n: NDArray[np.float64], y: NDArray[np.float64], m: NDArray[np.float64], difference: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the likeliest pair of rates of each task that differ by so much (Miettinen and Nurminen 1985, appendix 1)."""
    one, other, ratio = x / n, y / m, m / n
    a = 1 + ratio
    b = -(1 + ratio + one + ratio * other + difference * (ratio + 2))
    c = difference**2 + difference * (2 * one + ratio + 1) + one + ratio * other
    d = -one * difference * (1 + difference)
    v = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    u = np.copysign(np.sqrt(np.maximum(0.0, b**2 / (9 * a**2) - c / (3 * a))), v)
    with np.errstate(invalid="ignore", divide="ignore"):
        angle = (math.pi + np.arccos(np.clip(np.where(u == 0, 0.0, v / u**3), -1.0, 1.0))) / 3
    first = np.clip(2 * u * np.cos(angle) - b / (3 * a), max(0.0, difference), min(1.0, 1 + difference))
    return first, first - difference


def _subset_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of the nonempty subsets of some values, sorted; of random ones if there are too many."""
    if len(values) <= ALL_SUBSETS:
        chosen = (np.arange(1, 2 ** len(values))[:, None] >> np.arange(len(values))) & 1
    else:
        chosen = np.random.default_rng(SEED).integers(0, 2, (RESAMPLES - 1, len(values)))
        chosen = chosen[chosen.any(axis=1)]
    return np.sort(chosen @ values / chosen.sum(axis=1))
