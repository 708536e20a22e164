"""Heat maps: the numbers in them, their colours, and what stands where there is nothing."""

from __future__ import annotations

import pytest

from mlagentbench.report.charts import rates
from mlagentbench.report.charts.rates import HeatCell, heat, heat_map, heat_of_groups, level
from mlagentbench.results.compare import by_category
from mlagentbench.results.statistics import Interval
from tests.report.charts.drawn import broken, colors, column, lost, texts, won

COLUMNS = {
    "research, vendor/a": column("vendor/a", one=[won()] * 5 + [lost()] * 3 + [broken()], two=[lost(None)] * 4),
    "research, vendor/b": column("vendor/b", one=[won(0.3)]),
}


def test_a_cell_tells_its_rate_its_interval_its_runs_and_those_not_counted() -> None:
    found = heat("success", COLUMNS).rows["one"]["research, vendor/a"]

    # Wilson's interval of 5 in 8: 30.6 to 86.3 %.
    assert (found.shown, found.bounds, found.of, found.apart) == ("62.5", "31 to 86", "n 8", 1)


def test_averages_are_over_the_tasks_that_have_runs() -> None:
    found = heat("success", COLUMNS).averages

    assert (found["research, vendor/a"].value, found["research, vendor/a"].of) == (0.625 / 2, "2 tasks")
    assert (found["research, vendor/b"].value, found["research, vendor/b"].of) == (1.0, "1 task")


def test_improvements_are_of_valid_submissions_and_a_cell_without_one_counts_nothing() -> None:
    found = heat("improvement", COLUMNS)

    assert (found.rows["one"]["research, vendor/a"].value, found.rows["one"]["research, vendor/a"].of) == (5 * 0.5 / 8, "n 8")
    assert (found.rows["two"]["research, vendor/a"].value, found.rows["two"]["research, vendor/a"].of) == (0.0, "none valid")
    assert found.averages["research, vendor/a"].value == pytest.approx(5 * 0.5 / 8 / 2)


def test_where_there_are_no_runs_nothing_is_told() -> None:
    found = heat("success", COLUMNS).rows["two"]["research, vendor/b"]

    assert (found.value, found.shown, found.bounds, found.of) == (None, "—", "", "")
    only_broken = heat("success", {"c": column(one=[broken()])})
    assert only_broken.rows["one"]["c"] == HeatCell(None, None, "n 0", 1)
    assert heat_map(only_broken) is None


@pytest.mark.parametrize(
    ("value", "shown"), [(0.625, "62.5"), (0.5, "50"), (0.0, "0"), (-0.0001, "0"), (-0.034, "\N{MINUS SIGN}3.4"), (363.2, "36,320")]
)
def test_numbers_are_percents_with_a_decimal_where_they_have_one(value: float, shown: str) -> None:
    assert rates.hundredth(value) == shown


def test_bounds_have_no_minus_before_nothing() -> None:
    assert rates.between(Interval(0.0, -0.001, -0.002)) == "0 to 0"
    assert rates.between(Interval(0.0, -0.31, 0.2)) == "\N{MINUS SIGN}31 to 20"


def test_colours_grow_with_the_number_and_turn_below_nothing() -> None:
    assert [level(value, "success") for value in (0.0, 0.01, 0.5, 1.0)] == [0, 1, 5, 10]
    assert [level(value, "improvement") for value in (-9.0, -0.25, 0.0, 0.25, 0.5, 90.0)] == [-10, -5, 0, 5, 10, 10]
    assert rates.tint(0) == rates.NEUTRAL and rates.tint(10) == rates.GOOD and rates.tint(-10) == rates.BAD


def test_the_picture_holds_every_number_and_short_names() -> None:
    found = heat_map(heat("success", COLUMNS))

    shown = texts(found)
    assert {"62.5", "31 to 86, n 8", "one", "two", "average", "research", "a", "b", "31.2", "—"} <= set(shown)
    assert {rates.tint(7), rates.tint(4), rates.GOOD, rates.NEUTRAL} <= colors(found)


def test_categories_are_told_with_all_their_runs_together() -> None:
    columns = {
        "full": {**column(category="canonical", a=[won()] * 3, b=[lost()] * 5), **column(category="classic Kaggle", c=[lost()])},
        "part": column(category="canonical", a=[won()] * 2),
    }
    groups: dict[str, dict[str, object]] = {}
    for name, cells in columns.items():
        for group in by_category(cells):
            groups.setdefault(group.name, {})[name] = group

    found = heat_of_groups(groups, tuple(columns))  # type: ignore[arg-type]

    assert (found.rows["canonical"]["full"].value, found.rows["canonical"]["full"].of) == (3 / 8, "n 8")
    assert found.rows["canonical"]["part"].of == "n 2, 1 task", "fewer tasks than the other column"
    assert found.rows["classic Kaggle"]["part"].value is None


def test_names_that_look_alike_stay_two_columns() -> None:
    names = ["agent" * 40 + middle + "agent" * 40 for middle in "12"]

    shown = texts(heat_map(heat("success", {name: column(one=[won()]) for name in names})))

    assert "1. agentagentage" in shown and "2. agentagentage" in shown
