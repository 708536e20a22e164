"""The scores of a task's runs in one chart."""

from __future__ import annotations

from typing import Any

from mlagentbench.report.charts.palette import LIGHT, THEMED
from mlagentbench.report.charts.score_curves import describe_curves, scores_of_task
from mlagentbench.report.charts.style import to_svg
from mlagentbench.report.experiment import ScoreCurve
from tests.example_runs import run_info
from tests.report.charts.drawn import baseline, steps, texts

INFO = run_info("r", metric="accuracy", unit="", direction="maximize")


def curve(*values: float | None, column: str = "research, a", start: float | None = 0.5, link: str = "") -> ScoreCurve:
    return ScoreCurve(column, steps(*values), len(values), None if start is None else baseline(start), link)


def layers(*curves: ScoreCurve) -> list[dict[str, Any]]:
    chart = scores_of_task(INFO, curves)
    assert chart is not None
    drawn = chart.to_dict()
    return [{**layer, "rows": drawn["datasets"][layer["data"]["name"]]} for layer in drawn["layer"]]


def of(found: list[dict[str, Any]], mark: str) -> list[dict[str, Any]]:
    return [layer for layer in found if layer["mark"]["type"] == mark]


def test_every_run_is_a_line_that_breaks_where_it_has_no_score_and_ends_in_a_point() -> None:
    found = layers(curve(0.5, None, None, 0.7), curve(0.5, 0.6, None, column="react, b"))

    [line], [points] = of(found, "line"), of(found, "point")
    assert [row["value"] for row in line["rows"]] == [0.5, None, None, 0.7, 0.5, 0.6, None]
    assert [(row["column"], row["step"], row["value"]) for row in points["rows"]] == [("research, a", 4, 0.7), ("react, b", 2, 0.6)]


def test_baselines_that_differ_are_a_band_and_one_is_a_line() -> None:
    def bands(*starts: float) -> list[tuple[float, float]]:
        grey = [layer for layer in of(layers(*(curve(0.6, start=start) for start in starts)), "rect") if layer["mark"]["opacity"] > 0.1]
        return [(layer["rows"][0]["value"], layer["rows"][0]["edge"]) for layer in grey]

    assert bands(0.5, 0.501) == []
    assert bands(0.5, 0.52, 0.48) == [(0.48, 0.52)]


def test_a_baseline_far_off_is_named_and_not_drawn() -> None:
    far = [curve(20_000.0, 18_000.0, start=1e10), curve(25_000.0, start=1e10)]
    info = run_info("r", metric="error", unit="", direction="minimize")
    chart = scores_of_task(info, far)
    assert chart is not None

    assert [layer["mark"]["type"] for layer in chart.to_dict()["layer"]] == ["line", "point"]
    assert describe_curves(info, far).endswith("Baseline: 1.00e10, far off this chart.")


def test_columns_keep_their_colours_from_chart_to_chart() -> None:
    columns = ["research, a", "react, b", "act, c"]

    alone = scores_of_task(INFO, [curve(0.6, column="act, c")], columns=columns)

    assert alone is not None and LIGHT.series[2] in to_svg(alone) and LIGHT.series[0] not in to_svg(alone)


def test_a_ninth_column_has_dashes() -> None:
    many = [curve(0.5, 0.6, column=f"agent-{number}") for number in range(9)]
    chart = scores_of_task(INFO, many)
    assert chart is not None

    assert to_svg(chart).count('stroke-dasharray="5,3"') >= 1


def test_points_lead_to_their_runs() -> None:
    chart = scores_of_task(INFO, [curve(0.6, link="#run-a"), curve(0.7, link="#run-b")], THEMED)
    assert chart is not None

    svg = to_svg(chart)

    assert 'href="#run-a"' in svg and 'href="#run-b"' in svg and "style=" not in svg


def test_the_description_counts_runs_with_and_without_a_score() -> None:
    said = describe_curves(INFO, [curve(0.5, 0.7), curve(0.6, None), curve(None)])

    assert said == (
        "2 runs with a valid score, 1 of them at the end. 1 run without one."
        " Best step, chosen on the hidden test (optimistic): 0.700. Baseline: 0.500."
    )


def test_no_score_at_all_is_no_picture() -> None:
    assert scores_of_task(INFO, [curve(None), curve()]) is None
    assert describe_curves(INFO, [curve(None)]) == "None of 1 run has a valid score."


def test_runs_without_a_baseline_are_drawn() -> None:
    assert "No baseline." in describe_curves(INFO, [curve(0.5, start=None)])
    assert len(layers(curve(0.5, start=None))) == 2


def test_names_from_a_run_stay_text_and_end_no_process() -> None:
    for hostile in ("<script>alert(1)</script>", "\x1b[31m\x00", "'+alert(1)+\""):
        info = run_info("r", metric=hostile, unit=hostile)
        chart = scores_of_task(info, [curve(0.5, column=hostile), curve(0.6, column="b")], title=hostile)

        assert "<script" not in to_svg(chart) if chart else False
        assert texts(chart)
