"""Runs counted: cells, and the paper's tables out of runs that give them."""

from __future__ import annotations

import pytest

from mlagentbench.results.cells import Cell, Conditions, Trial
from mlagentbench.results.tables import improvement_table, success_table
from mlagentbench.tasks.catalogue import find_tasks

PAPERS = (
    "cifar10",
    "imdb",
    "ogbn-arxiv",
    "house-price",
    "spaceship-titanic",
    "parkinsons-disease",
    "fathomnet",
    "feedback",
    "identify-contrails",
    "llama-inference",
    "vectorization",
    "clrs",
    "babylm",
)
# The last rows of the paper's Tables 3 and 4.
AVERAGES = {
    "GPT-4": ("19.2", "41.3"),
    "GPT-4-turbo": ("26.0", "32.8"),
    "Claude v1.0": ("16.3", "8.9"),
    "Claude v2.1": ("26.0", "15.0"),
    "Claude v3 Opus": ("37.5", "26.1"),
    "Gemini Pro": ("18.3", "-3.6"),
    "Mixtral": ("3.8", "8.0"),
}


def cell(*trials: Trial, task: str = "a-task", agent: str = "an-agent") -> Cell:
    return Cell(Conditions(task, "full", agent, "a/model", "bubblewrap", "a machine"), trials)


def ended(improvement: float | None = None, *, success: bool = False, how: str = "final_answer") -> Trial:
    verdict = "success" if success else "invalid_submission" if improvement is None else "no_improvement"
    return Trial(how, verdict, success, improvement)


def runs_of(percent: float, improvement: float) -> list[Trial]:
    """Runs with this success rate and this mean improvement, in percent: eight as the paper has, else the fewest that give it."""
    count = next(count for count in (8, 5, 7) if abs(round(percent * count / 100) * 100 / count - percent) < 0.05)
    successes = round(percent * count / 100)
    if improvement == 0 and successes == 0:
        return [ended() for _ in range(count)]
    return [ended(improvement / 100, success=number < successes) for number in range(count)]


@pytest.fixture(scope="module")
def paper() -> dict[str, dict[str, Cell]]:
    """Cells by column and task whose runs give what the tasks say of the paper's Tables 3 and 4."""
    found: dict[str, dict[str, Cell]] = {}
    tasks = find_tasks()
    for task_id in PAPERS:
        facts = tasks[task_id].spec.paper
        assert facts is not None
        for column, percent in facts.success.items():
            found.setdefault(column, {})[task_id] = cell(*runs_of(percent, facts.improvement[column]), task=task_id, agent=column)
    return found


def test_the_papers_tables_come_out_of_their_runs(paper: dict[str, dict[str, Cell]]) -> None:
    success, improvement = success_table(paper), improvement_table(paper)
    tasks = find_tasks()
    for task_id in PAPERS:
        facts = tasks[task_id].spec.paper
        assert facts is not None
        for column in paper:
            assert success.rows[task_id][column] == pytest.approx(facts.success[column], abs=0.05)
            assert improvement.rows[task_id][column] == pytest.approx(facts.improvement[column], abs=1e-9)
    rows = [table.lines() for table in (success, improvement)]
    for column, averages in AVERAGES.items():
        place = rows[0][0].index(column)
        assert tuple(lines[-1][place] for lines in rows) == averages


def test_the_papers_average_of_its_baseline_divides_by_eight(paper: dict[str, dict[str, Cell]]) -> None:
    table = success_table(paper)
    total = sum(value or 0 for value in (row["Baseline"] for row in table.rows.values()))
    assert table.averaged_over["Baseline"] == 13
    assert f"{table.averages['Baseline']:.1f}" == "6.4"
    assert f"{total / 8:.1f}" == "10.4", "what the paper prints"


def test_a_failure_that_was_not_the_agents_is_counted_apart() -> None:
    found = cell(
        ended(0.5, success=True), ended(0.05), ended(), ended(how="infrastructure"), ended(how="cancelled"), ended(how="unfinished")
    )
    assert (found.successes, len(found.counted)) == (1, 3)
    assert found.rate is not None and found.rate.value == pytest.approx(1 / 3)
    assert found.apart == {"infrastructure": 1, "cancelled": 1, "unfinished": 1}
    assert found.improvements == [0.5, 0.05]
    assert found.improvement is not None and found.improvement.value == pytest.approx(0.275)
    assert sum(found.outcomes.values()) == 6


def test_an_ungraded_run_says_nothing_of_the_agent() -> None:
    found = cell(Trial("final_answer", "ungraded", False, None))
    assert found.rate is None and found.improvement is None and found.apart == {"ungraded": 1}


def test_a_cell_without_a_valid_submission_improves_by_nothing_and_one_without_runs_is_none() -> None:
    table = improvement_table({"one": {"a": cell(ended()), "b": cell()}, "two": {"a": cell(ended(0.3))}})
    assert table.rows == {"a": {"one": 0.0, "two": pytest.approx(30)}, "b": {"one": None, "two": None}}
    assert table.averages == {"one": 0.0, "two": pytest.approx(30)}
    assert table.lines() == [["", "one", "two"], ["a", "0", "30"], ["b", "-", "-"], ["Average", "0.0", "30.0"]]


def test_pass_at_k_of_a_cell() -> None:
    found = cell(ended(1.0, success=True), ended(), ended(), ended())
    assert found.pass_at(1) == 0.25 and found.pass_at(2) == 0.5 and found.pass_at(5) is None
