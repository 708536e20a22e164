"""How runs came out: every run is in one part of its bar."""

from __future__ import annotations

from mlagentbench.records import Termination
from mlagentbench.report.charts import outcomes
from mlagentbench.report.charts.palette import LIGHT, THEMED
from tests.example_cells import broken, column, counted, lost, won
from tests.report.charts.drawn import texts

COLUMNS = {
    "research, vendor/a": column(one=[won()] * 3 + [lost(0.0), broken()], two=[lost()] * 2),
    "react, vendor/b": column(one=[counted("format_failure", "no_submission")]),
}


def test_every_run_is_counted_once_and_those_of_no_fault_apart() -> None:
    verdicts = {(part.column, part.kind): part.runs for part in outcomes.parts(COLUMNS, "verdict")}

    assert verdicts == {
        ("research, vendor/a", "success"): 3,
        ("research, vendor/a", "no_improvement"): 1,
        ("research, vendor/a", "invalid_submission"): 2,
        ("research, vendor/a", "apart"): 1,
        ("react, vendor/b", "no_submission"): 1,
    }
    endings = {(part.kind, part.runs, part.of) for part in outcomes.parts(COLUMNS, "ended")}
    assert endings == {("final_answer", 3, 7), ("limit_steps", 3, 7), ("apart", 1, 7), ("format_failure", 1, 1)}


def test_every_way_to_end_has_a_part() -> None:
    from typing import get_args

    for ended in get_args(Termination):
        [part] = outcomes.parts({"column": column(one=[counted(ended, "no_improvement", 0.0)])}, "ended")
        assert part.kind in outcomes.ENDINGS and (part.kind == "apart") == (ended in ("infrastructure", "cancelled")), ended


def test_the_picture_names_parts_and_numbers() -> None:
    shown = texts(outcomes.outcomes(outcomes.parts(COLUMNS, "verdict"), "verdict"))

    assert {"success", "no success", "invalid submission", "no submission", "not counted", "research, a, n 7", "react, b, n 1", "3"} <= set(
        shown
    )


def test_what_all_runs_have_in_common_is_no_picture() -> None:
    assert outcomes.outcomes(outcomes.parts({"a": column(one=[won()] * 5)}, "verdict"), "verdict") is None
    assert outcomes.outcomes([], "ended") is None


def test_every_palette_has_a_colour_for_every_part() -> None:
    for palette in (LIGHT, THEMED):
        assert palette.verdicts.keys() == outcomes.VERDICTS.keys()
        assert palette.endings.keys() == outcomes.ENDINGS.keys()
        assert palette.modes.keys() == outcomes.MODES.keys()


def test_modes_that_mean_nearly_the_same_are_one_part() -> None:
    runs = [won()._replace(mode=mode) for mode in ("hallucination", "bad_plan", "zero_improvement", None)]

    found = outcomes.parts({"a": column(one=runs)}, "mode")

    assert [(part.kind, part.runs) for part in found] == [("bad_plan", 2), ("hallucination", 1), ("apart", 1)]
