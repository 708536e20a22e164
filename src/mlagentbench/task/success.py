"""Decide when a score counts as a success, and when the difference may be noise. Pure functions over a task's metric."""

from __future__ import annotations

import math
import statistics

from mlagentbench.records import Baseline, Score
from mlagentbench.task.spec import Metric

THRESHOLD = 0.10
"""The relative improvement that a success must exceed (arXiv 2310.03302, section 3)."""

ONE_OF_TWENTY = 1.6449
"""The normal quantile of 95%."""

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


def gain_error(score: Score, baseline: Baseline) -> float | None:
    """Return the standard error, from the rows of the test set, of the difference between a score and its baseline, in the metric's unit.

    It is that of their differences over the same draws of rows. Where the baseline's rows are not known, such as the paper's, the baseline
    is taken for as uncertain as the score, and for independent of it, which errs on the side of caution. None where the score has no
    standard error.
    """
    if score.standard_error is None:
        return None
    if score.resampled and len(score.resampled) == len(baseline.resampled):
        return statistics.stdev(ours - theirs for ours, theirs in zip(score.resampled, baseline.resampled, strict=True))
    return math.sqrt(2) * score.standard_error


def noise_margin(baseline: Baseline, gain_error: float | None = None) -> float | None:
    """Return the gain that chance alone exceeds in one of twenty cases, in the metric's unit.

    Chance has two parts: another run of the starter scores differently, and so does any submission on other test rows. Each has its 95%
    margin, `Baseline.spread` and 1.645 standard errors of the gain. The margin of both together is the root of the sum of their squares, as
    for any two independent errors (Zou and Donner 2008, doi 10.1002/sim.3095). A predictor scores the same in every run. None where the
    baseline has no spread, and so nothing is known of its runs.

    Args:
        baseline: the starter's score.
        gain_error: the standard error of the gain from the test rows (`gain_error`); None where there is none.
    """
    spread = 0.0 if baseline.source == "predictor" and gain_error is not None else baseline.spread
    return None if spread is None else math.hypot(spread, ONE_OF_TWENTY * (gain_error or 0.0))


def within_noise(metric: Metric, value: float, baseline: Baseline, gain_error: float | None = None) -> bool:
    """Return whether a score is better than the baseline, but by no more than chance allows (`noise_margin`).

    It is False where the score is not better at all, and where nothing is known of the noise.
    """
    margin = noise_margin(baseline, gain_error)
    return margin is not None and 0 < metric.gain(value, baseline.value) <= margin


def clears_noise(metric: Metric, value: float, baseline: Baseline, gain_error: float | None = None) -> bool | None:
    """Return whether a score is a success that is not chance (the noise-calibrated rule).

    It must be one by the paper's rule, and better than chance allows (`noise_margin`). The paper's rule alone is met by luck where the
    starter's own scores vary: in its Table 3 the starter itself succeeds in 40% and 42.9% of its runs on two tasks. None where nothing is
    known of the noise.
    """
    margin = noise_margin(baseline, gain_error)
    if margin is None:
        return None
    return metric.gain(value, baseline.value) > margin and is_success(metric, value, baseline.value)


def is_near_zero(baseline: float) -> bool:
    """Return whether a baseline is so small that relative improvements over it mean little."""
    return abs(baseline) <= NEAR_ZERO
