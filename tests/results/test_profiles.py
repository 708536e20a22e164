"""Columns compared by all of their runs."""

from __future__ import annotations

import pytest

from mlagentbench.results.cells import rate_over_tasks
from mlagentbench.results.profiles import profiles, superiorities
from tests.example_cells import broken, column, lost, won


def test_a_profile_is_the_share_of_runs_above_each_level_and_at_10_percent_the_success_rate() -> None:
    tasks = column(a=[won(0.5), lost(0.05), lost(-0.3), lost()], b=[won(0.12), broken()])

    found = {point.level: point for point in profiles({"one": tasks})}

    # a: all but the run without a submission, then 2 of 4, then 1; b: always its one run, up to 12%.
    assert {level: found[level].share.value for level in (-0.5, 0.0, 0.1, 0.2, 0.5)} == {
        **{-0.5: (3 / 4 + 1) / 2, 0.0: (2 / 4 + 1) / 2, 0.1: (1 / 4 + 1) / 2},
        **{0.2: 1 / 8, 0.5: 0},
    }
    assert found[0.1].share == rate_over_tasks(tasks.values())
    assert (found[0.1].tasks, found[0.1].runs) == (2, 5)


def test_over_a_baseline_of_0_any_gain_is_above_every_level() -> None:
    tasks = column(a=[won(None, gain=0.4, baseline=0.0), lost(None, gain=-0.1, score=1.0, baseline=0.0)])

    assert {point.share.value for point in profiles({"one": tasks})} == {0.5}


def test_the_probability_of_improvement_is_over_all_pairs_of_runs_of_each_task() -> None:
    one = column(a=[won(0.5), lost(0.1), lost()], b=[won(0.3)] * 3, alone=[won()])
    other = column(a=[won(0.3), lost(), lost()], b=[won(0.3)] * 3)

    [found] = superiorities({"one": one, "other": other})

    # a: 0.5 beats all three, 0.1 beats the two without a submission, and nothing ties with them: (3 + 2 + 2 * 1/2) / 9. b: all tie.
    assert found.probability.value == pytest.approx((6 / 9 + 1 / 2) / 2) and found.tasks == 2
    assert found.probability.low < found.probability.value < found.probability.high


def test_gains_are_ranked_where_a_baseline_is_0() -> None:
    better = [won(None, gain=gain, baseline=0.0) for gain in (0.5, 0.6, 0.7)]
    worse = [won(None, gain=0.4, baseline=0.0), lost(None, gain=-1.0, score=1.0, baseline=0.0), lost()]

    [found] = superiorities({"one": column(a=better), "other": column(a=worse)})

    assert found.probability.value == 1.0
