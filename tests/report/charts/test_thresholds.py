"""Success by what it needs."""

from __future__ import annotations

from mlagentbench.report.charts.thresholds import WITH_INTERVALS, success_by_threshold
from mlagentbench.report.experiment import AtThreshold
from mlagentbench.results.statistics.intervals import Interval
from tests.report.charts.drawn import texts


def rates(column: str, *values: float, best: bool = True) -> list[AtThreshold]:
    return [
        AtThreshold(column, threshold, Interval(value, value / 2, value), Interval(1.0, 0.5, 1.0) if best else None)
        for threshold, value in zip((0.05, 0.1, 0.3), values, strict=True)
    ]


def test_a_line_a_column_over_the_thresholds() -> None:
    found = success_by_threshold([*rates("research, a", 0.4, 0.3, 0.1), *rates("react, b", 0.2, 0.1, 0.0)], "last")

    assert {"5%", "10%", "30%", "research, a", "react, b", "success at the last step", "50%"} <= set(texts(found))
    assert "60%" not in texts(found), "the axis ends near the greatest"


def test_the_best_step_is_said_to_be_chosen_on_the_hidden_test() -> None:
    found = success_by_threshold(rates("a", 0.4, 0.3, 0.1), "best")

    assert "success at the best step, chosen on the hidden test (optimistic)" in texts(found)


def test_where_no_step_but_the_last_was_graded_there_is_no_picture_of_the_best() -> None:
    assert success_by_threshold(rates("a", 0.4, 0.3, 0.1, best=False), "best") is None


def test_no_success_at_all_is_no_picture() -> None:
    assert success_by_threshold(rates("a", 0.0, 0.0, 0.0), "last") is None


def test_intervals_of_many_columns_are_left_out() -> None:
    def whiskers(count: int) -> int:
        chart = success_by_threshold([each for number in range(count) for each in rates(f"c{number}", 0.4, 0.3, 0.1)], "last")
        assert chart is not None
        return sum(layer["mark"].get("opacity") == 0.35 for layer in chart.to_dict()["layer"])

    assert (whiskers(WITH_INTERVALS), whiskers(WITH_INTERVALS + 1)) == (1, 0)


def test_a_column_without_a_counted_run_has_no_line_and_harms_no_other() -> None:
    found = success_by_threshold(
        [*rates("research, a", 0.4, 0.3, 0.1), *rates("react, b", 0.2, 0.1, 0.0)], "last", columns=("act, c", "research, a", "react, b")
    )

    assert {"research, a", "react, b"} <= set(texts(found))
    assert "act, c" not in texts(found)
