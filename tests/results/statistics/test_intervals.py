"""Each statistic against a number worked out by hand, or by another formula than the code's."""

from __future__ import annotations

import itertools
import math

import pytest

from mlagentbench.results.statistics import intervals


def wilson(successes: int, runs: int, z: float = 1.959963984540054) -> tuple[float, float]:
    rate = successes / runs
    middle = (rate + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z / (1 + z * z / runs) * math.sqrt(rate * (1 - rate) / runs + z * z / (4 * runs * runs))
    return middle - half, middle + half


@pytest.mark.parametrize(("successes", "runs"), [(0, 8), (1, 8), (3, 8), (8, 8), (0, 1), (25, 100)])
def test_wilsons_interval_is_its_formula(successes: int, runs: int) -> None:
    found = intervals.success_rate(successes, runs)
    assert found.value == successes / runs
    assert (found.low, found.high) == pytest.approx(wilson(successes, runs), abs=1e-9)


@pytest.mark.parametrize(("successes", "runs"), [(1, 0), (9, 8), (-1, 8)])
def test_a_rate_of_nothing_is_refused(successes: int, runs: int) -> None:
    with pytest.raises(ValueError, match="have no rate"):
        intervals.success_rate(successes, runs)


def test_pass_at_k_is_the_share_of_choices_with_a_success() -> None:
    runs = [True] * 3 + [False] * 5
    for k in range(1, 9):
        choices = list(itertools.combinations(runs, k))
        assert intervals.pass_at_k(3, 8, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert intervals.pass_at_k(3, 8, 9) is None
    assert intervals.pass_at_k(0, 8, 8) == 0


def test_several_tests_at_once_are_adjusted_for_one_another() -> None:
    # Holm: 0.01 * 4; 0.02 * 3; 0.03 * 2, which is no smaller than the one before; 0.9 * 1.
    assert intervals.adjusted([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert intervals.adjusted([0.4, 0.6]) == pytest.approx([0.8, 0.8])
    assert intervals.adjusted([0.7, 0.8]) == [1.0, 1.0]
    assert intervals.adjusted([]) == []


def test_an_average_of_rates_is_as_sure_as_its_runs_together() -> None:
    # The variance of the mean is a quarter of 1/4 + 1/2 that of one run: as many as 4 / (3/4) = 16/3 runs of one rate of 5/8.
    found = intervals.average_rate([(3, 4), (1, 2)])
    assert found is not None and found.value == pytest.approx((3 / 4 + 1 / 2) / 2)
    z, runs = 1.959963984540054, 16 / 3
    middle = (5 / 8 + z**2 / (2 * runs)) / (1 + z**2 / runs)
    half = z / (1 + z**2 / runs) * math.sqrt(5 / 8 * 3 / 8 / runs + z**2 / (4 * runs**2))
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half))
    # Tasks with as many runs each are as sure as one with all of them: also without a success, and with one run a task.
    assert intervals.average_rate([(0, 8)] * 4) == pytest.approx(intervals.success_rate(0, 32))
    assert intervals.average_rate([(1, 1)] * 3 + [(0, 1)] * 5) == pytest.approx(intervals.success_rate(3, 8))
    assert intervals.average_rate([(3, 8)]) == intervals.success_rate(3, 8), "of one task Wilson's"
    assert intervals.average_rate([]) is None
    with pytest.raises(ValueError, match="have no rate"):
        intervals.average_rate([(1, 2), (0, 0)])


def test_an_average_of_rates_holds_the_true_one_about_as_often_as_it_says() -> None:
    import numpy as np

    rates = np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    draws = np.random.default_rng(7).binomial(8, rates, (500, len(rates)))
    found = [intervals.average_rate([(int(successes), 8) for successes in draw]) for draw in draws]
    held = sum(interval is not None and interval.low <= rates.mean() <= interval.high for interval in found)
    assert 0.93 <= held / 500 <= 1.0
