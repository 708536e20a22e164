"""Reading runs back: finished, in progress, and damaged ones, of which what can be read is kept and the rest is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.errors import RunNotFound
from mlagentbench.records import Score
from mlagentbench.results.load import load, scan
from tests.example_runs import ExampleStep, vectorization_steps, write_run


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def test_a_finished_run_is_read_whole(logs: Path) -> None:
    write_run(logs)

    [run] = load(logs)

    assert run.name == "20260131-101500-vectorization-research-3f9a"
    assert [step.action.name for step in run.steps][-2:] == ["Execute Script", "Final Answer"]
    assert run.result is not None and run.result.success
    assert run.score == 0.00303
    assert run.problems == ()


def test_its_totals_are_those_of_the_result(logs: Path) -> None:
    write_run(logs)

    [run] = load(logs)

    assert run.seconds == pytest.approx(27.5)
    assert run.model_seconds + run.script_seconds + run.framework_seconds == pytest.approx(run.seconds)
    assert run.grading_seconds == 9.6
    assert run.usage.tokens == sum(usage.tokens for usage in run.usage_by_role.values()) == 24_000
    assert run.malformed == 1
    assert run.failed == 1


def test_a_run_in_progress_has_no_result_but_what_it_used_so_far(logs: Path) -> None:
    write_run(logs, steps=vectorization_steps()[:4], finished=False)

    [run] = load(logs)

    assert run.result is None and run.score is None and run.scores == ()
    assert len(run.steps) == 4
    assert run.seconds == pytest.approx(15.6)
    assert run.usage.tokens == 2170 + 2320 + 2470 + 2620
    assert run.usage_by_role == {}


def test_runs_come_oldest_first(logs: Path) -> None:
    write_run(logs, "b-run", started=100.0)
    write_run(logs, "a-run", started=200.0)

    assert [run.name for run in load(logs)] == ["b-run", "a-run"]


def test_the_directory_of_one_run_is_enough(logs: Path) -> None:
    write_run(logs, "one")
    write_run(logs, "other")

    assert [run.name for run in load(logs / "one")] == ["one"]


def test_a_directory_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="there are no runs"):
        load(tmp_path)


def test_a_torn_result_leaves_the_steps(logs: Path) -> None:
    directory = write_run(logs)
    file = directory.path / "result.json"
    file.write_text(file.read_text()[:200])

    [run] = load(logs)

    assert run.result is None
    assert len(run.steps) == 8
    assert len(run.problems) == 1 and "result.json is damaged" in run.problems[0]


def test_a_torn_step_leaves_the_other_steps(logs: Path) -> None:
    directory = write_run(logs)
    (directory.steps_folder / "0003.json").write_text('{"number": 3,')

    [run] = load(logs)

    assert [step.number for step in run.steps] == [1, 2, 4, 5, 6, 7, 8]
    assert len(run.problems) == 1 and "0003.json is damaged" in run.problems[0]


def test_a_run_that_cannot_be_read_at_all_is_left_out_and_named(logs: Path) -> None:
    write_run(logs, "good")
    bad = write_run(logs, "bad")
    (bad.path / "run.json").write_text("{}")

    found = scan(logs)

    assert [run.name for run in found.runs] == ["good"] == [run.name for run in load(logs)]
    assert len(found.unreadable) == 1 and "bad/run.json" in found.unreadable[0]


def test_a_step_knows_what_it_changed(logs: Path) -> None:
    write_run(logs)

    [run] = load(logs)

    [change] = run.changes(4) or ()
    assert (change.path, change.change) == ("train.py", "changed")
    assert "-        for n in range(batch):\n" in (change.text or "")
    assert "+        windows = np.lib.stride_tricks.sliding_window_view" in (change.text or "")
    [new] = run.changes(3) or ()
    assert (new.path, new.change) == ("submission.csv", "added")
    assert run.changes(2) == ()


def test_a_missing_snapshot_is_not_taken_for_no_change(logs: Path) -> None:
    directory = write_run(logs)
    directory.manifest(4).unlink()

    [run] = load(logs)

    assert run.changes(4) is None and run.changes(5) is None
    assert run.changes(2) == ()


def test_a_damaged_snapshot_is_an_error_that_says_so(logs: Path) -> None:
    directory = write_run(logs)
    directory.manifest(4).write_bytes(b"torn")

    [run] = load(logs)

    with pytest.raises(RunNotFound, match="damaged"):
        run.changes(4)


def test_a_content_missing_from_the_store_is_an_error_that_says_so(logs: Path) -> None:
    directory = write_run(logs)
    for file in directory.objects.rglob("*"):
        if file.is_file():
            file.unlink()

    [run] = load(logs)

    with pytest.raises(RunNotFound, match="step 4"):
        run.changes(4)


def test_model_calls_are_read_when_asked_for(logs: Path) -> None:
    write_run(logs)

    [run] = load(logs)

    assert [call.rejected for call in run.calls(6)] == ["Your reply holds no Action. Name one.", None]
    assert run.calls(9) == []


def test_a_damaged_file_of_calls_is_an_error_that_says_so(logs: Path) -> None:
    directory = write_run(logs)
    (directory.steps_folder / "0006.calls.jsonl").write_text("{\n{\n")

    [run] = load(logs)

    with pytest.raises(RunNotFound, match=r"0006\.calls\.jsonl is damaged"):
        run.calls(6)


def test_a_run_graded_at_its_end_only_has_that_score(logs: Path) -> None:
    directory = write_run(logs)
    result = directory.result
    assert result is not None
    directory.write_result(result.model_copy(update={"step_scores": (), "score": Score(value=0.5), "improvement": 0.25}))

    [run] = load(logs)

    assert [(score.step, score.value, score.improvement) for score in run.scores] == [(8, 0.5, 0.25)]


def test_the_last_score_is_of_the_last_step_where_some_are_an_agents_own_bookkeeping(logs: Path) -> None:
    directory = write_run(logs)
    result = directory.result
    assert result is not None
    directory.write_result(result.model_copy(update={"step_scores": (), "steps": 5}))

    [run] = load(logs)

    assert [score.step for score in run.scores] == [8]


def test_a_run_killed_before_its_first_step_is_a_run(logs: Path) -> None:
    write_run(logs, steps=list[ExampleStep](), finished=False)

    [run] = load(logs)

    assert run.steps == () and run.seconds == 0 and run.usage.tokens == 0 and run.usage.cost is None
