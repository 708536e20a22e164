"""Final files that hold a submission are graded where the task's real data is prepared; a score is never guessed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from mlagentbench.data.prepare import Prepared, prepared
from mlagentbench.engine.export import log_path
from mlagentbench.original.write import import_logs
from mlagentbench.results.load import Run, load
from mlagentbench.runner.regrade import regrade
from mlagentbench.task.catalogue import find_task
from tests.original.logs import example

pytest.importorskip("sklearn.datasets")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    """The real data of diabetes, which comes with a package and so needs no network."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    return prepared(find_task("diabetes"), "full")


def imported(tmp_path: Path, name: str, submission: str, **options: bool) -> Run:
    """A run that left a submission."""
    log = example(tmp_path / name, task="diabetes")
    log.steps[0]["timestamp"] += len(name) / 100
    (found,) = import_logs(log.end(files={"train.py": "", "submission.csv": submission}, seconds=31.0), tmp_path / "runs", **options)
    assert found.run is not None
    return found.run


def test_a_submission_is_graded_with_the_data_that_is_here(tmp_path: Path, data: Prepared) -> None:
    answers = (data.private / "answers.csv").read_text()
    perfect = imported(tmp_path, "perfect", answers)
    constant = imported(tmp_path, "a constant", (data.public / "sample_submission.csv").read_text())

    assert perfect.score == 0.0
    assert constant.score is not None and constant.score > 50
    assert perfect.result is not None
    assert perfect.seconds == 31.0
    assert perfect.result.final_answer == "It is better."
    assert "imported" in perfect.result.outcome.flags
    (sample,) = read_eval_log(str(log_path(perfect))).samples or []
    assert (sample.scores or {})["mlagentbench"].as_dict()["score"] == 0.0


def test_a_submission_that_the_grader_refuses_is_not_held_against_the_run(tmp_path: Path, data: Prepared) -> None:
    run = imported(tmp_path, "junk", "patient_id,progression\n1,2\n")
    assert run.result is not None
    assert run.result.outcome.verdict == "ungraded"
    assert run.result.outcome.reason
    assert "submission.csv" in run.result.outcome.reason


def test_what_was_not_graded_at_first_can_be_later(tmp_path: Path, data: Prepared) -> None:
    run = imported(tmp_path, "later", (data.private / "answers.csv").read_text(), grade=False)
    assert run.result is not None
    assert (run.result.outcome.verdict, run.result.outcome.reason) == ("ungraded", "it was imported with --no-grade")

    asyncio.run(regrade(run.directory))
    (again,) = load(tmp_path / "runs")
    assert again.score == 0.0
    assert again.seconds == 31.0


def test_code_for_the_originals_own_layer_is_not_graded_and_nobody_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    log = example(tmp_path / "log", task="vectorization")
    layer = "class Conv2DLayer:\n    def __init__(self, *sizes):\n        self.kernel_matrices = None\n"
    (found,) = import_logs(log.end(files={"train.py": layer}), tmp_path / "runs")
    assert found.run is not None
    for result in (found.run.result, asyncio.run(regrade(found.run.directory))):
        assert result is not None
        assert result.outcome.verdict == "ungraded"
        assert "its starter's Conv2DLayer keeps its weights in kernel_matrices" in (result.outcome.reason or "")
