"""When a score counts as a success, and when the difference may be noise. Pure functions over a task's metric."""

from __future__ import annotations

import math

from mlagentbench.records import Baseline
from mlagentbench.tasks.spec import Metric

THRESHOLD = 0.10
"""The relative improvement that a success must exceed (arXiv 2310.03302, section 3)."""

NEAR_ZERO = 1e-6
"""Baselines no larger than this, in the metric's unit, make a relative improvement meaningless; results say so."""


def is_success(metric: Metric, value: float, baseline: float, threshold: float = THRESHOLD) -> bool:
    """Whether a score is more than `threshold` better than the baseline's, relative to it; exactly so much is not more.

    Over a baseline of 0 nothing is relative: there any improvement is a success.

    Args:
        metric: the task's, which knows the better direction.
        value: the score, in the metric's unit.
        baseline: the starter's score, in the same unit.
        threshold: a fraction, 0.1 for 10%.
    """
    gain = metric.improvement(value, baseline)
    if gain is None:
        return value > baseline if metric.direction == "maximize" else value < baseline
    # 1.1 over a baseline of 1 is 10% and not more, although its binary fraction is.
    return gain > threshold and not math.isclose(gain, threshold, rel_tol=1e-9)


def within_noise(metric: Metric, value: float, baseline: Baseline) -> bool:
    """Whether a score is better than the baseline by no more than the starter's own runs differ: half their range.

    False where the score is not better at all, and where the baseline has fewer than two values and so no spread.
    """
    gain = value - baseline.value if metric.direction == "maximize" else baseline.value - value
    return baseline.spread is not None and 0 < gain <= baseline.spread


def is_near_zero(baseline: float) -> bool:
    """Whether a baseline is so small that relative improvements over it mean little."""
    return abs(baseline) <= NEAR_ZERO
