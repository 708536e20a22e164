"""Whether a difference changes over tasks with an amount: what was planted is found, and nothing where nothing was."""

from __future__ import annotations

import numpy as np
import pytest

from mlagentbench.results.statistics.trends import Trend, trend

TASKS, RUNS, EXPERIMENTS = 13, 8, 300


def experiment(seed: int, planted: float, benefit: float = 0.0) -> Trend:
    """The trend of an experiment: 13 tasks of 4 to 50 steps, 8 runs with and 8 without, in success rates.

    Runs that take more steps succeed more often by themselves, so that steps and success are not independent within a column.
    """
    draw = np.random.default_rng(seed)
    usual = 2 ** draw.uniform(2, 5.6, TASKS)
    amounts, differences = [], []
    for middle in usual:
        steps = draw.poisson(middle, (2, RUNS))
        own = 0.4 + 0.1 * (steps - middle) / np.sqrt(middle)
        chance = own + np.array([[benefit + planted * (np.log2(1 + middle) - 4)], [0.0]])
        won = draw.random((2, RUNS)) < np.clip(chance, 0.02, 0.98)
        amounts.append(float(steps.mean()))
        differences.append(float(won[0].mean() - won[1].mean()))
    found = trend(amounts, differences)
    assert found is not None
    return found


def test_a_planted_trend_is_recovered() -> None:
    found = [experiment(seed, planted=0.2) for seed in range(EXPERIMENTS)]
    assert np.mean([each.slope.value for each in found]) == pytest.approx(0.19, abs=0.03)
    assert np.mean([each.slope.low > 0 for each in found]) > 0.6
    assert np.mean([each.p <= 0.05 for each in found]) == np.mean([each.slope.low > 0 or each.slope.high < 0 for each in found])
    assert np.mean([each.above - each.below for each in found]) > 0.2


@pytest.mark.parametrize("benefit", [0.0, 0.3])
def test_none_is_found_where_none_was_planted(benefit: float) -> None:
    """A benefit that is the same for all tasks is no trend, and neither is success that comes with steps in both columns."""
    found = [experiment(seed, planted=0.0, benefit=benefit) for seed in range(EXPERIMENTS)]
    assert 0.02 <= np.mean([each.p <= 0.05 for each in found]) <= 0.08
    assert np.mean([each.slope.value for each in found]) == pytest.approx(0.0, abs=0.02)


def test_a_line_by_hand() -> None:
    found = trend([0, 1, 3, 7], [0.1, 0.2, 0.3, 0.4])
    assert found is not None
    assert found.slope == pytest.approx((0.1, 0.1, 0.1))
    assert (found.tasks, found.below, found.above) == (4, pytest.approx(0.15), pytest.approx(0.35))
    assert found.p == pytest.approx(0.0, abs=1e-6)


def test_too_few_tasks_and_equal_amounts_say_nothing() -> None:
    assert trend([1, 2, 3], [0.1, 0.2, 0.3]) is None
    assert trend([5, 5, 5, 5], [0.1, 0.2, 0.3, 0.4]) is None
