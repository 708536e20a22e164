"""Damaged runs: whatever became of the files of one, each command names it in a line and goes on with the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.cli.main import run as mlab
from mlagentbench.rundir.directory import RunDirectory
from tests.example_runs import vectorization_steps, write_run
from tests.tiny_task import tiny_task


def outcome(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """A command's exit status and all that it says. What no door catches is a traceback to a user, and fails the test."""
    status = mlab([str(argument) for argument in arguments])
    said = capfd.readouterr()
    return status, " ".join((said.out + said.err).split())


@pytest.fixture
def whole(tmp_path: Path) -> RunDirectory:
    """A run of few steps, as a template."""
    task = tiny_task(tmp_path / "number", file="submission.csv", direction="minimize")
    limits = {"steps": 3, "time": 60}
    steps = vectorization_steps()[:3]
    run = write_run(tmp_path / "template", "a-run", steps=steps, ended="limit_steps", task="number", task_folder=str(task), limits=limits)
    run.append_output(3, "printed")
    (run.path / "lock").touch()
    return run


@pytest.mark.parametrize("command", ["show", "report"])
@pytest.mark.parametrize(
    "content, what",
    [
        ('{"run": ', "is damaged: Invalid JSON"),
        ('{"schema_version": 99, "news": 1}', "cannot be read: its schema version is 99, and this mlagentbench knows 1"),
    ],
)
def test_a_damaged_result_is_not_a_run_in_progress(
    whole: RunDirectory, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, content: str, what: str
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    (whole.path / "result.json").write_text(content)
    _, told = outcome(capfd, command, whole.path, *(["--no-page"] if command == "report" else []))
    assert f"result.json {what}" in told
    assert "cannot be read" in told and "in progress" not in told and "No result yet" not in told


def test_a_run_that_has_lost_its_description_is_not_left_out_in_silence(whole: RunDirectory, capfd: pytest.CaptureFixture[str]) -> None:
    write_run(whole.path.parent, "other")
    (whole.path / "run.json").unlink()
    _, told = outcome(capfd, "report", whole.path.parent, "--no-page")
    assert "a-run holds no run: it has no run.json" in told and "1 run of 1 task" in told
