"""Columns, and the paper's Tables 3 and 4 out of runs that give them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mlagentbench.records import Baseline, Outcome, Result, Score
from mlagentbench.results.cells import Cell, Trial, cells
from mlagentbench.results.conditions import Conditions
from mlagentbench.results.load import Run
from mlagentbench.results.tables import TaskTable, columns, divisors, improvement_table, printed, success_table
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import find_tasks
from mlagentbench.task.success import exceeds
from tests.example_runs import run_info

PAPERS = (
    *("cifar10", "imdb", "ogbn-arxiv", "house-price", "spaceship-titanic", "parkinsons-disease", "fathomnet", "feedback"),
    *("identify-contrails", "llama-inference", "vectorization", "clrs", "babylm"),
)
"""The paper's tasks, in the order of its tables."""

TARGETS = Path(__file__).parents[3] / "shared" / "data" / "paper_targets.json"

SUCCESS_AVERAGES = {
    **{"GPT-4": 19.2, "GPT-4-turbo": 26.0, "Claude v1.0": 16.3, "Claude v2.1": 26.0},
    **{"Claude v3 Opus": 37.5, "Gemini Pro": 18.3, "Mixtral": 3.8, "Baseline": 10.4},
}
"""The last row of Table 3 as the paper prints it."""

IMPROVEMENT_AVERAGES = {
    **{"GPT-4": 41.3, "GPT-4-turbo": 32.8, "Claude v1.0": 8.9, "Claude v2.1": 15.0},
    **{"Claude v3 Opus": 26.1, "Gemini Pro": -3.6, "Mixtral": 8.0, "Baseline": 0.0},
}
"""The last row of Table 4."""


def improvements(success: float, improvement: float) -> list[float | None]:
    """What single runs improve by, in percent, that give a cell of Table 3 and one of Table 4; None for one without a valid submission."""
    runs = next(count for count in (8, 5, 7) if abs(round(success * count / 100) * 100 / count - success) < 0.05)
    successes = round(success * runs / 100)
    if successes == 0:
        return [improvement or None] * runs
    if improvement > 10:
        return [improvement] * successes + [None] * (runs - successes)
    return [20.0] * successes + [(runs * improvement - 20.0 * successes) / (runs - successes)] * (runs - successes)


def runs_of(task: str, model: str, success: float, improvement: float) -> Iterator[Run]:
    """Runs of a cell, with scores over a baseline of 1.0."""
    for number, percent in enumerate(improvements(success, improvement)):
        score = None if percent is None else 1.0 + percent / 100
        won = percent is not None and exceeds(percent / 100)
        info = run_info(
            f"{task}-{model}-{number}",
            task=task,
            agent_options={},
            models={"agent": model},
            direction="maximize",
            metric="a score",
            unit="",
        )
        result = Result(
            run=info.run,
            outcome=Outcome(ended="final_answer", verdict="no_submission" if score is None else "success" if won else "no_improvement"),
            score=None if score is None else Score(value=score),
            baseline=None if score is None else Baseline(value=1.0, values=(1.0,), source="measured"),
            improvement=None if score is None else score - 1.0,
            success=won,
            steps=0,
            seconds=60.0,
        )
        yield Run(RunDirectory(Path(info.run)), info, (), result)


def tables(success: Mapping[str, Mapping[str, float]], improvement: Mapping[str, Mapping[str, float]]) -> tuple[TaskTable, TaskTable]:
    """Tables 3 and 4 by task and model, out of runs."""
    runs = [
        run
        for task, rates in success.items()
        for model, rate in rates.items()
        for run in runs_of(task, model, rate, improvement[task][model])
    ]
    by_column = {next(iter(found.values())).conditions.model: found for found in columns(cells(runs)).values()}
    return success_table(by_column), improvement_table(by_column)


@pytest.fixture(scope="module")
def paper() -> tuple[TaskTable, TaskTable]:
    """Tables 3 and 4 out of runs that give what the tasks say of them."""
    facts = {task: find_tasks()[task].spec.paper for task in PAPERS}
    known = {task: fact for task, fact in facts.items() if fact is not None}
    assert tuple(known) == PAPERS
    return tables({task: fact.success for task, fact in known.items()}, {task: fact.improvement for task, fact in known.items()})


def test_the_papers_tables_come_out_of_their_runs(paper: tuple[TaskTable, TaskTable]) -> None:
    tasks = find_tasks()
    for task in PAPERS:
        facts = tasks[task].spec.paper
        assert facts is not None
        for column in SUCCESS_AVERAGES:
            assert paper[0].rows[task][column] == pytest.approx(facts.success[column], abs=0.05)
            assert paper[1].rows[task][column] == pytest.approx(facts.improvement[column], abs=1e-9)


