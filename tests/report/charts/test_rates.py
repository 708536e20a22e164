"""Heat maps: the numbers in them, their colours, and what stands where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping

from mlagentbench.report.charts import rates
from mlagentbench.report.charts.rates import HeatCell, HeatMap, heat, heat_map, level
from mlagentbench.report.tables.build import categories, improvement, success
from mlagentbench.results.cells import Cell
from tests.example_cells import broken, column, lost, won
from tests.report.charts.drawn import colors, experiment, texts

A, B = "research, vendor/a", "research, vendor/b"
COLUMNS = {
    A: column("vendor/a", one=[won()] * 5 + [lost(0.0)] * 3 + [broken()], two=[lost()] * 4),
    B: column("vendor/b", one=[won(0.3)]),
}


def of_success(columns: Mapping[str, Mapping[str, Cell]]) -> HeatMap:
    return heat(success(experiment(columns)), columns)


def test_a_cell_tells_its_rate_its_interval_its_runs_and_those_not_counted() -> None:
    # Wilson's interval of 5 in 8: 30.6 to 86.3 %.
    assert of_success(COLUMNS).rows["one"][A] == HeatCell("62.5", "31 to 86", "n 8", 1, 7, "56 to 67 with 1 left out")


def test_averages_are_over_the_tasks_that_have_runs() -> None:
    found = of_success(COLUMNS).averages

    assert (found[A].text, found[A].of, found[A].not_counted) == ("31.2", "2 tasks", 0)
    assert (found[B].text, found[B].of) == ("100", "1 task")


def test_improvements_are_of_valid_submissions_and_a_cell_without_one_counts_nothing() -> None:
    found = heat(improvement(experiment(COLUMNS)), COLUMNS)

    # 5 of 8 improve by half, which is 31.25 %; the other task counts 0.
    assert (found.rows["one"][A].text, found.rows["one"][A].of) == ("31.2", "n 8")
    assert found.rows["two"][A] == HeatCell("0", "", "none valid", 0, 0)
    assert found.averages[A].text == "15.6"


def test_over_a_baseline_of_0_a_cell_has_its_gain() -> None:
    columns = {A: column(one=[won(None, gain=0.25, baseline=0.0)] * 3)}

    found = heat(improvement(experiment(columns)), columns).rows["one"][A]

    assert (found.text, found.of, found.level) == ("0.250", "n 3", None)


def test_where_there_are_no_runs_nothing_is_told() -> None:
    assert of_success(COLUMNS).rows["two"][B] == HeatCell("—", "", "", 0, None)
    only_broken = of_success({"c": column(one=[broken()])})
    assert only_broken.rows["one"]["c"] == HeatCell("—", "", "n 0", 1, None, "0 to 100 with 1 left out")
    assert heat_map(only_broken) is None


def test_colours_grow_with_the_number_and_turn_below_nothing() -> None:
    assert [level(value) for value in (0.0, 0.01, 0.5, 1.0)] == [0, 1, 5, 10]
    assert [level(value, rates.GREATEST) for value in (-9.0, -0.25, 0.0, 0.25, 0.5, 90.0)] == [-10, -5, 0, 5, 10, 10]
    assert rates.tint(0) == rates.NEUTRAL and rates.tint(10) == rates.GOOD and rates.tint(-10) == rates.BAD


def test_the_picture_holds_every_number_and_short_names() -> None:
    found = heat_map(of_success(COLUMNS))

    assert {"62.5", "31 to 86, n 8", "one", "two", "average", "research", "a", "b", "31.2", "—"} <= set(texts(found))
    assert {rates.tint(7), rates.tint(4), rates.GOOD, rates.NEUTRAL} <= colors(found)


def test_categories_are_means_over_their_tasks() -> None:
    columns = {
        "full": {**column(category="canonical", a=[won()] * 3, b=[lost(0.0)] * 5), **column(category="classic Kaggle", c=[lost(0.0)])},
        "part": column(category="canonical", a=[won()] * 2),
    }

    found = heat(categories(experiment(columns)), columns)

    assert (found.rows["canonical"]["full"].text, found.rows["canonical"]["full"].of) == ("50", "n 8")
    assert found.rows["canonical"]["part"].of == "n 2, 1 task", "fewer tasks than the other column"
    assert found.rows["classic Kaggle"]["part"].level is None


def test_names_that_look_alike_stay_two_columns() -> None:
    names = ["agent" * 40 + middle + "agent" * 40 for middle in "12"]

    shown = texts(heat_map(of_success({name: column(one=[won()]) for name in names})))

    assert "1. agentagentage" in shown and "2. agentagentage" in shown
