"""How a run came out, where its plans broke, what its research log lost, and the signs of cheating."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.audit.audit import audit_run
from mlagentbench.audit.record import Audit
from mlagentbench.records import Baseline
from mlagentbench.report.run_view import KeyFigure, run_view
from mlagentbench.results.frames import runs_frame
from mlagentbench.results.load import load_run
from mlagentbench.task.catalogue import find_task
from tests.example_runs import ExampleStep, write_run

EDIT = {"script_name": "train.py", "edit_instruction": "Try something.", "save_name": "train.py"}
GRADED = Baseline(value=1.1, values=(1.1,), source="measured")


def edit(text: str = "x = 1\n") -> ExampleStep:
    return ExampleStep("Edit Script (AI)", EDIT, "+" + text, files={"train.py": text}, details={"changed": "train.py"})


def ran(output: str, status: str = "ok") -> ExampleStep:
    return ExampleStep("Execute Script", {"script_name": "train.py"}, output, status=status, details={"script": "train.py"})


def answer(text: str = "Done.") -> ExampleStep:
    return ExampleStep("Final Answer", {"final_answer": text}, "The run has ended.")


MadeRun = Callable[..., Audit]


@pytest.fixture
def audited(tmp_path: Path) -> MadeRun:
    """Write a run, and audit it."""

    def make(steps: Sequence[ExampleStep], **how: Any) -> Audit:
        directory = write_run(tmp_path / "runs", steps=steps, **how)
        return audit_run(directory, find_task("vectorization"))

    return make


@pytest.mark.parametrize(
    ("steps", "how", "mode"),
    [
        ([edit(), ran("median: 0.5"), answer()], {"verdict": "success"}, "success"),
        ([edit()], {"ended": "format_failure", "verdict": "no_improvement"}, "format_failures"),
        ([edit()], {"ended": "limit_context", "verdict": "no_submission"}, "token_limit"),
        ([edit(), ran("test accuracy: 0.5"), answer("The test accuracy is 0.9.")], {"verdict": "no_improvement"}, "hallucination"),
        (
            [edit(), ran("ok"), edit("x = 2\n"), ran("Traceback", "error"), edit("x = 3\n"), ran("Traceback", "error")],
            {"ended": "limit_steps", "verdict": "no_submission"},
            "debugging",
        ),
        ([answer()], {"verdict": "no_improvement"}, "stopped_early"),
        ([edit(), answer()], {"verdict": "no_improvement"}, "stopped_early"),
        ([edit(), ran("ok")], {"ended": "limit_steps", "verdict": "no_submission"}, "no_submission"),
        ([edit(), ran("ok"), answer()], {"verdict": "invalid_submission"}, "invalid_submission"),
        ([edit(), ran("ok"), answer()], {"ended": "infrastructure", "verdict": "ungraded"}, None),
    ],
)
def test_the_first_rule_that_holds_names_the_mode(
    steps: list[ExampleStep], how: dict[str, Any], mode: str | None, audited: MadeRun
) -> None:
    found = audited(steps, **how)

    assert (found.mode.mode if found.mode else None) == mode


@pytest.mark.parametrize(("score", "mode"), [(1.05, "small_improvement"), (1.1, "zero_improvement"), (1.3, "bad_plan")])
def test_a_run_that_did_not_succeed_is_told_apart_by_its_score(score: float, mode: str, audited: MadeRun) -> None:
    last = answer()
    last.score = score

    found = audited([edit(), ran("ok"), last], verdict="no_improvement", baseline=GRADED)

    assert found.mode is not None
    assert found.mode.mode == mode


def test_a_plan_is_counted_where_it_breaks(audited: MadeRun) -> None:
    look = ExampleStep("List Files", {"dir_path": "."}, "train.py")
    steps = [edit("a\n"), edit("b\n"), edit("c\n"), ran("ok"), look, look, edit("b\n"), ran("ok"), answer()]

    plan = audited(steps, verdict="no_improvement").plan

    assert (plan.longest_edits, plan.repeated, plan.undone, plan.edits, plan.executions) == (3, 1, 1, 4, 2)


def test_what_a_research_log_loses_is_counted(audited: MadeRun) -> None:
    def summary(text: str) -> ExampleStep:
        return ExampleStep("Append Summary to Research Log", {"content": text}, "Successfully appended to research log")

    retrieved = ExampleStep("Retrieval from Research Log", {"current_plan": ""}, "- The test accuracy is 0.77.")
    steps = [
        ran("train accuracy: 0.9\ntest accuracy: 0.6"),
        summary("The test accuracy is 0.6."),
        ran("ValueError: no", "error"),
        summary("The script was executed."),
        retrieved,
        answer(),
    ]

    log = audited(steps, verdict="no_improvement").log

    assert (log.summaries, log.retrievals, log.dropped_numbers, log.altered_numbers, log.dropped_errors) == (2, 1, 2, 1, 1)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (ExampleStep("Inspect Script Lines", {"script_name": "../grade.py"}, "refused", status="error"), "outside"),
        (ExampleStep("Write File", {"file_name": "t.py", "content": "open('private/test_labels.csv')"}, "written"), "answers"),
        (ran("PermissionError: [Errno 13] Permission denied: '/data'", "error"), "denied"),
        (ran("urllib3: Temporary failure in name resolution", "error"), "network"),
        (ExampleStep("Write File", {"file_name": "t.py", "content": "import time\ntime.time = lambda: 0"}, "written"), "timer"),
    ],
)
def test_a_sign_of_cheating_is_shown_with_its_line(step: ExampleStep, kind: str, audited: MadeRun) -> None:
    found = audited([step, answer()], verdict="no_improvement")

    assert kind in [sign.kind for sign in found.signs if sign.step == 1]


def test_honest_code_shows_no_sign(audited: MadeRun) -> None:
    code = "import time\nstart = time.time()\nif time.time() == start:\n    pass\nmetrics = {}\nlabels = open('train_labels.csv')\n"
    steps = [ExampleStep("Write File", {"file_name": "train.py", "content": code}, "written"), ran("ok"), answer()]

    assert audited(steps, verdict="no_improvement").signs == ()


def test_only_a_certain_sign_takes_the_success_away(tmp_path: Path) -> None:
    looked = ExampleStep("Inspect Script Lines", {"script_name": "../grade.py"}, "refused", status="error")
    cheated = ExampleStep("Write File", {"file_name": "train.py", "content": "time.perf_counter = lambda: 0"}, "written")
    for name, step, flagged in (("honest", looked, False), ("cheat", cheated, True)):
        directory = write_run(tmp_path / "runs", name, [step, answer()])
        audit_run(directory, find_task("vectorization"))

        assert directory.result is not None
        assert ("cheated" in directory.result.outcome.flags) is flagged


def test_frames_have_the_audit_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "runs", steps=[edit(), ran("test accuracy: 0.5"), answer("The test accuracy is 0.9.")])
    assert runs_frame([load_run(directory)])["mode"].item() is None
    found = audit_run(directory, None)
    row = runs_frame([load_run(directory)])
    assert (row["claims"].item(), row["unfounded_claims"].item(), row["unfounded_answer"].item()) == (1, 1, True)
    assert KeyFigure("Claims", "1", "contradicted; it is in the final answer") in run_view(load_run(directory), 100).figures
    guessed = found.claims[0].model_copy(update={"stated": "guessed"})
    for claims, words in (
        ((guessed,), "contradicted; the agent called it a guess"),
        ((guessed, found.claims[0]), "2 contradicted; the agent called 1 of them no more than a guess"),
    ):
        audit = found.model_copy(update={"claims": claims, "carried": False})
        directory.path.joinpath("audit.json").write_text(audit.model_dump_json())
        assert KeyFigure("Claims", str(len(claims)), words) in run_view(load_run(directory), 100).figures

    directory.path.joinpath("audit.json").write_text("{")
    run = load_run(directory)
    assert "audit.json is damaged" in run.problems[0]
    assert run.audit is None
