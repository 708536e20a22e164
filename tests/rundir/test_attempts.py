"""An attempt that was thought dead and comes back: no history holds the work of two attempts that did not know of each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.errors import Superseded
from mlagentbench.records import Action, Step
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from tests.support import run_info

ROUNDS, LEAST = 15, 3


def step(number: int) -> Step:
    return Step(number=number, action=Action(name="x"), observation="", started=0.0, seconds=0.0)


@pytest.mark.slow
def test_attempts_that_contend_for_a_run_never_mix_their_steps(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.rundir.contenders", str(tmp_path / "runs"), str(ROUNDS), str(LEAST), "5"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *faults, summary = done.stdout.splitlines()
    assert not faults
    assert int(summary.split()[0]) >= LEAST, "the attack is none"


def test_an_attempt_stops_where_a_newer_one_has_begun(tmp_path: Path) -> None:
    old = RunDirectory.create(prepare_log_directory(tmp_path / "runs"), run_info("run"))
    with old.lock():
        old.reopen()
        old.append_output(1, "old\n")
        (old.path / "lock").unlink()
        (old.path / "attempts/0001/machine").write_text("another")
        new = RunDirectory(old.path)
        with new.lock():
            new.reopen()
            new.append_output(1, "new\n")
            for write in (lambda: old.append_output(1, "late\n"), lambda: old.publish_step(step(1)), old.attempts.check):
                with pytest.raises(Superseded, match="another process goes on"):
                    write()
            new.publish_step(step(1))
    assert [path.name for path in sorted(old.steps_folder.iterdir())] == ["0001.json", "0001.lost1.output.txt", "0001.output.txt"]
    assert (old.steps_folder / "0001.output.txt").read_text() == "new\n"
    assert (old.steps_folder / "0001.lost1.output.txt").read_text() == "old\n"


def test_a_torn_attempt_may_be_alive(tmp_path: Path) -> None:
    run = RunDirectory.create(prepare_log_directory(tmp_path / "runs"), run_info("run"))
    (run.path / "attempts/0001").mkdir(parents=True)
    with run.lock():
        run.reopen()
        assert run.workspace == run.path / "attempts/0002/workspace"


def test_what_an_attempt_published_is_put_in_place_by_the_next_one(tmp_path: Path) -> None:
    """The process was killed after its step was published, and before the step's files had their names."""
    run = RunDirectory.create(prepare_log_directory(tmp_path / "runs"), run_info("run"))
    own = run.path / "attempts/0001"
    for folder in ("steps", "snapshots"):
        (own / folder).mkdir(parents=True)
    (own / "steps/0001.json").write_text(step(1).model_dump_json())
    (own / "steps/0001.output.txt").write_text("printed\n")
    (own / "steps/0002.output.txt").write_text("not published\n")
    (own / "snapshots/0001").write_text("a manifest")
    (run.steps_folder / "0001.json").hardlink_to(own / "steps/0001.json")
    with run.lock():
        assert (run.steps_folder / "0001.output.txt").read_text() == "printed\n"
        assert run.manifest(1).read_text() == "a manifest"
    assert [path.name for path in (own / "steps").iterdir()] == ["0002.output.txt"]
