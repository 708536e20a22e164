"""What is counted of one run, against runs whose numbers are worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.records import Action, Baseline, Inner, ModelCall, Outcome, Result, Score, Step, StepScore, Usage
from mlagentbench.results.counts import THRESHOLDS, Best, counts, debugging_streak
from mlagentbench.results.load import Run, load
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.directory import RunDirectory
from tests.example_runs import ExampleStep, run_info, vectorization_steps, write_run


@pytest.fixture
def accuracy(tmp_path: Path) -> Any:
    """Make a run of a task whose accuracy counts; the baseline is 0.5."""

    def make(scores: Sequence[float | None], *, direction: str = "maximize", baseline: Baseline | None = None, **result: Any) -> Run:
        baseline = baseline or Baseline(value=0.5, values=(0.46, 0.5, 0.54), source="measured")
        sign = 1 if direction == "maximize" else -1
        gains = [
            None if score is None or baseline.value == 0 else sign * (score - baseline.value) / abs(baseline.value) for score in scores
        ]
        facts: dict[str, Any] = {
            "run": "a-run",
            "outcome": Outcome(ended="final_answer", verdict="no_improvement"),
            "score": None if not scores or scores[-1] is None else Score(value=scores[-1]),
            "baseline": None if not scores or scores[-1] is None else baseline,
            "improvement": gains[-1] if gains else None,
            "step_scores": [StepScore(step=n, value=s, improvement=g) for n, (s, g) in enumerate(zip(scores, gains, strict=True), 1)],
            "steps": len(scores),
            "seconds": 10.0,
        }
        return a_run(tmp_path, [did("List Files") for _ in scores], Result(**(facts | result)), direction=direction)

    return make


def a_run(folder: Path, steps: Sequence[Step], result: Result | None = None, **info: Any) -> Run:
    numbered = tuple(step.model_copy(update={"number": number}) for number, step in enumerate(steps, 1))
    return Run(RunDirectory(folder / "a-run"), a_runs_info(**info), numbered, result)


def a_runs_info(**changed: Any) -> RunInfo:
    return run_info("a-run", **({"metric": "accuracy", "unit": "", "direction": "maximize"} | changed))


def did(action: str, status: Any = "ok", **facts: Any) -> Step:
    return Step(number=1, action=Action(name=action), observation="", status=status, started=0.0, **({"seconds": 1.0} | facts))


def ran(exit_code: int = 0, status: Any = None, action: str = "Execute Script") -> Step:
    return did(action, status or ("error" if exit_code else "ok"), details={"exit_code": exit_code}, script_seconds=0.5)


def test_a_finished_run_is_counted(tmp_path: Path) -> None:
    write_run(tmp_path / "logs")
    [run] = load(tmp_path / "logs")

    found = counts(run)

    assert (found.ended, found.verdict, found.success, found.final_answer) == ("final_answer", "success", True, True)
    assert (found.baseline, found.baseline_source, found.score) == (1.1, "side_by_side", 0.00303)
    assert found.improvement == pytest.approx((1.1 - 0.00303) / 1.1)
    # The edit at step 6 mends the fast layer, which stands to the end.
    assert found.best is not None and (found.best.step, found.best.score) == (6, 0.00303)
    assert found.seconds == pytest.approx(27.5)
    assert found.model_seconds == pytest.approx(0.4 * 27.5)
    assert found.model_seconds + found.script_seconds + found.framework_seconds == pytest.approx(found.seconds)
    assert found.tokens == 24_000 and found.tokens_by_role == {"agent": 24_000 - 2440, "editor": 2440}
    assert (found.edits, found.executions, found.failed_executions, found.debugging_streak) == (2, 3, 1, 1)
    assert found.malformed == 1


def test_success_is_strictly_more_than_each_threshold(accuracy: Any) -> None:
    # 0.5 to 0.6 is 20%: more than 15%, and not more than 20%.
    found = counts(accuracy([0.6]))

    assert found.last_success == {0.05: True, 0.10: True, 0.15: True, 0.20: False, 0.30: False}
    assert THRESHOLDS == (0.05, 0.10, 0.15, 0.20, 0.30)
    assert found.success is True


def test_the_best_step_may_be_another_than_the_last(accuracy: Any) -> None:
    found = counts(accuracy([0.5, 0.65, None, 0.65, 0.52]))

    # 0.65 is 30% better: not more than 30. 0.52 is 4%.
    assert found.best == Best(2, 0.65, pytest.approx(0.3))
    assert found.best_success == {0.05: True, 0.10: True, 0.15: True, 0.20: True, 0.30: False}
    assert not any(found.last_success.values())
    assert found.score == 0.52 and found.improvement == pytest.approx(0.04)


def test_less_is_better_where_the_metric_says_so(accuracy: Any) -> None:
    found = counts(accuracy([0.5, 0.4, 0.45], direction="minimize"))

    assert found.best == Best(2, 0.4, pytest.approx(0.2))
    assert found.best_success is not None and found.best_success[0.15] and not found.best_success[0.20]
    assert found.last_success[0.05] and not found.last_success[0.10], "10% is not more than 10%"


def test_the_noise_calibrated_rule_asks_for_more_than_another_run_of_the_starter_may_have(accuracy: Any) -> None:
    # The starter's runs are 0.46, 0.5 and 0.54: another is above 0.5 + 2.92 * 0.04 * sqrt(4/3) = 0.635 in one of twenty cases.
    found = counts(accuracy([0.65, 0.62]))

    assert found.best_clears_noise is True and found.last_clears_noise is False

    assert counts(accuracy([0.3])).last_clears_noise is False, "worse"
    assert counts(accuracy([None])).last_clears_noise is False, "no valid submission"
    assert counts(accuracy([0.9], baseline=Baseline(value=0.5, source="paper"))).last_clears_noise is None, "nothing is known of its noise"


def test_a_timed_tasks_best_step_is_the_one_with_the_best_ratio(accuracy: Any) -> None:
    """Its baseline is timed beside each submission, and the machine is slower at times."""
    steps = [StepScore(step=1, value=0.30, improvement=0.70), StepScore(step=2, value=0.36, improvement=0.82)]
    baseline = Baseline(value=2.0, values=(1.9, 2.1), source="side_by_side")

    found = counts(accuracy([0.30, 0.36], direction="minimize", step_scores=steps, baseline=baseline, improvement=0.82))

    assert found.best == Best(2, 0.36, 0.82)
    assert found.best_clears_noise is True


def test_over_a_baseline_of_zero_any_gain_is_a_success_and_the_best_goes_by_score(accuracy: Any) -> None:
    found = counts(accuracy([0.2, 0.1], baseline=Baseline(value=0.0, values=(-0.1, -0.05, 0.0, 0.05, 0.1), source="measured")))

    assert found.best == Best(1, 0.2, None)
    assert found.improvement is None and all(found.last_success.values())
    assert (found.last_clears_noise, found.best_clears_noise) == (False, True)


def test_where_only_the_end_was_graded_the_best_step_is_not_known(accuracy: Any) -> None:
    found = counts(accuracy([0.5, 0.9], step_scores=()))

    assert found.success and found.score == 0.9
    assert (found.every_step, found.best, found.best_success, found.best_clears_noise) == (False, None, None, None)


def test_a_run_without_a_valid_submission_is_no_success_by_any_rule(accuracy: Any) -> None:
    outcome = Outcome(ended="limit_steps", verdict="invalid_submission", reason="row 3 has no value")

    found = counts(accuracy([None, None], outcome=outcome))

    assert (found.ended, found.verdict, found.reason) == ("limit_steps", "invalid_submission", "row 3 has no value")
    assert (found.score, found.improvement, found.best, found.baseline) == (None, None, None, None)
    assert not any(found.last_success.values()) and found.best_success == found.last_success
    assert (found.last_clears_noise, found.best_clears_noise) == (False, False)
    assert found.final_answer is False


def test_of_an_ungraded_run_nothing_is_known(accuracy: Any) -> None:
    found = counts(accuracy([None], outcome=Outcome(ended="final_answer", verdict="ungraded", reason="the grader failed")))

    assert found.verdict == "ungraded" and found.last_clears_noise is None and not found.success


def test_a_score_that_is_compared_with_nothing_is_no_success(tmp_path: Path) -> None:
    outcome = Outcome(ended="final_answer", verdict="no_improvement")
    result = Result(run="a-run", outcome=outcome, score=Score(value=0.9), step_scores=(StepScore(step=1, value=0.9),), steps=1, seconds=1.0)

    found = counts(a_run(tmp_path, [did("Final Answer")], result))

    assert (found.score, found.baseline, found.improvement, found.last_clears_noise) == (0.9, None, None, None)
    assert not found.success and found.best == Best(1, 0.9, None) and found.best_clears_noise is None


def test_executions_are_steps_in_which_a_script_ran(tmp_path: Path) -> None:
    steps = [
        ran(),
        did("Execute Script", "error"),  # there is no such script
        ran(1),
        did("Edit Script (AI)", details={"changed": "train.py"}),
        ran(137, "limit_memory"),
        did("Edit Script (AI)", "error"),  # the model did not get to its end
        did("Write File", details={"changed": "train.py"}),
        ran(-1, "limit_time"),
        ran(),
        ran(0, action="Python REPL"),
        did("Append File", details={"changed": "notes.txt"}),
        did("Edit Script Segment (AI)", details={"changed": "train.py"}),
        did("Copy File", details={"changed": "copy.py"}),
        did("Undo Edit Script", details={"undone": "train.py"}),
        ran(1),
        ran(2),
    ]

    found = counts(a_run(tmp_path, steps))

    assert found.executions == 8
    assert found.failed_executions == 5
    assert found.debugging_streak == 3, "the three with two edits between them, not the two at the end"
    assert found.edits == 4
    assert found.failed_actions == 7


def test_an_imported_run_tells_only_what_its_actions_did(tmp_path: Path) -> None:
    """Its log has neither exit codes nor the time of scripts."""
    execute = did("Execute Script", "error", inside=(Inner(did="run", what="train.py"),))
    edit = did("Edit Script (AI)", inside=(Inner(did="read", what="train.py"), Inner(did="write", what="train.py")))

    found = counts(a_run(tmp_path, [execute, edit, execute, edit]))

    assert (found.executions, found.failed_executions, found.debugging_streak, found.edits) == (2, 2, 2, 2)


def test_a_streak_needs_failures() -> None:
    assert debugging_streak([]) == 0
    assert debugging_streak([ran(), ran()]) == 0
    assert debugging_streak([ran(1), ran(1), ran()]) == 2


def test_a_run_in_progress_is_counted_so_far(tmp_path: Path) -> None:
    write_run(tmp_path / "logs", steps=vectorization_steps()[:5], finished=False)
    [run] = load(tmp_path / "logs")

    found = counts(run)

    assert (found.ended, found.verdict, found.success, found.final_answer) == ("unfinished", "ungraded", False, False)
    assert (found.steps, found.executions, found.failed_executions, found.edits) == (5, 2, 1, 1)
    assert (found.best, found.every_step, found.last_clears_noise, found.tokens_by_role) == (None, False, None, {})
    assert found.seconds == pytest.approx(2.0 + 2.0 + 5.2 + 6.4 + 2.0)


def test_a_run_killed_before_its_first_step_is_counted(tmp_path: Path) -> None:
    write_run(tmp_path / "logs", steps=list[ExampleStep](), finished=False)
    [run] = load(tmp_path / "logs")

    found = counts(run)

    assert (found.steps, found.tokens, found.seconds, found.executions, found.debugging_streak) == (0, 0, 0, 0, 0)


def test_a_run_with_torn_files_is_counted_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "logs")
    (directory.steps_folder / "0005.json").write_text("{")
    (directory.path / "result.json").write_text("{")
    [run] = load(tmp_path / "logs")

    found = counts(run)

    assert found.ended == "damaged_result" and found.final_answer is False
    assert (found.steps, found.executions, found.failed_executions) == (7, 2, 0)


def test_bookkeeping_is_no_step(tmp_path: Path) -> None:
    steps = [did("List Files"), did("Append Summary to Research Log", counted=False)]

    assert counts(a_run(tmp_path, steps)).steps == 1


def test_malformed_replies_that_ended_the_run_are_counted_too(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "logs", verdict="no_improvement", ended="format_failure")
    for _ in range(5):
        call = ModelCall(
            role="agent", model="a/model", purpose="agent", prompt="", reply="?", usage=Usage(), seconds=0.1, rejected="No action."
        )
        directory.append_call(9, call)
    [run] = load(tmp_path / "logs")

    assert counts(run).malformed == 1 + 5

    (directory.steps_folder / "0009.calls.jsonl").write_text("{\n{\n")
    assert counts(run).malformed == 1, "those that can be read"


def test_cost_is_unknown_where_a_part_of_it_is(tmp_path: Path) -> None:
    write_run(tmp_path / "priced", cost=0.25)
    write_run(tmp_path / "free")

    # Eight steps and the editor's two calls.
    assert counts(load(tmp_path / "priced")[0]).cost == pytest.approx(9 * 0.25)
    assert counts(load(tmp_path / "free")[0]).cost is None
