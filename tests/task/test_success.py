"""Success and noise, with expectations worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mlagentbench.records import Baseline
from mlagentbench.task.sampling import row_score
from mlagentbench.task.spec import Metric
from mlagentbench.task.success import clears_noise, gain_error, is_near_zero, is_success, noise_margin, within_noise

ACCURACY = Metric(name="accuracy", direction="maximize")
SECONDS = Metric(name="seconds", direction="minimize", unit="s")


@pytest.mark.parametrize(
    ("metric", "value", "baseline", "success"),
    [
        (ACCURACY, 0.56, 0.5, True),  # 12% better
        (ACCURACY, 0.54, 0.5, False),  # 8%
        (ACCURACY, 0.44, 0.5, False),  # 12% worse
        (SECONDS, 0.88, 1.0, True),
        (SECONDS, 0.92, 1.0, False),
        (SECONDS, 1.5, 1.0, False),
        (ACCURACY, -0.5, -1.0, True),  # half of -1 nearer to 0: 50% of the baseline's size
        (ACCURACY, -1.5, -1.0, False),
    ],
)
def test_success_is_more_than_ten_percent_in_the_metrics_direction(metric: Metric, value: float, baseline: float, success: bool) -> None:
    assert is_success(metric, value, baseline) is success


@pytest.mark.parametrize(
    ("metric", "value", "baseline"), [(ACCURACY, 1.1, 1.0), (ACCURACY, 0.55, 0.5), (SECONDS, 0.9, 1.0), (SECONDS, 6.3, 7.0)]
)
def test_exactly_ten_percent_is_not_more_than_ten_percent(metric: Metric, value: float, baseline: float) -> None:
    assert not is_success(metric, value, baseline)
    assert is_success(metric, value, baseline, threshold=0.09)


def test_over_a_baseline_of_zero_any_improvement_succeeds() -> None:
    assert is_success(ACCURACY, 1e-9, 0.0)
    assert not is_success(ACCURACY, 0.0, 0.0)
    assert is_success(SECONDS, -1.0, 0.0)
    assert not is_success(SECONDS, 1.0, 0.0)
    assert is_near_zero(0.0) and is_near_zero(-1e-10) and not is_near_zero(0.003)


def test_nan_never_succeeds() -> None:
    assert not is_success(ACCURACY, float("nan"), 0.5)
    assert not is_success(ACCURACY, 0.5, float("nan"))


NOISY = Baseline(value=1.0, values=(0.9, 0.95, 1.0, 1.05, 1.1), source="measured")


def test_the_spread_is_the_margin_of_a_prediction_bound() -> None:
    """t(0.95, 4) = 2.13185 (any table), s = 0.0790569: 2.13185 * 0.0790569 * sqrt(1.2)."""
    assert NOISY.spread == pytest.approx(0.184624, abs=1e-6)


@pytest.mark.parametrize(
    ("metric", "value", "within", "clears"),
    [
        (SECONDS, 0.95, True, False),
        (SECONDS, 0.85, True, False),
        (SECONDS, 0.80, False, True),
        (SECONDS, 1.02, False, False),
        (ACCURACY, 1.05, True, False),
        (ACCURACY, 1.19, False, True),
    ],
)
def test_a_gain_that_another_run_of_the_starter_may_have_is_noise(metric: Metric, value: float, within: bool, clears: bool) -> None:
    assert (within_noise(metric, value, NOISY), clears_noise(metric, value, NOISY)) == (within, clears)


def test_a_gain_beyond_the_noise_is_no_success_below_ten_percent() -> None:
    steady = Baseline(value=1.0, values=(0.999, 1.0, 1.001), source="measured")
    assert not within_noise(ACCURACY, 1.05, steady) and clears_noise(ACCURACY, 1.05, steady) is False


def test_other_test_rows_are_noise_too() -> None:
    """hypot(0.184624, 1.6449 * 0.1) = 0.2473: more than either alone."""
    assert noise_margin(NOISY, 0.1) == pytest.approx(0.2473, abs=1e-4)
    assert clears_noise(ACCURACY, 1.22, NOISY) and clears_noise(ACCURACY, 1.22, NOISY, 0.1) is False
    assert within_noise(ACCURACY, 1.22, NOISY, 0.1) and not within_noise(ACCURACY, 1.25, NOISY, 0.1)


def test_a_starter_that_scores_the_same_with_every_seed_is_measured_by_its_rows() -> None:
    """Its seeds have no spread, so that any gain was beyond the noise; beside its rows, a gain of 1e-10 is chance."""
    random = np.random.default_rng(6)
    losses = random.exponential(1.0, 200)
    starter = row_score(losses)
    steady = Baseline(value=starter.value, values=(starter.value,) * 8, source="measured", resampled=starter.resampled)
    assert steady.spread == 0.0
    tiny = [row_score(losses + random.normal(0, 1e-9, 200)) for _ in range(400)]
    gains = [score for score in tiny if SECONDS.gain(score.value, steady.value) > 0]
    assert 150 < len(gains) < 250 and not any(within_noise(SECONDS, score.value, steady) for score in gains)
    found = [within_noise(SECONDS, score.value, steady, gain_error(score, steady)) for score in gains]
    assert len(gains) - sum(found) < 0.08 * len(tiny), "5% of all are beyond it, as the margin says"
    better = row_score(losses * 0.8)
    assert clears_noise(SECONDS, better.value, steady, gain_error(better, steady)) is True


def test_a_predictor_is_the_same_in_every_run_and_its_rows_alone_are_noise() -> None:
    mean = Baseline(value=1.0, values=(1.0,), source="predictor")
    assert clears_noise(ACCURACY, 1.2, mean) is None
    assert (clears_noise(ACCURACY, 1.2, mean, 0.1), clears_noise(ACCURACY, 1.2, mean, 0.15)) == (True, False)


def test_a_baseline_has_its_own_standard_error() -> None:
    assert NOISY.standard_error == pytest.approx(0.0790569 / math.sqrt(5), abs=1e-6)
    beside = NOISY.model_copy(update={"source": "side_by_side"})
    assert beside.standard_error == pytest.approx(0.0790569 / math.sqrt(5) * math.sqrt(math.pi / 2), abs=1e-6), "a median's"
    assert Baseline(value=1.0, values=(1.0,), source="measured").standard_error is None


def test_nothing_is_known_of_the_noise_of_a_single_value() -> None:
    assert not within_noise(SECONDS, 0.99, Baseline(value=1.0, values=(1.0,), source="measured"))
    assert not within_noise(SECONDS, 0.99, Baseline(value=1.0, source="paper"))
    assert clears_noise(SECONDS, 0.5, Baseline(value=1.0, source="paper")) is None
