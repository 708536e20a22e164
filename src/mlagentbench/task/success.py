"""Decide when a score counts as a success, and when the difference may be noise. Pure functions over a task's metric."""

from __future__ import annotations

import math

from mlagentbench.records import Baseline
from mlagentbench.task.spec import Metric

THRESHOLD = 0.10
"""The relative improvement that a success must exceed (arXiv 2310.03302, section 3)."""

NEAR_ZERO = 1e-6
"""Baselines no larger than this, in the metric's unit, make a relative improvement meaningless; results say so."""


def is_success(metric: Metric, value: float, baseline: float, threshold: float = THRESHOLD) -> bool:
    """Return whether a score's relative improvement over the baseline's exceeds `threshold`; being equal to it is not enough.

    Over a baseline of 0 there is no relative improvement, and any improvement is a success.

    Args:
        metric: the task's metric, which knows the better direction.
        value: the score, in the metric's unit.
        baseline: the starter's score, in the same unit.
        threshold: a fraction, 0.1 for 10%.
    """
    improvement = metric.improvement(value, baseline)
    if improvement is None:
        return metric.gain(value, baseline) > 0
    return exceeds(improvement, threshold)


def exceeds(improvement: float, threshold: float = THRESHOLD) -> bool:
    """Return whether a relative improvement exceeds a threshold, which is the paper's rule; being equal to it is not enough."""
    # 1.1 over a baseline of 1 is exactly 10%, although in binary floating point it comes out as more.
    return improvement > threshold and not math.isclose(improvement, threshold, rel_tol=1e-9)


def within_noise(metric: Metric, value: float, baseline: Baseline) -> bool:
    """Return whether a score is better than the baseline, but no more than another run of the starter may be by chance.

    It is False where the score is not better at all, and where the baseline has fewer than two values and so no spread.
    """
    return baseline.spread is not None and 0 < metric.gain(value, baseline.value) <= baseline.spread


def clears_noise(metric: Metric, value: float, baseline: Baseline) -> bool | None:
    """Return whether a score is a success that is not chance (the noise-calibrated rule).

    It must be one by the paper's rule, and better than another run of the starter is in 95% of cases (`Baseline.spread`). The paper's rule
    alone is met by luck where the starter's own scores vary: in its Table 3 the starter itself succeeds in 40% and 42.9% of its runs on two
    tasks. None where the baseline has no spread, and so nothing is known of its noise.
    """
    if baseline.spread is None:
        return None
    return metric.gain(value, baseline.value) > baseline.spread and is_success(metric, value, baseline.value)


def is_near_zero(baseline: float) -> bool:
    """Return whether a baseline is so small that relative improvements over it mean little."""
    return abs(baseline) <= NEAR_ZERO
