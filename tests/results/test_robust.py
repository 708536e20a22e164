"""Summaries over tasks, against scipy's and rliable's formulas, and their intervals against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean, ttest_1samp, ttest_ind

from mlagentbench.results.robust import (
    average,
    difference,
    interquartile_mean,
    mean,
    median,
    performance_profile,
    probability_of_improvement,
)


def test_a_few_runs_of_one_task_have_students_interval() -> None:
    found = average([[1.0, 2.0, 4.0]])
    expected = ttest_1samp([1.0, 2.0, 4.0], 0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_two_values_have_no_interval_and_none_no_mean() -> None:
    assert average([[1.0, 3.0]]) == average([[1.0], [3.0]]) == (2.0, 2.0, 2.0)
    assert average([]) is None and mean([]) is None


def test_an_amount_is_not_below_what_it_can_be() -> None:
    found = mean([1.0, 1.0, 40.0], least=0.0)
    assert found is not None and found.low == 0.0 and found.high > 40


def test_each_task_counts_once_however_many_runs_it_has() -> None:
    found = average([[0.0] * 30 + [0.2], [1.0, 1.0, 1.0]])
    assert found is not None and found.value == pytest.approx((0.2 / 31 + 1) / 2)


def test_equal_values_are_one_number() -> None:
    assert average([[2.0, 2.0, 2.0], [3.0, 3.0]]) == (2.5, 2.5, 2.5)


def test_single_runs_are_compared_across_tasks() -> None:
    found = average([[0.1], [0.5], [0.9], [0.4]])
    expected = ttest_1samp([0.1, 0.5, 0.9, 0.4], 0).confidence_interval(0.95)
    assert found is not None and (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("runs", [3, 8])
@pytest.mark.parametrize("tasks", [1, 4])
def test_the_interval_holds_the_mean_as_often_as_it_says(tasks: int, runs: int) -> None:
    draw = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        found = average(draw.exponential(1.0, (tasks, runs)).tolist())
        held += found is not None and found.low <= 1.0 <= found.high
    assert held >= 84, "about 88 to 95 of 100 for these skewed values; the percentile bootstrap holds 70 to 83"


def test_the_interquartile_mean_is_rliables() -> None:
    groups = np.random.default_rng(1).normal(0, 1, (5, 8))
    found = interquartile_mean(groups.tolist())
    assert found is not None and found.value == pytest.approx(trim_mean(groups, 0.25, axis=None))
    assert found.low < found.value < found.high


def test_one_diverged_run_moves_neither_median_nor_interquartile_mean() -> None:
    groups = [[0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, -1e9]]
    middle, robust, plain = median(groups), interquartile_mean(groups), average(groups)
    assert middle is not None and robust is not None and plain is not None
    assert middle.value == pytest.approx(0.2) and robust.value == pytest.approx(0.2) and plain.value < -1e7


def test_a_performance_profile_is_the_share_above_each_threshold() -> None:
    groups = [[0.0, 1.0], [1.0, 1.0, 1.0, 3.0]]
    assert performance_profile(groups, [-1.0, 0.0, 0.5, 1.0, 3.0]) == [1.0, 0.75, 0.75, 0.125, 0.0]


def test_the_probability_of_improvement_is_the_mann_whitney_statistic() -> None:
    draw = np.random.default_rng(2)
    first, second = draw.integers(0, 5, (3, 8)), draw.integers(0, 4, (3, 6))
    expected = np.mean([mannwhitneyu(one, other).statistic / (8 * 6) for one, other in zip(first, second, strict=True)])
    assert probability_of_improvement(first.tolist(), second.tolist()) == pytest.approx(expected)


def test_a_difference_over_one_task_is_welchs() -> None:
    first, second = [0.3, 0.5, 0.9], [0.1, 0.2, 0.2, 0.4]
    found, expected = difference([first], [second]), ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert found is not None and (found.low, found.high) == pytest.approx((expected.low, expected.high))
    single = difference([[0.5]], [[0.1, 0.2]])
    assert single is not None and math.isnan(single.low), "a single run has no spread"
    assert difference([], []) is None
