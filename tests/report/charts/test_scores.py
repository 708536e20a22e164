"""Charts: what is drawn, on which scale, and that their text cannot become anything else."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

from mlagentbench.records import Baseline, StepScore
from mlagentbench.report.charts import scores as chart_of
from mlagentbench.report.charts.palette import THEMED
from mlagentbench.report.charts.style import to_svg
from tests.example_runs import run_info

BASELINE = Baseline(value=1.1, values=(1.08, 1.12), source="side_by_side")


def scores(*values: float | None) -> list[StepScore]:
    return [StepScore(step=step, value=value, reason=None if value else "it failed") for step, value in enumerate(values, start=1)]


def drawn(values: list[StepScore], baseline: Baseline | None = BASELINE, **info: Any) -> dict[str, Any]:
    chart = chart_of.score_over_steps(run_info("r", **info), values, baseline, len(values))
    assert chart is not None
    return dict(chart.to_dict())


def rows(chart: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    return list(chart["datasets"][layer["data"]["name"]])


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_values_over_decades_stand_on_a_logarithmic_scale() -> None:
    chart = drawn(scores(1.1, 0.003))

    assert {layer["encoding"]["y"]["scale"]["type"] for layer in chart["layer"] if "scale" in layer["encoding"].get("y", {})} == {"log"}


def test_values_close_together_stand_on_a_linear_scale_and_so_do_negative_ones() -> None:
    for values, baseline in ((scores(1.1, 0.9), BASELINE), (scores(-4.0, 3.0), None)):
        chart = drawn(values, baseline)

        assert chart["layer"][-1]["encoding"]["y"]["scale"]["type"] == "linear"


def test_ticks_of_a_linear_scale_share_a_unit() -> None:
    chart = chart_of.score_over_steps(run_info("r"), scores(1.1), BASELINE, 1)
    assert chart is not None

    shown = texts(to_svg(chart))

    assert "0.98 s" in shown and "1.1 s" in shown and not any(text.endswith("ms") for text in shown)


def test_the_picture_names_baseline_threshold_direction_and_the_last_value() -> None:
    chart = chart_of.score_over_steps(run_info("r"), scores(1.1, None, 0.00303), BASELINE, 3)
    assert chart is not None

    shown = texts(to_svg(chart))

    for text in ("baseline 1.10 s", "10 % better", "no valid score", "3.03 ms", "seconds per forward pass, logarithmic: lower is better"):
        assert text in shown
    assert {"10 ms", "100 ms", "1 s"} <= set(shown)


def test_a_step_without_a_valid_score_is_a_cross_and_breaks_the_line() -> None:
    chart = drawn(scores(1.1, None, None, 0.9))

    line = next(layer for layer in chart["layer"] if layer["mark"]["type"] == "line")
    assert [row["value"] for row in rows(chart, line)] == [1.1, None, None, 0.9]
    crosses = next(layer for layer in chart["layer"] if layer["mark"].get("shape") == chart_of.CROSS)
    assert [row["step"] for row in rows(chart, crosses)] == [2, 3]


def test_where_there_is_nothing_to_draw_there_is_no_chart() -> None:
    assert chart_of.score_over_steps(run_info("r"), scores(None, None), BASELINE, 2) is None
    assert chart_of.describe_scores(run_info("r"), scores(None), BASELINE) == "No step has a valid score."


def test_extreme_values_are_drawn() -> None:
    for values, baseline in (
        (scores(17_000.0), Baseline(value=1e10, source="paper")),
        (scores(0.3), Baseline(value=1e-10, source="paper")),
        (scores(0.5), Baseline(value=0.0, source="paper")),
        (scores(0.5, 0.5), Baseline(value=1e100, source="measured")),
        (scores(0.0, 0.0), None),
    ):
        chart = chart_of.score_over_steps(run_info("r", direction="maximize", unit=""), values, baseline, 50)
        assert chart is not None and "NaN" not in to_svg(chart)


def test_names_from_a_run_stay_text() -> None:
    info = run_info("r", metric="<script>alert(1)</script>", unit="s/'+alert(1)+\"")
    chart = chart_of.score_over_steps(info, scores(1.1, 0.5), BASELINE, 2)
    assert chart is not None

    svg = to_svg(chart)

    assert any("<script>alert(1)</script>" in text for text in texts(svg))
    assert "<script" not in svg


def test_names_that_the_converter_could_not_bear_do_not_end_the_process() -> None:
    for name in ("\x1b[31m", "\x00", "\ufffe"):
        chart = chart_of.score_over_steps(run_info("r", metric=name, unit=name), scores(1.1, 0.5), BASELINE, 2)
        assert chart is not None and to_svg(chart)


def test_links_stay_within_the_page() -> None:
    chart = chart_of.score_over_steps(run_info("r"), scores(1.1, 0.5), BASELINE, 2, link=lambda step: f"#run/{step}")
    assert chart is not None

    svg = to_svg(chart)

    assert 'href="#run/1"' in svg and "http" not in svg.replace("http://www.w3.org/", "")


def test_a_themed_chart_takes_its_colours_from_the_page() -> None:
    chart = chart_of.score_over_steps(run_info("r"), scores(1.1, 0.5), BASELINE, 2, THEMED)
    assert chart is not None

    svg = to_svg(chart)

    assert 'stroke="var(--line)"' in svg and 'fill="var(--ink)"' in svg
    assert "style=" not in svg  # the page's policy would refuse it


def test_the_description_says_what_the_picture_shows() -> None:
    said = chart_of.describe_scores(run_info("r"), scores(1.1, None, 0.5, 0.55), BASELINE)

    assert said == (
        "Last: 550 ms after step 4, against a baseline of 1.10 s: 2 times faster. "
        "Best step, chosen on the hidden test (optimistic): 500 ms after step 3. "
        "1 graded step had no valid score. The shaded zone is a success."
    )
