"""Compare columns by all of their runs' improvements: performance profiles, and the probability that one improves on another.

Both are of Agarwal et al. 2021 (arXiv 2108.13264, sections 4.2 and 4.3). A run without a valid submission is below every threshold, and
worse than any with one. Nothing is clipped, since only the order of improvements matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from mlagentbench.results.cells import Cell
from mlagentbench.results.counts import Counts
from mlagentbench.results.statistics import intervals, robust
from mlagentbench.results.statistics.intervals import Interval
from mlagentbench.task.success import exceeds

LEVELS = (-0.5, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0)
"""The improvements at which a performance profile is given, relative to the baseline."""


class ProfilePoint(NamedTuple):
    """The share of a column's runs that improve by more than a level, averaged over tasks."""

    column: str
    level: float
    share: Interval
    """With the interval of success rates (`intervals.average_rate`); at 10% it is the success rate."""
    tasks: int
    runs: int


class Superiority(NamedTuple):
    """The probability that a run of one column improves more than one of another on the same task, averaged over tasks."""

    first: str
    second: str
    probability: Interval
    """Of `robust.probability_of_improvement`; a tie counts half."""
    tasks: int
    """The tasks of which both have counted runs."""


def profiles(columns: Mapping[str, Mapping[str, Cell]]) -> list[ProfilePoint]:
    """Return the performance profile of each column with counted runs."""
    found = []
    for column, by_task in columns.items():
        tasks = [cell.counted for cell in by_task.values() if cell.counted]
        for level in LEVELS if tasks else ():
            share = intervals.average_rate([(sum(_improves(run, level) for run in runs), len(runs)) for runs in tasks])
            if share is not None:
                found.append(ProfilePoint(column, level, share, len(tasks), sum(map(len, tasks))))
    return found


def superiorities(columns: Mapping[str, Mapping[str, Cell]]) -> list[Superiority]:
    """Return the probability of improvement for each pair of columns that share a task with counted runs."""
    found = []
    for first, second in combinations(columns, 2):
        pairs = [
            (ones, others)
            for task in columns[first]
            if task in columns[second] and (ones := columns[first][task].counted) and (others := columns[second][task].counted)
        ]
        ranked = [_ranked(ones, others) for ones, others in pairs]
        probability = robust.probability_of_improvement([ones for ones, _ in ranked], [others for _, others in ranked])
        if probability is not None:
            found.append(Superiority(first, second, probability, len(pairs)))
    return found


def _improves(run: Counts, level: float) -> bool:
    """Return whether a run improves by more than a level; over a baseline of 0 any gain is more than every level, as in success."""
    if not run.valid:
        return False
    if run.improvement is None:
        return run.gain is not None and run.gain > 0
    return exceeds(run.improvement, level)


def _ranked(ones: Sequence[Counts], others: Sequence[Counts]) -> tuple[list[float], list[float]]:
    """Return numbers that order the runs of one task: improvements, or gains if some baseline is 0."""
    relative = all(run.improvement is not None for run in (*ones, *others) if run.valid)
    values = [[run.improvement if relative else run.gain for run in runs] for runs in (ones, others)]
    one, other = (
        [value if run.valid and value is not None else -math.inf for run, value in zip(runs, row, strict=True)]
        for runs, row in zip((ones, others), values, strict=True)
    )
    return one, other
