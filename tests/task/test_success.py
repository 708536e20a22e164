"""Success and noise, with expectations worked out by hand."""

from __future__ import annotations

import pytest

from mlagentbench.records import Baseline
from mlagentbench.task.spec import Metric
from mlagentbench.task.success import is_near_zero, is_success, within_noise

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


@pytest.mark.parametrize(
    ("metric", "value", "noisy"),
    [
        (SECONDS, 0.95, True),
        (SECONDS, 0.90, True),
        (SECONDS, 0.80, False),
        (SECONDS, 1.02, False),
        (ACCURACY, 1.05, True),
        (ACCURACY, 1.2, False),
    ],
)
def test_a_gain_no_larger_than_half_the_baselines_range_may_be_noise(metric: Metric, value: float, noisy: bool) -> None:
    baseline = Baseline(value=1.0, values=(0.875, 1.125), source="measured")  # its spread is 0.125
    assert within_noise(metric, value, baseline) is noisy


def test_nothing_is_known_of_the_noise_of_a_single_value() -> None:
    assert not within_noise(SECONDS, 0.99, Baseline(value=1.0, values=(1.0,), source="measured"))
    assert not within_noise(SECONDS, 0.99, Baseline(value=1.0, source="paper"))
