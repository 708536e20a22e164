"""Two questions about two agents, each with a test and an interval that agree, against scipy, statsmodels and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import fisher_exact
from statsmodels.stats.contingency_tables import StratifiedTable

from mlagentbench.results.statistics.inference import (
    TaskCounts,
    _restricted,
    _score_interval,
    on_other_tasks,
    on_these_tasks,
    power_of,
    runs_needed,
)

PAIRS = [TaskCounts(*each) for each in [(8, 8, 0, 8), (5, 8, 1, 8), (3, 5, 2, 9), (0, 8, 0, 8), (1, 1, 0, 1), (12, 40, 3, 25)]]


@pytest.mark.parametrize("task", PAIRS)
def test_one_task_is_fishers_test(task: TaskCounts) -> None:
    found = on_these_tasks([task])
    x, n, y, m = task
    assert found is not None and found.difference.value == pytest.approx(x / n - y / m)
    if n == m:  # else the two tails may be joined in another way
        assert found.p == pytest.approx(max(fisher_exact([[x, n - x], [y, m - y]])[1], _score_interval([task])[3]))


def test_the_interval_is_the_published_one() -> None:
    """Newcombe 1998 (Statistics in Medicine 17, table II): 56 of 70 and 48 of 80, by Miettinen and Nurminen's method."""
    found = on_these_tasks([TaskCounts(56, 70, 48, 80)])
    assert found is not None
    assert (found.difference.low, found.difference.high) == pytest.approx((0.0528, 0.3382), abs=5e-5)


@pytest.mark.parametrize("difference", [-0.4, -0.05, 0.0, 0.2, 0.7])
def test_the_restricted_rates_are_the_likeliest(difference: float) -> None:
    for x, n, y, m in PAIRS:

        def unlikely(rate: float, x: int = x, n: int = n, y: int = y, m: int = m) -> float:
            logs = (xlogy(x, rate), xlogy(n - x, 1 - rate), xlogy(y, rate - difference), xlogy(m - y, 1 - rate + difference))
            return -float(sum(logs))

        first, second = _restricted(*(np.array([float(each)]) for each in (x, n, y, m)), difference)
        best = minimize_scalar(unlikely, bounds=(max(0.0, difference), min(1.0, 1 + difference)), method="bounded").fun
        assert unlikely(float(first[0])) <= best + 1e-4 and first[0] - second[0] == pytest.approx(difference)


def test_eight_of_eight_against_none_is_told_apart_on_one_task() -> None:
    found = on_these_tasks([TaskCounts(8, 8, 0, 8)])
    assert found is not None and found.p == pytest.approx(2 / math.comb(16, 8))
    assert found.difference.low > 0.5 and found.p == found.smallest_p


def test_many_tasks_are_the_mantel_haenszel_test() -> None:
    counts = [TaskCounts(30, 60, 20, 55), TaskCounts(11, 50, 9, 60), TaskCounts(40, 45, 30, 50)]
    found = on_these_tasks(counts)
    table = StratifiedTable([np.array([[x, n - x], [y, m - y]]) for x, n, y, m in counts])
    plain, corrected = (table.test_null_odds(correction=correction).pvalue for correction in (False, True))
    assert found is not None and plain < found.p < corrected, "the exact test is between its two normal forms"


def test_an_interval_and_its_test_agree() -> None:
    draw = np.random.default_rng(0)
    for _ in range(150):
        tasks = draw.integers(1, 7)
        runs = draw.integers(1, 9, (tasks, 2))
        rates = draw.random((tasks, 2))
        successes = draw.binomial(runs, rates)
        these = on_these_tasks([TaskCounts(int(a), int(n), int(b), int(m)) for (a, b), (n, m) in zip(successes, runs, strict=True)])
        differences = successes[:, 0] / runs[:, 0] - successes[:, 1] / runs[:, 1]
        others = on_other_tasks(draw.choice([differences, differences + 0.3], p=[0.5, 0.5]).clip(-1, 1).tolist())
        for found in (these, others):
            assert found is not None
            assert (found.p <= 0.05) == (not found.difference.low <= 0 <= found.difference.high), found
            assert found.difference.low - 1e-9 <= found.difference.value <= found.difference.high + 1e-9
            assert found.p >= min(1.0, found.smallest_p) - 1e-12


