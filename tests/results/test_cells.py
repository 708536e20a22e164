"""Runs counted together: cells, their rates and means, and what is counted apart."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.records import Baseline
from mlagentbench.results.cells import Cell, bounds_over_tasks, cells, columns, rate_over_tasks
from mlagentbench.results.conditions import Conditions
from mlagentbench.results.counts import Counts
from mlagentbench.results.frames import runs_frame
from mlagentbench.results.load import load
from tests import example_cells
from tests.example_cells import broken, counted, lost, won
from tests.example_runs import ExampleStep, vectorization_steps, write_run


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


def test_a_cell_with_a_score_that_was_compared_with_nothing_has_no_rate(tmp_path: Path) -> None:
    """Else six excellent runs without a baseline and two without a submission read 0% of two runs."""
    for number in range(6):
        write_run(tmp_path, f"excellent-{number}", baseline=None, snapshots=False)
    for number in range(2):
        write_run(tmp_path, f"nothing-{number}", [ExampleStep("Look")], baseline=None, verdict="no_submission", snapshots=False)
    runs = load(tmp_path)

    [found] = cells(runs)

    assert (found.rate, found.improvement, found.bounds, found.counted) == (None, None, None, ())
    assert found.apart == {"no_baseline": 8}
    assert not runs_frame(runs)["counted"].any(), "the rows of the runs say the same"
    column = {**example_cells.column(b=[won(), won()]), "a": found}
    assert rate_over_tasks(column.values()) == cell(won(), won()).rate, "it enters no average"


def test_what_was_left_out_bounds_the_rate() -> None:
    found = cell(won(), won(), lost(), lost(), broken(), counted("final_answer", "ungraded"), broken("cancelled"))
    assert found.rate is not None and found.rate.value == 0.5
    assert found.bounds == (2 / 6, 4 / 6, 2), "of six; a cancelled run is its user's"
    assert cell(won(), lost()).bounds == (0.5, 0.5, 0)
    assert cell(broken()).bounds == (0.0, 1.0, 1), "a cell without a rate may have any"
    assert bounds_over_tasks([found, cell(won()), cell(broken())]) == (
        pytest.approx((1 / 3 + 1 + 0) / 3),
        pytest.approx((2 / 3 + 2) / 3),
        3,
    )


def test_cheating_takes_a_success_away_and_makes_the_submission_invalid(tmp_path: Path) -> None:
    write_run(tmp_path, "honest", snapshots=False, flags=())
    write_run(tmp_path, "cheated", snapshots=False, flags=("cheated",))

    [found] = cells(load(tmp_path))

    assert found.successes == 1 and len(found.counted) == 2 and found.flags == {"cheated": 1}
    [cheated] = [run for run in found.runs if run.flags]
    assert (cheated.verdict, cheated.score is not None, cheated.valid) == ("invalid_submission", True, False)
    assert not any(cheated.last_success.values()) and not cheated.last_clears_noise
    assert cheated.best_success is not None and not any(cheated.best_success.values()) and not cheated.best_clears_noise
    assert len(found.improvements) == 1 and [after.success for after in cheated.progress or ()] == [False] * 8


def test_over_a_baseline_of_0_gains_are_absolute() -> None:
    zero = cell(won(None, gain=0.4, baseline=0.0), won(None, gain=0.2, baseline=0.0), lost())
    assert (zero.improvements, zero.improvement, len(zero.valid)) == ([], None, 2)
    assert zero.gain == (pytest.approx(0.3),) * 3
    assert zero.averaged == [] and cell(lost(), lost()).averaged == [0.0, 0.0]


def test_one_diverged_run_is_clipped_and_counted() -> None:
    found = cell(won(0.5), won(0.3), won(0.1), lost(-4e8))
    assert found.clipped == 1 and found.improvement is not None and found.improvement.value == pytest.approx((0.5 + 0.3 + 0.1 - 1) / 4)


def test_a_baseline_that_runs_share_widens_their_interval() -> None:
    values = (0.9, 1.0, 1.1)
    runs = [won(gain, score=1 + gain, baseline_values=values, move=1 + gain) for gain in (0.2, 0.21, 0.22, 0.2, 0.21)]
    alone = cell(*(run._replace(baseline_values=()) for run in runs))
    shared = cell(*runs)
    assert alone.improvement is not None and shared.improvement is not None
    assert shared.improvement.high - shared.improvement.low > 10 * (alone.improvement.high - alone.improvement.low)
    # The delta method: 1.208 times the standard error of the baseline, 0.1 / sqrt(3), at Student's 4.30 for about two degrees of freedom.
    assert shared.improvement.high - shared.improvement.value == pytest.approx(1.208 * 0.1 / 3**0.5 * 4.30, rel=0.02)
    flipped = cell(*(run._replace(success_within_baseline=(False, True)) for run in runs))
    assert flipped.rate is not None and alone.rate is not None and flipped.rate.low == 0 and alone.rate.low > 0.5


def test_runs_under_other_limits_stand_in_columns_of_their_own(tmp_path: Path) -> None:
    for number, steps in enumerate((5, 50, 50)):
        write_run(tmp_path, f"one-{number}", snapshots=False, limits={"steps": steps}, agent_options={})
    write_run(tmp_path, "other", snapshots=False, task="imdb", limits={"steps": 50, "time": 600}, agent_options={})
    found = columns(cells(load(tmp_path)))
    assert {column: {task: len(cell.runs) for task, cell in by_task.items()} for column, by_task in found.items()} == {
        "research, scripted/demo.yaml, limit steps 5": {"vectorization": 1},
        "research, scripted/demo.yaml, limit steps 50": {"vectorization": 2, "imdb": 1},
    }, "a task's own limit of time splits no column"


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
    assert first.conditions._replace(limits=()) == Conditions(
        "vectorization", "mini", "research (context_steps 3)", "scripted/demo.yaml", "bubblewrap", "AMD EPYC 9654"
    )
    assert (first.category, first.published) == ("code improvement", datetime.date(2023, 9, 1))
    assert first.apart == {"unfinished": 1} and first.successes == 2
    assert first.rate == pytest.approx((1.0, 0.34238, 1.0), abs=1e-5)  # 2 / (2 + 1.95996^2)
    assert first.tokens == 24_000 and first.steps == 8 and first.seconds == pytest.approx(27.5) and first.cost is None
    assert found[4].conditions.agent == "research (fast a/smaller, context_steps 3)"


def test_what_else_differs_among_the_runs_of_a_cell_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, "1", snapshots=False, started=1.0, data="one")
    write_run(tmp_path, "2", snapshots=False, started=2.0, data="two", data_digest="0123456789abcdef")
    write_run(tmp_path, "3", snapshots=False, started=3.0, data="one", baseline=Baseline(value=6.2, source="paper"))
    write_run(tmp_path, "4", snapshots=False, started=4.0, data="three", finished=False)

    [found] = cells(load(tmp_path))

    assert found.differences == (
        "prepared data differs: one, two, of digest 0123456789ab",
        "baseline differs: side_by_side, paper 6.2",
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
