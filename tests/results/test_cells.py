"""Runs counted together: cells, their rates and means, and what is counted apart."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.records import Baseline
from mlagentbench.results.cells import Cell, cells, columns
from mlagentbench.results.conditions import Conditions
from mlagentbench.results.counts import Counts
from mlagentbench.results.load import load
from tests import example_cells
from tests.example_cells import broken, counted, lost, won
from tests.example_runs import vectorization_steps, write_run


def cell(*runs: Counts) -> Cell:
    return example_cells.cell("a-task", "a/model", *runs)


def test_a_failure_that_was_not_the_agents_is_counted_apart() -> None:
    found = cell(won(0.5), lost(0.05), lost(), broken("infrastructure"), broken("cancelled"), broken("unfinished"))
    assert (found.successes, len(found.counted)) == (1, 3)
    assert found.rate is not None and found.rate.value == pytest.approx(1 / 3)
    assert found.apart == {"infrastructure": 1, "cancelled": 1, "unfinished": 1}
    assert found.improvements == [0.5, 0.05]
    assert found.improvement is not None and found.improvement.value == pytest.approx(0.275)


def test_an_ungraded_run_says_nothing_of_the_agent() -> None:
    found = cell(counted("final_answer", "ungraded"))
    assert found.rate is None and found.improvement is None and found.apart == {"ungraded": 1}


def test_pass_at_k_of_a_cell() -> None:
    found = cell(won(1.0), lost(), lost(), lost())
    assert found.pass_at(1) == 0.25 and found.pass_at(2) == 0.5 and found.pass_at(5) is None


def test_the_best_steps_rate_needs_every_run_graded_at_each_step() -> None:
    graded = [won(0.5, best_success=True), lost(0.0, best_success=True), lost(best_success=False)]
    found = cell(*graded, broken("infrastructure"))
    # Two of three: Wilson's interval by hand, with z = 1.95996.
    assert found.best_rate is not None
    assert found.best_rate == pytest.approx((2 / 3, 0.20766, 0.93851), abs=1e-5)
    assert cell(*graded, won(0.5)).best_rate is None


def test_the_calibrated_rate_needs_a_spread_wherever_a_submission_was_valid() -> None:
    measured = [lost(0.02, last_clears_noise=True), won(0.3, last_clears_noise=False), lost(last_clears_noise=False)]
    assert cell(*measured).calibrated_rate is not None and cell(*measured).calibrated_rate[0] == pytest.approx(1 / 3)
    assert cell(*measured, won(0.3)).calibrated_rate is None
    assert cell().calibrated_rate is None


def test_a_score_that_was_compared_with_nothing_is_counted_apart() -> None:
    found = cell(counted("final_answer", "no_improvement", baseline=None), lost())
    assert found.apart == {"no_baseline": 1} and len(found.counted) == 1


def test_means_are_over_the_runs_that_count_and_a_cost_that_is_unknown_makes_the_mean_unknown() -> None:
    runs = [lost(steps=10, seconds=60.0, tokens=1000, cost=0.5), lost(steps=20, seconds=90.0, tokens=3000, cost=1.0)]
    failed = broken(steps=1, seconds=1.0, tokens=1)
    found = cell(*runs, failed)
    assert (found.steps, found.seconds, found.tokens, found.cost) == (15, 75, 2000, 0.75)
    assert cell(*runs, lost(steps=30)).cost is None
    assert (cell(failed).steps, cell(failed).cost) == (None, None)


def test_flags_are_counted() -> None:
    found = cell(lost(flags=("within_noise", "paper_baseline")), lost(flags=("paper_baseline",)), broken("cancelled", flags=("cheated",)))
    assert found.flags == {"within_noise": 1, "paper_baseline": 2}


def test_runs_fall_into_cells_by_their_conditions(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"snapshots": False, "category": "code improvement", "published": datetime.date(2023, 9, 1)}
    write_run(tmp_path, "1", started=1.0, **facts)
    write_run(tmp_path, "2", started=2.0, isolation="none", **facts)
    write_run(tmp_path, "3", started=3.0, variant="full", **facts)
    write_run(tmp_path, "4", started=4.0, hardware={"cpu": "another"}, **facts)
    write_run(tmp_path, "5", started=5.0, **facts)
    write_run(tmp_path, "6", started=6.0, models={"agent": "scripted/demo.yaml", "fast": "a/smaller"}, **facts)
    write_run(tmp_path, "7", steps=vectorization_steps()[:3], finished=False, started=7.0, **facts)

    found = cells(load(tmp_path))

    assert [len(cell.runs) for cell in found] == [3, 1, 1, 1, 1]
    first = found[0]
    assert first.conditions == Conditions(
        "vectorization", "mini", "research (context_steps 3)", "scripted/demo.yaml", "bubblewrap", "AMD EPYC 9654"
    )
    assert (first.category, first.published) == ("code improvement", datetime.date(2023, 9, 1))
    assert first.apart == {"unfinished": 1} and first.successes == 2
    assert first.rate == pytest.approx((1.0, 0.34238, 1.0), abs=1e-5)  # 2 / (2 + 1.95996^2)
    assert first.best_rate == first.rate
    # 0.0030 s against 1.1 s, of which the starter's own runs differ by 0.004 s.
    assert first.calibrated_rate == first.rate
    assert first.tokens == 24_000 and first.steps == 8 and first.seconds == pytest.approx(27.5) and first.cost is None
    assert found[4].conditions.agent == "research (fast a/smaller, context_steps 3)"


def test_what_else_differs_among_the_runs_of_a_cell_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, "1", snapshots=False, started=1.0, data="one")
    write_run(tmp_path, "2", snapshots=False, started=2.0, limits={"steps": 10, "time": 18000}, data="two")
    write_run(tmp_path, "3", snapshots=False, started=3.0, data="one", baseline=Baseline(value=6.2, source="paper"))
    write_run(tmp_path, "4", snapshots=False, started=4.0, data="three", finished=False)

    [found] = cells(load(tmp_path))

    assert found.differences == (
        "limit steps differs: 50, 10",
        "prepared data differs: one, two",
        "baseline differs: side_by_side, paper",
    )


def test_a_column_is_an_agent_with_a_model() -> None:
    found = columns(
        [
            example_cells.cell("a", "gpt"),
            example_cells.cell("a", "claude"),
            example_cells.cell("b", "gpt"),
            example_cells.cell("a", "gpt", agent="react"),
        ]
    )

    assert {column: list(tasks) for column, tasks in found.items()} == {
        "research, gpt": ["a", "b"],
        "research, claude": ["a"],
        "react, gpt": ["a"],
    }


def test_cells_of_other_conditions_stand_in_columns_of_their_own_that_say_so() -> None:
    found = columns(
        [
            example_cells.cell("a", "gpt"),
            example_cells.cell("a", "gpt", isolation="none"),
            example_cells.cell("a", "gpt", hardware=""),
            example_cells.cell("b", "gpt"),
        ]
    )

    assert {column: list(tasks) for column, tasks in found.items()} == {
        "research, gpt, bubblewrap, one machine": ["a", "b"],
        "research, gpt, none, one machine": ["a"],
        "research, gpt, bubblewrap, unknown hardware": ["a"],
    }
    assert list(columns([example_cells.cell("a", "gpt", variant="mini"), example_cells.cell("b", "gpt")])) == [
        "research, gpt, mini",
        "research, gpt, full",
    ]


def test_no_two_cells_ever_share_a_place() -> None:
    """Names with commas in them could read alike."""
    found = columns([example_cells.cell("a", "y, z", agent="x"), example_cells.cell("a", "z", agent="x, y")])

    assert list(found) == ["x, y, z", "x, y, z (2)"] and all(list(tasks) == ["a"] for tasks in found.values())
