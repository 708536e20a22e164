"""Agents and models compared, and groups of tasks, against numbers worked out by hand."""

from __future__ import annotations

import datetime
import math

import pytest

from mlagentbench.errors import UsageError
from mlagentbench.results.compare import (
    AFTER,
    BEFORE,
    UNKNOWN_CATEGORY,
    UNKNOWN_CUTOFF,
    UNKNOWN_DATE,
    Pair,
    by_category,
    by_cutoff,
    compare,
    comparisons,
    find_pair,
)
from tests.example_cells import broken, cell, column, lost, won


def test_two_columns_are_compared_over_the_tasks_that_both_have_runs_of() -> None:
    one = column(a=[won(), won(), won(), lost()], b=[won(), lost(0.0)], c=[lost()], only_one=[won()], failed=[won()])
    other = column(a=[won(), lost(), lost(), lost()], b=[lost(0.2), lost()], c=[lost()], failed=[broken(), broken("cancelled"), broken()])

    found = compare("one", one, "other", other)

    # a: 3/4 against 1/4, b: 1/2 against 0, c: 0 against 0.
    assert found.tasks == ("a", "b", "c")
    assert (found.first_rate, found.second_rate) == (pytest.approx(1.25 / 3), pytest.approx(0.25 / 3))
    # Mantel and Haenszel's weights are 2, 1 and 1/2: (2 * 1/2 + 1 * 1/2 + 1/2 * 0) / 3.5.
    assert found.these_tasks is not None and found.these_tasks.difference.value == pytest.approx(1.5 / 3.5)
    # Given 4 successes of 8 runs on a and 1 of 4 on b, the first has a and b of them in C(4,a) C(4,4-a) / 70 * 1/2 of all ways, as far from
    # 2 + 1/2 as 3 + 1: (16 + 1 + 16 + 1) / 70 of a, half of those of b, and all where a is 4 or 0.
    assert found.these_tasks.p == pytest.approx(((16 + 16) / 2 + 1 + 1) / 70)
    # Of the 8 ways to flip the signs of 1/2, 1/2 and 0, four give a mean as far from 0.
    assert found.other_tasks is not None and found.other_tasks.p == 0.5 and not found.other_tasks.can_tell
    assert (found.first_runs, found.second_runs) == (7, 7)
    assert found.left_out == {"only_one": "other has no run of it", "failed": "other has none that counts (infrastructure 2, cancelled 1)"}


def test_improvements_are_compared_where_both_have_a_valid_submission() -> None:
    found = compare("one", column(a=[won(0.6), lost(0.2)], b=[won(0.5)]), "other", column(a=[lost(0.1), lost()], b=[lost()]))

    # a: (0.6 + 0.2) / 2 less 0.1.
    assert found.improvement is not None and found.improvement.value == pytest.approx(0.3)
    assert found.improvement_tasks == ("a",) and found.tasks == ("a", "b")
    assert math.isnan(found.improvement.low), "a single run has no spread"


def test_how_many_runs_would_tell_them_apart() -> None:
    one, other = column(a=[won(), won(), lost()]), column(a=[won(), lost(), lost()])

    # Two thirds against a third: Fleiss, Levin and Paik's 35 for the normal test, and 6 more for the exact one (their section 4.2.1).
    assert compare("one", one, "other", other).runs_needed == pytest.approx(41, abs=3)
    assert compare("one", one, "the same", one).runs_needed is None


def test_columns_that_share_no_task_say_so() -> None:
    found = compare("one", column(a=[won()]), "other", column(b=[won()]))

    assert (found.these_tasks, found.other_tasks, found.improvement, found.runs_needed) == (None, None, None, None)
    assert (found.tasks, found.first_rate, found.first_runs) == ((), None, 0)
    assert found.left_out == {"a": "other has no run of it", "b": "one has no run of it"}


def test_all_pairs_are_compared_and_their_p_adjusted_for_one_another() -> None:
    high = column(**{f"t{n}": [won(), won()] for n in range(6)})
    middle = column(**{f"t{n}": [won(), lost()] for n in range(6)})
    low = column(**{f"t{n}": [lost(), lost()] for n in range(6)})

    found = comparisons({"high": high, "middle": middle, "low": low, "elsewhere": column(z=[won()])})

    pairs = [("high", "middle"), ("high", "low"), ("high", "elsewhere"), ("middle", "low"), ("middle", "elsewhere"), ("low", "elsewhere")]
    assert [(comparison.first, comparison.second) for comparison in found] == pairs

    # Each alone: 2 of 2^6 ways to flip the signs of six equal differences. Of the six pairs, three share tasks.
    assert [each.other_tasks and each.other_tasks.p for each in found] == [2 / 64, 2 / 64, None, 2 / 64, None, None]
    assert [each.p_other_tasks for each in found] == pytest.approx([6 / 64, 6 / 64, None, 6 / 64, None, None])
    # Two of two against none, six times: 2 of C(4,2)^6 ways; the smallest of three is adjusted by 3.
    assert found[1].these_tasks is not None and found[1].p_these_tasks == pytest.approx(3 * 2 / 6**6)


