"""How a run went, in words: every verdict, direction and unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from mlagentbench.records import Baseline, Flag, GradeStatus, Score, StepStatus, Termination
from mlagentbench.report import wording
from tests.example_runs import ExampleStep, run_info, write_run


@pytest.mark.parametrize(
    ("value", "baseline", "unit", "direction", "said"),
    [
        (0.00303, 1.1, "s", "minimize", "363 times faster"),
        (0.44, 1.1, "s", "minimize", "2.5 times faster"),
        (0.9, 1.1, "s", "minimize", "18.2 % less time"),
        (1.2, 1.0, "s", "minimize", "20.0 % more time"),
        (3.0, 1.0, "s", "minimize", "3 times slower"),
        (0.02, 0.04, "s/token", "minimize", "2 times faster"),
        (0.634, 0.501, "", "maximize", "26.5 % better"),
        (0.4, 0.5, "", "maximize", "20.0 % worse"),
        (0.4, 0.5, "", "minimize", "20.0 % better"),
        (0.3, 1e-10, "", "maximize", "3.00e9 times the baseline, better"),
        (-1.0, -2.0, "", "maximize", "50.0 % better"),
        (0.1, 0.0, "", "maximize", "better than a baseline of 0"),
        (0.5, 0.5, "", "maximize", "no change"),
    ],
)
def test_a_score_against_the_baseline(value: float, baseline: float, unit: str, direction: Any, said: str) -> None:
    assert wording.change(value, baseline, unit, direction) == said


def headline(logs: Path, **run: Any) -> str:
    directory = write_run(logs, **run)
    return wording.headline(directory.info, directory.result)


def test_the_headline_of_a_success_says_how_much(tmp_path: Path) -> None:
    assert headline(tmp_path) == "success: 3.03 ms against 1.10 s: 363 times faster"


def test_the_headline_of_a_gain_that_is_too_small_says_what_was_needed(tmp_path: Path) -> None:
    accuracy = {"metric": "accuracy", "unit": "", "direction": "maximize"}
    said = headline(
        tmp_path,
        steps=[ExampleStep("Final Answer", score=0.52)],
        baseline=Baseline(value=0.5, source="paper"),
        verdict="no_improvement",
        **accuracy,
    )

    assert said == "no success: accuracy 0.520 against 0.500: 4.0 % better (a success needs more than 10 %)"


def test_the_headline_without_a_score_gives_the_reason(tmp_path: Path) -> None:
    steps = [ExampleStep("Final Answer", reason="no submission.csv")]

    assert headline(tmp_path, steps=steps, verdict="no_submission", reason="no submission.csv") == "no submission: no submission.csv"


def test_the_headline_of_a_run_without_a_result_says_so(tmp_path: Path) -> None:
    assert headline(tmp_path, finished=False).startswith("no result yet")


def test_a_baseline_tells_its_source_and_spread() -> None:
    assert wording.baseline_words(Baseline(value=1.1, values=(1.08, 1.12), source="side_by_side"), "s") == (
        "measured side by side with the submission, 2 times, ± 219 ms"
    )
    assert wording.baseline_words(Baseline(value=1.1, values=(1.1,), source="measured"), "s").endswith("once: its spread is unknown")
    assert wording.baseline_words(Baseline(value=0.5, source="paper"), "") == "the paper's constant, not measured here"


def test_the_threshold_lies_in_the_direction_of_better_also_below_zero() -> None:
    assert wording.threshold_value(1.0, "minimize") == pytest.approx(0.9)
    assert wording.threshold_value(1.0, "maximize") == pytest.approx(1.1)
    assert wording.threshold_value(-2.0, "maximize") == pytest.approx(-1.8)


def test_a_unit_other_than_time_is_never_faster() -> None:
    assert not wording.is_time("score")
    assert wording.scores(run_info("r", unit=""), Score(value=0.5), None) == "seconds per forward pass 0.500"


def test_a_score_from_rows_has_its_standard_error_beside_it() -> None:
    score = Score(value=28345.4, standard_error=1203.4)
    assert wording.scores(run_info("r", unit="USD"), score, 30_000.0) == "28,345 ± 1,203 USD against 30,000 USD"


def test_everything_that_can_happen_has_words() -> None:
    assert set(wording.ENDED) == set(get_args(Termination))
    assert set(wording.VERDICTS) == set(get_args(GradeStatus))
    assert set(wording.FLAGS) == set(get_args(Flag))
    assert set(wording.STATUSES) == set(get_args(StepStatus))
