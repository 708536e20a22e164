"""Grading again from snapshots: the same scores, nothing graded twice, and what cannot be graded keeps its result."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from mlagentbench.results.load import load
from mlagentbench.rundir.directory import RunDirectory
from tests.cli.test_cli import mlab
from tests.support import reply
from tests.tiny_task import tiny_task

# Tells the test outside what was graded, and by which process.
GRADE = """\
import os

from mlagentbench.errors import InvalidSubmission
from mlagentbench.records import Score


def grade(context):
    text = context.submission.read_text("guess.txt")
    with open("COUNTED", "a") as file:
        file.write(f"{text} {os.getpid()}\\n")
    if not text.isdigit():
        raise InvalidSubmission(f"{text!r} is no number")
    return Score(value=float(text) * FACTOR)
"""


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "runs"
        self.counted = folder / "counted"
        tiny_task(folder / "guess", file="guess.txt")
        self.grade(1)

    def grade(self, factor: int) -> None:
        text = GRADE.replace("COUNTED", str(self.counted)).replace("FACTOR", str(factor))
        (self.folder / "guess" / "grade.py").write_text(text)

    def run(self, *guesses: str, options: tuple[str, ...] = ()) -> RunDirectory:
        model = self.folder / "replies.yaml"
        replies = [reply("Write File", json.dumps({"file_name": "guess.txt", "content": guess})) for guess in guesses]
        model.write_text(yaml.safe_dump([{"reply": text} for text in [*replies, reply("Final Answer", '{"final_answer": "done"}')]]))
        common = [
            "--task-path",
            self.folder / "guess",
            "--model",
            f"scripted/{model}",
            "--log-dir",
            self.logs,
            "--json",
            "--baseline",
            "paper",
            *options,
        ]
        finished = mlab("run", "guess", *common)
        assert finished.returncode == 0, finished.stderr
        return RunDirectory(Path(json.loads(finished.stdout)["log"]))

    def graded(self) -> list[str]:
        """What was graded since the last call."""
        found = [line.split()[0] for line in self.counted.read_text().splitlines()] if self.counted.exists() else []
        self.counted.unlink(missing_ok=True)
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_run_graded_again_has_the_result_it_had(place: Place) -> None:
    directory = place.run("12", "many", "15")
    before = directory.result
    place.graded()
    finished = mlab("grade", place.logs, "--every-step", "--again", "--json")
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["score"] == 15.0
    after = directory.result
    assert before is not None and after is not None
    assert after.model_copy(update={"grading_seconds": before.grading_seconds}) == before
    assert sorted(place.graded()) == ["12", "15", "many"]


def test_what_was_seen_is_not_graded_twice_whoever_left_it(place: Place) -> None:
    place.run("12", "12", "15")
    assert sorted(place.graded()) == ["12", "15"]
    place.run("15", "12")
    assert place.graded() == []
    assert mlab("grade", place.logs, "--every-step").returncode == 0
    assert place.graded() == []
    place.grade(2)
    assert mlab("grade", place.logs, "--every-step").returncode == 0
    # Two runs that are graded at the same moment may not know of each other.
    assert {*place.graded()} == {"12", "15"}
    assert [[score.value for score in run.scores] for run in load(place.logs)] == [[24, 24, 30, 30], [30, 24, 24]]


def test_steps_that_were_not_scored_are_scored_when_asked(place: Place) -> None:
    directory = place.run("12", "15", options=("--no-score-steps",))
    assert directory.result is not None and directory.result.step_scores == ()
    assert mlab("grade", directory.path).returncode == 0
    assert directory.result is not None and directory.result.step_scores == ()
    assert mlab("grade", directory.path, "--every-step").returncode == 0
    assert [score.value for score in directory.result.step_scores] == [12, 15, 15]
    assert mlab("grade", directory.path).returncode == 0
    assert [score.value for score in directory.result.step_scores] == [12, 15, 15], "scores of steps stay"


def test_a_table_says_what_changed(place: Place) -> None:
    place.run("12")
    place.grade(0)
    shown = mlab("grade", place.logs, "--again").stdout
    assert "12" in shown and "success → no success" in shown


def test_what_cannot_be_graded_keeps_its_result_and_the_others_are_graded(place: Place) -> None:
    kept = place.run("12")
    lost, unfinished, torn = (RunDirectory(shutil.copytree(kept.path, place.logs / name)) for name in ("lost", "unfinished", "torn"))
    info = lost.info
    lost.write_info(info.model_copy(update={"run": "lost", "spec": info.spec.replace(task_folder=place.folder / "gone")}))
    (unfinished.path / "result.json").unlink()
    (torn.path / "result.json").write_text("{")
    place.grade(3)
    finished = mlab("grade", place.logs)
    assert finished.returncode == 3
    told = " ".join(finished.stdout.split())
    assert f"{lost.name} was not graded: its task guess is gone" in told and "1 run without a result left out" in told
    assert kept.result is not None and kept.result.score is not None and kept.result.score.value == 36
    assert lost.result is not None and lost.result.score is not None and lost.result.score.value == 12
    assert unfinished.result is None
    finished = mlab("grade", place.logs, "--every-step", "--json")
    lines = {line["run"]: line for line in map(json.loads, finished.stdout.splitlines())}
    assert lines.keys() == {kept.name, lost.name, torn.name}
    assert lines[kept.name]["graded"] and lines[kept.name]["score"] == lines[kept.name]["score_before"] == 36
    assert [score["value"] for score in lines[kept.name]["step_scores"]] == [36, 36]
    assert not lines[lost.name]["graded"] and "its task guess is gone" in lines[lost.name]["not_graded"]
    assert "result.json is damaged" in lines[torn.name]["not_graded"]


def test_a_cache_that_is_gone_or_torn_costs_time_and_nothing_else(place: Place) -> None:
    directory = place.run("12", "15")
    for path in (place.logs / "gradings").iterdir():
        path.write_text(path.read_text()[:20])
    place.graded()
    assert mlab("grade", place.logs, "--every-step").returncode == 0
    assert sorted(place.graded()) == ["12", "15"]
    shutil.rmtree(place.logs / "gradings")
    assert mlab("grade", place.logs).returncode == 0
    assert directory.result is not None and directory.result.score is not None and directory.result.score.value == 15
