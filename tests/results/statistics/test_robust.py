"""Summaries over tasks, against scipy's and rliable's formulas, and their intervals against simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean, ttest_1samp, ttest_ind

from mlagentbench.results.statistics.robust import (
    average,
    best_of,
    difference,
    interquartile_mean,
    mean,
    median,
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


def test_medians_and_interquartile_means_of_few_runs_have_intervals_that_hold_or_none() -> None:
    draw = np.random.default_rng(0)
    held = [0, 0]
    for _ in range(60):
        groups = draw.normal(0, 1, (13, 3)).tolist()
        for place, statistic in enumerate((median, interquartile_mean)):
            found = statistic(groups)
            held[place] += found is not None and found.low <= 0 <= found.high
    assert min(held) >= 54, "93 to 97 of 100; plain percentiles hold 89 to 91"
    assert median([[1.0, 2.0, 4.0]]) == (2.0, 2.0, 2.0), "even the extremes of three hold it in 75 of 100 only"


def test_one_diverged_run_moves_neither_median_nor_interquartile_mean() -> None:
    groups = [[0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, -1e9]]
    middle, robust, plain = median(groups), interquartile_mean(groups), average(groups)
    assert middle is not None and robust is not None and plain is not None
    assert middle.value == pytest.approx(0.2) and robust.value == pytest.approx(0.2) and plain.value < -1e7


def test_the_probability_of_improvement_is_the_mann_whitney_statistic() -> None:
    draw = np.random.default_rng(2)
    first, second = draw.integers(0, 5, (3, 8)), draw.integers(0, 4, (3, 6))
    expected = np.mean([mannwhitneyu(one, other).statistic / (8 * 6) for one, other in zip(first, second, strict=True)])
    found = probability_of_improvement(first.tolist(), second.tolist())
    assert found is not None and found.value == pytest.approx(expected)
    assert 0.05 < found.high - found.low < 0.5 and found.low < found.value < found.high
    assert probability_of_improvement([[1.0, 2.0]], [[0.0]]) == (1.0, 1.0, 1.0), "too few runs for an interval"


def test_an_interquartile_mean_and_a_median_count_each_task_once() -> None:
    """Runs of one task are as good as none of weight: twenty of the first are one of the second."""
    many_of_the_first, many_of_the_second = [[0.2] * 20, [0.6]], [[0.2], [0.6] * 20]
    for statistic in (interquartile_mean, median):
        one, other = statistic(many_of_the_first), statistic(many_of_the_second)
        assert one is not None and other is not None and one.value == pytest.approx(0.4) and other.value == pytest.approx(0.4)


def test_the_best_of_k_is_the_mean_over_all_ways_to_draw_k() -> None:
    values = [0.3, -0.1, 0.9, 0.0, 0.4]
    found = best_of([values, [1.0] * 5], 5)
    for k, best in enumerate(found, start=1):
        expected = np.mean([max(chosen) for chosen in itertools.combinations(values, k)])
        assert best.value == pytest.approx((expected + 1.0) / 2) and best.low <= best.value <= best.high


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_interval_carries_the_uncertainty_of_a_baseline_that_runs_share(seeds: int) -> None:
    """Over many measurements of the baseline, intervals that ignore it hold the truth far less often than they say."""
    draw = np.random.default_rng(0)
    held = [0, 0]
    for _ in range(150):
        baseline, scores = draw.normal(1.0, 0.1, seeds), draw.normal(1.2, 0.05, 8)
        measured = float(baseline.mean())
        improvements = (scores / measured - 1).tolist()
        moves = ((baseline - measured) * scores.mean() / measured**2).tolist()
        for place, shared in enumerate(([], [[moves]])):
            found = average([improvements], shared)
            held[place] += found is not None and found.low <= 0.2 <= found.high
    assert held[0] < 80 and held[1] >= 130, "about 40 to 55 and 92 to 95 of 100"


def test_a_difference_over_one_task_is_welchs() -> None:
    first, second = [0.3, 0.5, 0.9], [0.1, 0.2, 0.2, 0.4]
    found, expected = difference([first], [second]), ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert found is not None and (found.low, found.high) == pytest.approx((expected.low, expected.high))
    single = difference([[0.5]], [[0.1, 0.2]])
    assert single is not None and math.isnan(single.low), "a single run has no spread"
    assert difference([], []) is None
