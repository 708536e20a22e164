"""Success against what it took: what is a point, and that labels can be read."""

from __future__ import annotations

from itertools import combinations

from mlagentbench.report.charts import tradeoff
from mlagentbench.report.charts.palette import THEMED
from mlagentbench.report.experiment import LeaderboardRow, leaderboard_row
from tests.example_cells import broken, column, lost, won
from tests.report.charts.drawn import texts


def leaderboard(count: int = 3, cost: float | None = 0.5, name: str = "model") -> list[LeaderboardRow]:
    return [
        leaderboard_row(
            f"research, vendor/{name}-{number}",
            column(
                f"vendor/{name}-{number}",
                one=[
                    won(tokens=1000 * (number + 1), seconds=60.0, cost=cost),
                    lost(0.0, tokens=3000 * (number + 1), seconds=180.0, cost=cost),
                ],
            ),
        )
        for number in range(count)
    ]


def test_a_point_is_a_columns_mean_amount_and_rate() -> None:
    [first, *_] = leaderboard()

    assert (first.tokens and first.tokens.value, first.seconds and first.seconds.value) == (2000, 120)
    assert first.rate is not None and first.rate.value == 0.5
    shown = texts(tradeoff.tradeoff(leaderboard(), "minutes"))
    assert {"research, model-0", "research, model-1", "research, model-2", "minutes a run, mean"} <= set(shown)


def test_one_point_is_no_picture() -> None:
    assert tradeoff.tradeoff(leaderboard(1), "tokens") is None


def test_a_cost_that_is_not_known_for_all_runs_is_left_out_and_named() -> None:
    unknown = leaderboard_row("research, open/weights", column("open/weights", one=[won(cost=0.2), won(cost=None)]))
    every = [*leaderboard(), unknown]

    assert unknown.cost is not None and (unknown.priced, unknown.runs) == (1, 2)
    assert tradeoff.left_out(every, "dollars") == ["research, open/weights"]
    shown = texts(tradeoff.tradeoff(every, "dollars"))
    assert "research, model-0" in shown and "research, weights" not in shown
    assert tradeoff.left_out(every, "tokens") == []


def test_no_cost_at_all_is_no_picture_but_free_runs_are() -> None:
    assert tradeoff.tradeoff(leaderboard(cost=None), "dollars") is None
    assert tradeoff.tradeoff(leaderboard(cost=0.0), "dollars") is not None


def test_a_column_without_runs_that_count_is_no_point() -> None:
    nothing = leaderboard_row("broken", column(one=[broken()]))

    assert (nothing.rate, nothing.tokens, nothing.runs) == (None, None, 0)
    assert "broken" not in texts(tradeoff.tradeoff([*leaderboard(), nothing], "tokens"))


def test_many_or_long_names_become_numbers_with_a_key() -> None:
    for many in (leaderboard(9), leaderboard(2, name="a-model-whose-name-is-long-enough-to-hide-its-neighbours")):
        assert tradeoff.numbered(many)
        shown = texts(tradeoff.tradeoff(many, "tokens"))
        assert {"1", "2"} <= set(shown) and any(text.startswith("2  research") for text in shown)
        assert not any(text.startswith("2  research") for text in texts(tradeoff.tradeoff(many, "tokens", THEMED)))


def test_labels_do_not_cover_one_another() -> None:
    points = [
        tradeoff._Point(
            str(number), f"agent-{number}, model", f"agent-{number}, model", tradeoff.Interval(x, x, x), tradeoff.Interval(y, y, y)
        )
        for number, (x, y) in enumerate([(10, 0.5), (11, 0.5), (12, 0.52), (30, 0.5), (31, 0.1), (31, 0.12)])
    ]
    span = tradeoff._span(points)

    boxes = [tradeoff._box(point, place, span) for point, place in zip(points, tradeoff._places(points, span), strict=True)]

    assert all(one.overlap(other) == 0 for one, other in combinations(boxes, 2))
    assert all(box.left >= 0 and box.right <= tradeoff.WIDTH + 12 for box in boxes)
