"""The forest plot: whose success rate is above whose, with the numbers of the comparisons, and which pairs are drawn."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from mlagentbench.report.charts import forest
from mlagentbench.results.cells import Cell
from mlagentbench.results.compare import Comparison, comparisons
from tests.example_cells import column, lost, won
from tests.report.charts.drawn import colors, texts

TASKS = ("one", "two", "three", "four", "five", "six", "seven")


def agent(successes: int, runs: int = 8) -> dict[str, Cell]:
    """A column with as many successes of each task."""
    return column(**{task: [*[won()] * successes, *[lost(0.0)] * (runs - successes)] for task in TASKS})


def compared(*successes: int) -> list[Comparison]:
    return comparisons({f"agent, m/{number}": agent(each) for number, each in enumerate(successes)})


def test_the_better_agent_is_first_and_the_numbers_are_those_of_the_comparison() -> None:
    (found,) = compared(1, 7)
    (pair,) = forest.pairs([found], ["agent, m/1", "agent, m/0"])

    assert (pair.better, pair.worse) == ("agent, m/1", "agent, m/0")
    assert found.these_tasks is not None and found.p_these_tasks is not None
    value, low, high = found.these_tasks.difference
    assert pair.these.interval == (-value, -high, -low) == pytest.approx((0.75, 0.6, 0.87), abs=0.03)
    assert (pair.these.p, pair.these.sure) == (found.p_these_tasks, True)
    assert pair.these.texts[0].startswith("+75, ") and pair.these.texts[1] == "p < 0.001"


def test_few_tasks_cannot_tell_of_others_and_no_interval_is_drawn() -> None:
    one = {name: {"one": agent(wins)["one"]} for name, wins in (("a", 8), ("b", 0))}
    found = comparisons(one)
    (pair,) = forest.pairs(found, ["a", "b"])

    assert pair.these.sure and not pair.other.can_tell and pair.other.texts == ("too few to tell",)
    assert forest.verdict(found) == (
        "On these tasks, 1 of 1 difference is significant. On other tasks of this kind, there are too few tasks to tell."
    )
    assert forest.span([pair]) == (0.0, 1.0)
    assert "too few" in texts(forest.forest([pair]))


def test_the_verdict_counts_what_is_significant() -> None:
    said = forest.verdict(compared(8, 8, 0))

    assert said == ("On these tasks, 2 of 3 differences are significant. On other tasks of this kind, 2 of 3 differences are significant.")


def test_of_many_pairs_those_with_the_best_and_of_neighbours_are_drawn() -> None:
    successes = [8, 7, 6, 5, 4, 4, 3, 2, 1, 0]
    ranking = [f"agent, m/{number}" for number in range(len(successes))]
    found = compared(*successes)

    drawn = forest.pairs(found, ranking)

    assert len(found) == 45 and len(drawn) == 9 + 8
    asked = {frozenset(pair) for pair in combinations(ranking, 2) if pair[0] == ranking[0]} | {
        frozenset(pair) for pair in pairwise(ranking)
    }
    assert {frozenset((pair.better, pair.worse)) for pair in drawn} == asked
    assert [ranking.index(pair.better) for pair in drawn] == sorted(ranking.index(pair.better) for pair in drawn)


def test_a_picture_names_both_questions_and_every_pair() -> None:
    found = forest.pairs(compared(8, 4, 0), [f"agent, m/{number}" for number in range(3)])
    chart = forest.forest(found)
    shown = texts(chart)

    assert {"agent, 0 over agent, 1", "agent, 1 over agent, 2"} <= set(shown)
    assert set(forest.QUESTIONS.values()) <= set(shown)
    assert len(colors(chart)) >= 3
    assert forest.forest([]) is None