@pytest.mark.skipif(not TARGETS.is_file(), reason=f"the paper's tables, as figures, are not at {TARGETS}")
def test_they_are_printed_as_the_paper_prints_them() -> None:
    targets = json.loads(TARGETS.read_text())
    success, improvement = targets["table3_success_pct"], targets["table4_avg_improvement_pct"]
    ours = tables(success, improvement)
    for table, theirs, averages in zip(ours, (success, improvement), ("table3_printed_average", "table4_printed_average"), strict=True):
        lines = table.lines()
        assert lines[0] == ["", *success["cifar10"]]
        for line, (task, numbers) in zip(lines[1:-1], theirs.items(), strict=True):
            assert line == [task, *(f"{number:.1f}".removesuffix(".0") for number in numbers.values())]
        printed = {column: f"{average:.1f}" for column, average in targets[averages].items()}
        ours_printed = dict(zip(lines[0][1:], lines[-1][1:], strict=True))
        assert {column for column in printed if printed[column] != ours_printed[column]} == ({"Baseline"} if table is ours[0] else set())


def test_the_papers_averages_are_ours_but_for_its_baseline_which_divides_by_eight(paper: tuple[TaskTable, TaskTable]) -> None:
    success, improvement = paper

    assert success.against(SUCCESS_AVERAGES) == ["Baseline: the printed average is 10.4, which divides by 8; over 13 tasks it is 6.4"]
    assert improvement.against(IMPROVEMENT_AVERAGES) == []
    # Two tasks of thirteen: 2 of 5 runs, and 3 of 7.
    assert success.averages["Baseline"] == pytest.approx((40 + 300 / 7) / 13)
    assert divisors(40 + 300 / 7, 10.4) == [8]


def test_an_average_says_over_how_many_tasks_it_is(paper: tuple[TaskTable, TaskTable]) -> None:
    assert paper[0].notices() == ["averages are over 13 tasks"]

    won = Trial("final_answer", "success", True, 0.5)
    uneven = success_table(
        {"one": {"a": cell("a", "one", won), "b": cell("b", "one", won)}, "two": {"a": cell("a", "two", won), "b": cell("b", "two")}}
    )

    assert uneven.notices() == ["one: the average is over 2 of 2 tasks", "two: the average is over 1 of 2 tasks, without b"]
    crossed = success_table({"one": {"a": cell("a", "one", won)}, "two": {"b": cell("b", "two", won)}})
    assert crossed.notices() == ["one: the average is over 1 of 2 tasks, without b", "two: the average is over 1 of 2 tasks, without a"]
    assert success_table({"one": {"a": cell("a", "one", won)}}).notices() == ["averages are over 1 task"]
    assert success_table({}).notices() == []


def test_what_no_number_of_tasks_explains_is_only_told(paper: tuple[TaskTable, TaskTable]) -> None:
    assert paper[0].against({"Mixtral": 97.0, "nobody": 1.0}) == ["Mixtral: the printed average is 97.0; over 13 tasks it is 3.8"]


def test_a_cell_without_a_valid_submission_improves_by_nothing_and_one_without_runs_is_none() -> None:
    invalid, better = Trial("final_answer", "invalid_submission", False, None), Trial("final_answer", "no_improvement", False, 0.3)
    table = improvement_table({"one": {"a": cell("a", "one", invalid), "b": cell("b", "one")}, "two": {"a": cell("a", "two", better)}})

    assert table.rows == {"a": {"one": 0.0, "two": pytest.approx(30)}, "b": {"one": None, "two": None}}
    assert table.averages == {"one": 0.0, "two": pytest.approx(30)}
    assert table.lines() == [["", "one", "two"], ["a", "0", "30"], ["b", "-", "-"], ["Average", "0.0", "30.0"]]


def cell(
    task: str,
    model: str,
    *trials: Trial,
    agent: str = "research",
    variant: str = "full",
    isolation: str = "bubblewrap",
    hardware: str = "one machine",
) -> Cell:
    return Cell(Conditions(task, variant, agent, model, isolation, hardware), trials)


def test_a_column_is_an_agent_with_a_model() -> None:
    found = columns([cell("a", "gpt"), cell("a", "claude"), cell("b", "gpt"), cell("a", "gpt", agent="react")])

    assert {column: list(tasks) for column, tasks in found.items()} == {
        "research, gpt": ["a", "b"],
        "research, claude": ["a"],
        "react, gpt": ["a"],
    }


def test_cells_of_other_conditions_stand_in_columns_of_their_own_that_say_so() -> None:
    found = columns([cell("a", "gpt"), cell("a", "gpt", isolation="none"), cell("a", "gpt", hardware=""), cell("b", "gpt")])

    assert {column: list(tasks) for column, tasks in found.items()} == {
        "research, gpt, bubblewrap, one machine": ["a", "b"],
        "research, gpt, none, one machine": ["a"],
        "research, gpt, bubblewrap, unknown hardware": ["a"],
    }
    assert list(columns([cell("a", "gpt", variant="mini"), cell("b", "gpt")])) == ["research, gpt, mini", "research, gpt, full"]


def test_a_number_below_zero_shows_its_sign_and_a_rounding_error_does_not() -> None:
    assert [printed(value) for value in (-0.03, -9e-18, 0.0, -3.6, 12.0, 12.54, None)] == ["-0", "0", "0", "-3.6", "12", "12.5", "-"]
    assert printed(-9e-18, always=True) == "0.0"


def test_no_two_cells_ever_share_a_place() -> None:
    """Names with commas in them could read alike."""
    found = columns([cell("a", "y, z", agent="x"), cell("a", "z", agent="x, y")])

    assert list(found) == ["x, y, z", "x, y, z (2)"] and all(list(tasks) == ["a"] for tasks in found.values())
