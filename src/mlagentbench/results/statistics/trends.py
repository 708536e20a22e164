"""Find how a difference between two columns changes over tasks with an amount, such as the number of steps. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlagentbench.results.statistics.intervals import LEVEL, Interval

FEWEST_TASKS = 4
"""Tasks below which a line through their differences says nothing."""


class Trend(NamedTuple):
    """How a difference changes with an amount."""

    slope: Interval
    """The change of the difference with each doubling of the amount plus one."""
    p: float
    """Two-sided; 0.05 or less exactly where the interval excludes 0."""
    tasks: int
    below: float
    """The mean difference of the tasks with an amount below the median, or at it."""
    above: float
    """That of the others."""


def trend(amounts: Sequence[float], differences: Sequence[float]) -> Trend | None:
    """Fit a line through the differences of some tasks over the logarithm of an amount; None for too few tasks or equal amounts.

    The line is that of least squares, and its interval Student's with two degrees of freedom less than there are tasks: each task is one
    observation. An amount must be a mean over the runs of both columns: if it were that of one column, an accident of its runs would
    move the amount and the difference together, and look like a trend (Oldham 1962, doi 10.1016/0021-9681(62)90119-0).

    Args:
        amounts: an amount of each task, 0 or more.
        differences: the difference of each task.
    """
    x, y = np.log2(1 + np.asarray(amounts, dtype=float)), np.asarray(differences, dtype=float)
    if len(x) < FEWEST_TASKS or np.ptp(x) < 1e-9:
        return None
    from scipy.special import stdtr, stdtrit  # imported here because it takes longer than most reports do

    freedom = len(x) - 2
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    rest = y - y.mean() - slope * (x - x.mean())
    error = math.sqrt(float((rest**2).sum()) / freedom / spread)
    bound = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    p = 2 * float(stdtr(freedom, -abs(slope) / error)) if error > 0 else float(abs(slope) < 1e-12)
    low = x <= np.median(x)
    halves = (float(y[low].mean()), float(y[~low].mean())) if (~low).any() else (float(y.mean()),) * 2
    return Trend(Interval(slope, slope - bound, slope + bound), p, len(x), *halves)
