"""Reading runs back: finished, in progress, and damaged ones, of which what can be read is kept and the rest is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mlagentbench.errors import RunNotFound
from mlagentbench.records import Baseline, Score
from mlagentbench.results.counts import counts
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


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"improvement": 0.25}, "the improvement of the submission is 0.25, and its score and the baseline make 0.99724"),
        ({"improvement": None}, "the improvement of the submission is None"),
        ({"run": "another"}, "it is the result of the run another"),
        ({"score": {"value": float("nan")}}, "the score is nan, and must be a finite number"),
        ({"score": {"value": 1e308}}, "the score is 1e+308, and must be a finite number of at most 1e+100"),
        (
            {"baseline": {"value": 1.0, "values": [float("inf"), 1.0], "source": "measured"}},
            "baseline: values: 0: Input should be a finite",
        ),
        ({"usage": {"agent": {"input_tokens": 10**25}}}, "input_tokens: Input should be less than or equal to 1000000000000"),
        ({"schema_version": 9}, "its schema version is 9, and this mlagentbench knows 1"),
        ({"schema_version": True}, "its schema version is true, and this mlagentbench knows 1"),
    ],
)
def test_a_result_that_cannot_be_true_is_a_problem_of_its_run_which_does_not_count(logs: Path, change: dict[str, object], why: str) -> None:
    file = write_run(logs).path / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))

    [run] = load(logs)

    assert run.result is None and counts(run).apart == "damaged_result"
    [problem] = run.problems
    assert str(file) in problem and why in problem


def test_the_improvements_of_steps_are_checked_but_for_timed_tasks(logs: Path) -> None:
    measured = write_run(logs, "measured", baseline=Baseline(value=1.1, values=(1.1, 1.1), source="measured"))
    timed = write_run(logs, "timed")
    for directory in (measured, timed):
        file = directory.path / "result.json"
        content = json.loads(file.read_text())
        content["step_scores"][0]["improvement"] = 0.3
        file.write_text(json.dumps(content))

    assert {run.name: run.damage for run in load(logs)} == {
        "measured": (
            f"{measured.path}/result.json is damaged: the improvement of step 1 is 0.3, and its score and the baseline make 0.0; "
            f"remove it, and have the run graded again: mlab resume {measured.path}",
        ),
        "timed": (),
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"started": 1e300}, "is damaged: started: "),
        ({"started": float("nan")}, "is damaged: started: "),
        ({"schema_version": 3}, "cannot be read: its schema version is 3, and this mlagentbench knows 1 and 2"),
        ({"unit": "s" * 5000}, "is damaged: unit: "),
    ],
)
def test_a_description_that_cannot_be_true_leaves_its_run_out(logs: Path, change: dict[str, object], why: str) -> None:
    file = write_run(logs, "bad").path / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    write_run(logs, "good")

    found = scan(logs)

    assert [run.name for run in found.runs] == ["good"]
    [line] = found.unreadable
    assert f"{file} {why}" in line


def test_a_run_that_asked_a_model_and_names_none_is_left_out(logs: Path) -> None:
    write_run(logs, "bad", models={})
    write_run(logs, "by-hand", models={}, steps=[], finished=False)

    found = scan(logs)

    assert [run.name for run in found.runs] == ["by-hand"]
    assert "bad/run.json is damaged: spec: models: it names none, and the run has asked one" in found.unreadable[0]


def test_a_copied_run_counts_once_and_the_copy_is_named(logs: Path) -> None:
    original = write_run(logs, "b-run").path
    for name in ("a-copy", "c-copy"):
        shutil.copytree(original, logs / name)
    (logs / "latest").symlink_to(original, target_is_directory=True)

    found = scan(logs)

    assert [run.directory.path for run in found.runs] == [original]
    assert found.unreadable == [
        f"{logs / name} is a copy of {original}, which is counted in its place; move the copy elsewhere" for name in ("a-copy", "c-copy")
    ]


def test_what_is_left_of_a_run_is_named_and_other_folders_are_not(logs: Path) -> None:
    write_run(logs, "good")
    for name, left in (("a", "result.json"), ("b", "steps/0001.calls.jsonl"), ("c", "snapshots/0000"), ("d", "workspace/train.py")):
        (logs / name / left).parent.mkdir(parents=True)
        (logs / name / left).write_text("")
    (logs / "e").symlink_to("e")
    (logs / "f").symlink_to("nowhere")
    for other in ("sessions/1", "pages", "report-runs", "begun/steps", "begun/workspace"):
        (logs / other).mkdir(parents=True)
    (logs / "report.html").write_text("")

    assert [line.split(" ")[0].rpartition("/logs/")[2] for line in scan(logs).unreadable] == ["a", "b", "c", "d", "e/run.json", "f"]


def test_a_file_that_is_too_large_is_not_read(logs: Path) -> None:
    directory = write_run(logs)
    os.truncate(directory.path / "result.json", 1 << 40)
    os.truncate(directory.manifest(2), 1 << 40)

    [run] = load(logs)

    with pytest.raises(RunNotFound, match=r"the changes of step 3 cannot be read: .* at most 256 MB are read"):
        run.changes(3)

    assert "result.json is damaged: it has 1,048,576 MB, and at most 256 MB are read" in run.damage[0]


def test_a_folder_in_the_place_of_the_lock_is_held_by_nobody(logs: Path) -> None:
    directory = write_run(logs)
    (directory.path / "lock").mkdir()

    assert not directory.held


def test_a_step_whose_number_is_enormous_is_read_at_once(logs: Path) -> None:
    directory = write_run(logs)
    step = directory.step(8)
    assert step is not None
    (directory.steps_folder / "99999999999.json").write_text(step.model_copy(update={"number": 99_999_999_999}).model_dump_json())

    [run] = load(logs)

    assert len(run.steps) == 9 and run.damage == (
        f"{directory.path} is damaged: it has no step 9, and has later ones; put it back from a copy",
    )


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
    directory.write_result(result.model_copy(update={"step_scores": (), "score": Score(value=0.55), "improvement": 0.5}))

    [run] = load(logs)

    assert [(score.step, score.value, score.improvement) for score in run.scores] == [(8, 0.55, 0.5)]


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
