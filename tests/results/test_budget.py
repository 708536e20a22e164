"""What runs reached for what they spent, against numbers worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.records import Baseline
from mlagentbench.results.budget import at_attempts, at_budgets, cost_per_success
from mlagentbench.results.cells import cells, columns, improvement_over_tasks, rate_over_tasks
from mlagentbench.results.load import load
from tests.example_cells import broken, column, lost, won
from tests.example_runs import ExampleStep, write_run

MEASURED = Baseline(value=1.0, values=(0.98, 1.0, 1.02), source="measured")


def write(logs: Path, name: str, *scores: float | None, **more: Any) -> None:
    """Write a run of which each step takes an hour, 1,000 tokens in and 220 out, and half a dollar."""
    steps = [ExampleStep("Look", score=score, reason=None if score else "none", seconds=3600.0, tokens=1000) for score in scores]
    verdict = "no_submission" if scores[-1] is None else "success" if scores[-1] < 0.9 else "no_improvement"
    write_run(logs, name, steps, **{"baseline": MEASURED, "verdict": verdict, "cost": 0.5, "snapshots": False, "flags": (), **more})


def test_success_and_improvement_by_what_was_spent(tmp_path: Path) -> None:
    write(tmp_path, "one", None, 0.8, 0.5)
    write(tmp_path, "two", 1.0, 0.95, 0.95, 0.95, 0.7)
    by_column = columns(cells(load(tmp_path)))

    found = {(each.spent, each.budget): each for each in at_budgets(by_column)}

    rates = {budget: each.rate.value for (spent, budget), each in found.items() if spent == "steps"}
    assert rates == {1: 0, 2: 0.5, 3: 0.5, 5: 1}
    improvements = {budget: each.improvement and each.improvement.value for (spent, budget), each in found.items() if spent == "steps"}
    assert improvements == pytest.approx({1: 0, 2: (0.2 + 0.05) / 2, 3: (0.5 + 0.05) / 2, 5: 0.4})
    # 1.5 hours are one step's, 2,000 tokens too, and so are 70 cents.
    for spent, less, enough in (("hours", 1.5, 2), ("tokens", 2000, 3000), ("dollars", 0.7, 1)):
        assert (found[spent, less].rate.value, found[spent, enough].rate.value) == (0, 0.5)
    tasks = next(iter(by_column.values())).values()
    for spent, most in (("steps", 5), ("hours", 5), ("tokens", 7000), ("dollars", 3)):
        last = found[spent, most]
        assert (last.rate, last.improvement) == (rate_over_tasks(tasks), improvement_over_tasks(tasks)), "with all spent it is the run's"


def test_an_amount_that_is_not_known_and_steps_that_were_not_graded_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a", "one", 0.8, cost=None)
    write(tmp_path / "a", "two", 0.8)
    assert {each.spent for each in at_budgets(columns(cells(load(tmp_path / "a"))))} == {"steps", "tokens", "hours"}

    assert at_budgets({"one": column(a=[won(0.5)])}) == [], "no step of this run was graded"


def test_attempts_are_averaged_over_tasks_up_to_the_fewest_runs() -> None:
    tasks = column(a=[won(0.4), lost(0.0), lost(), lost(-0.5)], b=[won(0.2), won(0.2), broken()])

    first, second = at_attempts({"one": tasks})

    assert (first.k, first.pass_at_k.value, first.tasks) == (1, (1 / 4 + 1) / 2, 2)
    assert first.pass_at_k == rate_over_tasks(tasks.values())
    # Of a, 3 of the 6 pairs have the success in them.
    assert second.pass_at_k.value == pytest.approx((3 / 6 + 1) / 2)
    # Of a, 3 pairs reach 0.4, and 3 the starter's 0: one without a submission leaves it as it was, and the worst is not chosen.
    assert second.best_of_k is not None and second.best_of_k.value == pytest.approx((3 / 6 * 0.4 + 0.2) / 2)


def test_what_a_success_costs() -> None:
    tasks = column(a=[won(cost=2.0), lost(cost=4.0), lost(cost=3.0), lost(cost=3.0)], b=[won(cost=1.0)] * 20)

    found = cost_per_success(tasks)

    # Each task counts once: (3 + 1) dollars for (1/4 + 1) successes.
    assert found is not None and found.value == pytest.approx(4 / 1.25) and found.low < found.value < found.high < math.inf
    assert cost_per_success(column(a=[lost(cost=1.0)])) is None, "without a success it has no bound"
    assert cost_per_success(column(a=[won(cost=1.0), lost()])) is None, "the cost of a run is unknown"
    rarely = cost_per_success(column(a=[won(cost=1.0), *[lost(cost=1.0)] * 7]))
    assert rarely is not None and rarely.value == 8 and rarely.high == math.inf, "of a third of the resamples none succeeds"