def test_pairs_that_are_asked_for_are_adjusted_for_one_another_alone() -> None:
    columns = {name: column(f"vendor/{name}", **{f"t{n}": runs for n in range(6)}) for name, runs in EIGHT.items()}

    [found] = comparisons(columns, [find_pair("vendor/high,vendor/low", columns)])

    assert (found.first, found.second) == ("high", "low")
    assert found.these_tasks is not None and found.p_these_tasks == found.these_tasks.p
    both = comparisons(columns, [Pair("high", "low"), Pair("high", "middle"), Pair("high", "low")])
    assert [(each.first, each.second) for each in both] == [("high", "low"), ("high", "middle")], "asked for twice it is one test"
    assert both[0].p_these_tasks == pytest.approx(2 * found.these_tasks.p)


EIGHT = {"high": [won(), won()], "middle": [won(), lost()], "low": [lost(), lost()]}


@pytest.mark.parametrize(
    "text", ["research, gpt,research, opus", "gpt,opus", "gpt, research, opus", "research, gpt, opus", " gpt , opus ", "gpt,react"]
)
def test_a_pair_is_named_by_columns_or_by_what_only_one_has(text: str) -> None:
    columns = {"research, gpt": column("gpt", a=[won()]), "research, opus": column("opus", a=[won()])}
    react = {"a": cell("a", "none/none", won(), agent="react")}

    found = find_pair(text, {**columns, "react, none/none": react})

    assert found == ("research, gpt", "react, none/none" if "react" in text else "research, opus")


@pytest.mark.parametrize("text", ["", "gpt", "gpt,gpt", "gpt,unknown", "research,gpt", ",", "gpt,"])
def test_a_pair_that_is_not_known_is_refused_with_what_there_is(text: str) -> None:
    columns = {"research, gpt": column("gpt", a=[won()]), "research, opus": column("opus", a=[won()])}

    with pytest.raises(UsageError, match="give two of these with a comma between them: 'research, gpt'; 'research, opus'"):
        find_pair(text, columns)


def test_categories_are_averaged_over_tasks() -> None:
    tasks = column(category="classic Kaggle", a=[won(0.2)] * 3 + [lost()], b=[lost(0.0)])
    tasks |= column(category="canonical", c=[won(1.0), broken()])
    tasks |= column(d=[lost()], e=[broken()])

    kaggle, canonical, unknown = by_category(tasks)

    assert (kaggle.name, kaggle.tasks, kaggle.runs) == ("classic Kaggle", ("a", "b"), 5)
    # (3/4 + 0) / 2, as sure as one rate of
    # 4 / (1/4 + 1/1) = 3.2 runs: (0.375 + 0.60023) / 2.20046 +- 1.95996 / 2.20046 * sqrt(0.073242 + 0.093786).
    assert kaggle.mean is not None and kaggle.mean == pytest.approx((0.375, 0.079170, 0.807217), abs=1e-5)
    assert kaggle.improvement is not None and kaggle.improvement.value == pytest.approx((0.2 + 0.0) / 2)
    assert (canonical.name, canonical.runs, canonical.mean and canonical.mean.value) == ("canonical", 1, 1.0)
    assert (unknown.name, unknown.tasks, unknown.runs, unknown.improvement) == (UNKNOWN_CATEGORY, ("d",), 1, (0.0, 0.0, 0.0))
    assert unknown.left_out == ("e",)


def test_a_group_without_runs_that_count_has_no_rate() -> None:
    [group] = by_category(column(category="canonical", a=[broken()]))

    assert (group.tasks, group.runs, group.mean, group.improvement) == ((), 0, None, None)


def test_tasks_are_grouped_by_their_models_cutoff() -> None:
    day = datetime.date(2023, 9, 1)
    tasks = column(published=day, on_the_day=[won()]) | column(published=datetime.date(2021, 1, 1), before=[won(), lost()])
    tasks |= column(published=datetime.date(2023, 9, 2), after=[lost()]) | column(nobody_knows=[won()])

    groups = {group.name: group for group in by_cutoff(tasks, {"vendor/model": day})}

    assert list(groups) == [BEFORE, AFTER, UNKNOWN_DATE]
    assert groups[BEFORE].tasks == ("on_the_day", "before") and groups[BEFORE].runs == 3
    assert groups[BEFORE].mean is not None and groups[BEFORE].mean.value == pytest.approx(3 / 4)
    assert groups[AFTER].tasks == ("after",) and groups[UNKNOWN_DATE].tasks == ("nobody_knows",)


@pytest.mark.parametrize("cutoffs", [{}, {"another/model": datetime.date(2023, 9, 1)}, {"vendor/model": None}])
def test_without_a_cutoff_no_task_is_before_or_after(cutoffs: dict[str, datetime.date | None]) -> None:
    [group] = by_cutoff(column(published=datetime.date(2021, 1, 1), a=[won()]), cutoffs)

    assert group.name == UNKNOWN_CUTOFF
