"""Only the last versions of large files, from the command line: what stays, what says that it is gone, and who remembers the wish."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from mlagentbench.results.load import load
from mlagentbench.run_spec import SnapshotRetention
from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests.cli.test_cli import mlab
from tests.support import reply
from tests.workspace.support import disk_bytes

LARGE = 17 << 20
TOML = """\
id = "checkpoint"
title = "Leave a large file"
category = "a test"
modality = "none"
published = 2026-01-01
metric = { name = "bytes", direction = "maximize" }
submission = { mode = "file", files = ["model.bin"], required = ["model.bin"] }
"""
GRADE = """\
from mlagentbench.records import Score


def grade(context):
    with context.submission.open("model.bin") as file:
        return Score(value=float(len(file.read())))
"""
TRAIN = f"""\
import os

with open("model.bin", "wb") as file:
    file.write(os.urandom({LARGE}))
"""
RUN = reply("Execute Script", '{"script_name": "train.py"}')
END = reply("Final Answer", '{"final_answer": "done"}')


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    (folder / "starter").mkdir(parents=True)
    (folder / "task.toml").write_text(TOML)
    (folder / "problem.md").write_text("Leave model.bin.\n")
    (folder / "grade.py").write_text(GRADE)
    (folder / "starter" / "train.py").write_text(TRAIN)
    return folder


def run(task: Path, *options: str, replies: list[str]) -> RunDirectory:
    model = task.parent / "replies.yaml"
    model.write_text(yaml.safe_dump([{"reply": text} for text in replies]))
    logs = task.parent / "runs"
    finished = mlab("run", "checkpoint", "--task-path", task, "--model", f"scripted/{model}", "--log-dir", logs, "--json", *options)
    assert finished.returncode == 0, finished.stderr
    return RunDirectory(Path(json.loads(finished.stdout)["log"]))


def test_steps_that_lost_a_large_file_say_so_and_the_last_ones_are_whole(task: Path) -> None:
    directory = run(task, "--keep-versions", "2", "--keep-over", "16m", replies=[RUN, RUN, RUN, RUN, END])
    logs = directory.path.parent
    assert disk_bytes(logs / "objects", directory.path / "snapshots") < 2.2 * LARGE
    (loaded,) = load(logs)
    assert [loaded.lost(number) for number in range(1, 6)] == [["model.bin"], ["model.bin"], [], [], []]
    scores = {score.step: (score.value, score.reason) for score in loaded.scores}
    assert [scores[number][0] for number in range(1, 6)] == [None, None, LARGE, LARGE, LARGE]
    assert scores[1][1] == "its files were let go, as --keep-versions asked"
    assert "model.bin  17.8 MB, let go\n" in mlab("show", directory.path, "--step", "1").stdout
    assert "let go" not in mlab("show", directory.path, "--step", "4").stdout
    whole = mlab("show", directory.path).stdout
    assert whole.count("let go: model.bin") == whole[: whole.index("   3 ✓ ")].count("let go: model.bin") == 2


def test_all_are_kept_unless_asked_and_a_run_that_goes_on_remembers(task: Path) -> None:
    directory = run(task, replies=[RUN, RUN, RUN, END])
    assert disk_bytes(directory.path.parent / "objects") > 2.9 * LARGE
    asked = run(task, "--keep-versions", "1", "--keep-over", "16m", "--steps", "1", replies=[RUN, RUN, RUN, END])
    before = disk_bytes(directory.path.parent / "objects")
    finished = mlab("resume", asked.path, "--steps", "9")
    assert finished.returncode == 0, finished.stderr
    (again,) = [found for found in find_runs(asked.path.parent) if found.path == asked.path]
    assert again.info.spec.retention == SnapshotRetention(versions=1, over_mb=16)
    assert len(again.steps()) == 4
    # Two more versions were written, and each let go of the one before.
    assert disk_bytes(directory.path.parent / "objects") < before + 0.2 * LARGE


def test_a_size_that_is_always_kept_is_refused(task: Path) -> None:
    finished = mlab("run", "checkpoint", "--task-path", task, "--model", "scripted/demo", "--keep-versions", "1", "--keep-over", "1m")
    assert finished.returncode == 2
    assert "Invalid value for '--keep-over': '1m' is no size of 16 MB or more" in finished.stderr
    assert not os.path.exists(task.parent / "runs")