def test_swapping_the_agents_turns_the_result_round() -> None:
    one = on_these_tasks([TaskCounts(5, 8, 1, 7), TaskCounts(2, 3, 2, 9)])
    other = on_these_tasks([TaskCounts(1, 7, 5, 8), TaskCounts(2, 9, 2, 3)])
    assert one is not None and other is not None
    assert one.p == pytest.approx(other.p)
    assert (one.difference.low, one.difference.high) == pytest.approx((-other.difference.high, -other.difference.low), abs=1e-6)


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_fewer_than_six_tasks_say_nothing_of_others(tasks: int) -> None:
    found = on_other_tasks([1.0] * tasks)
    assert found is not None and not found.can_tell
    assert (found.difference.low, found.difference.high) == (-1.0, 1.0)
    assert found.p == 2 / 2**tasks


def test_six_tasks_that_agree_say_something_of_others() -> None:
    found = on_other_tasks([0.3, 0.2, 0.5, 0.1, 0.6, 0.7])
    assert found is not None and found.can_tell and found.p == 2 / 2**6 and found.difference.low == pytest.approx(0.1)


def test_many_tasks_are_sampled_and_agree_with_all_subsets() -> None:
    values = np.random.default_rng(1).normal(0.15, 0.3, 17).clip(-1, 1)
    every, sampled = on_other_tasks(values[:16].tolist()), on_other_tasks(values.tolist())
    assert every is not None and sampled is not None
    assert sampled.p == pytest.approx(every.p, abs=0.05)


@pytest.mark.parametrize("rates", [[(0.9, 0.2)], [(0.6, 0.3)] * 6, [(1.0, 0.0)]])
def test_the_runs_needed_reach_the_power_of_the_very_test(rates: list[tuple[float, float]]) -> None:
    runs = runs_needed(rates)
    assert runs is not None
    draw = np.random.default_rng(2)
    rejected = []
    for _ in range(150):
        successes = draw.binomial(runs, np.array(rates))
        found = on_these_tasks([TaskCounts(int(a), runs, int(b), runs) for a, b in successes])
        rejected.append(found is not None and found.p <= 0.05)
    assert np.mean(rejected) >= 0.75
    first, second = np.array(rates).T
    assert runs == 1 or power_of(first, second, runs - 1) < 0.8


def test_equal_rates_need_no_number_of_runs() -> None:
    assert runs_needed([(0.5, 0.5)]) is None and runs_needed([]) is None
    assert runs_needed([(0.51, 0.5)]) is None, "more than 500 runs a task"


@pytest.mark.parametrize(("rate", "runs", "tasks"), [(0.5, 8, 1), (0.2, 3, 5), (0.05, 8, 13), (0.5, 2, 13)])
def test_equal_agents_are_rarely_told_apart(rate: float, runs: int, tasks: int) -> None:
    draw = np.random.default_rng(3)
    successes = draw.binomial(runs, rate, (250, tasks, 2))
    for question in ("these", "others"):
        found = [
            on_these_tasks([TaskCounts(int(a), runs, int(b), runs) for a, b in one])
            if question == "these"
            else on_other_tasks(((one[:, 0] - one[:, 1]) / runs).tolist())
            for one in successes
        ]
        assert np.mean([each is not None and each.p <= 0.05 for each in found]) <= 0.08


@pytest.mark.parametrize("task", [TaskCounts(9, 8, 0, 8), TaskCounts(0, 0, 1, 2), TaskCounts(-1, 3, 0, 3)])
def test_counts_that_cannot_be_are_refused(task: TaskCounts) -> None:
    with pytest.raises(ValueError, match="runs"):
        on_these_tasks([task])
