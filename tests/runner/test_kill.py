"""Runs killed at any moment: at most the step in flight is lost, none is doubled, and what was written is whole."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mlagentbench.rundir.directory import OBJECTS, RunDirectory, find_runs
from mlagentbench.sandbox.standalone.supervise import _prctl, descendants, is_zombie
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore
from tests import commands
from tests.runner.lives import EVERY, EXECUTE, REPLIES, before_each_change, content_of, main, make_script, make_task, write_file
from tests.support import HANGING

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
KILLS = 12
SPREAD = 4
"""After how many different numbers of steps they come, at least."""
PR_SET_CHILD_SUBREAPER = 36
OTHERS: set[int] = set()
"""Processes that were there before a test, such as a browser that others share."""


class World(NamedTuple):
    """Where runs are killed."""

    task: Path
    script: Path
    folder: Path

    def life(self, logs: Path, *points: int, script: Path | None = None) -> subprocess.Popen[bytes]:
        """A process that begins the run of a script in a log directory, or goes on with it."""
        told = (script or logs).with_suffix(".told")
        words = ["tests.runner.lives", logs, self.task, script or self.script, told, *points]
        command = [sys.executable, "-m", *map(str, words)]
        with (self.folder / "errors.txt").open("ab") as errors:
            return commands.Popen(command, cwd=REPOSITORY, start_new_session=True, stdout=subprocess.DEVNULL, stderr=errors)

    def errors(self) -> str:
        return (self.folder / "errors.txt").read_text()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(make_task(tmp_path / "guess", seconds=0.02), make_script(tmp_path / "script.jsonl"), tmp_path)


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    """Orphans become this process's, as the sandbox arranges too, and in the end there must be none but those of other tests."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    commands.server(os.environ)  # one of the processes that were there before
    OTHERS.update(descendants(os.getpid()))
    yield
    assert_nobody()


def _is_anothers(pid: int) -> bool:
    """Whether a process was there before, or is one of a session that was, such as a browser that other tests keep open."""
    with suppress(ProcessLookupError):
        return pid in OTHERS or os.getsid(pid) in OTHERS
    return True


def assert_nobody() -> None:
    """Nothing that a killed process started lives on."""
    deadline = time.monotonic() + HANGING
    while left := [pid for pid in descendants(os.getpid()) if not _is_anothers(pid) and not is_zombie(pid)]:
        if time.monotonic() > deadline:
            named = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left}
            raise AssertionError(f"still alive: {named}")
        time.sleep(0.02)


def kill(process: subprocess.Popen[Any], group: bool) -> bool:
    """Kill a process, or it and its group. False where it had ended."""
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL) if group else process.kill()
    return process.wait() == -signal.SIGKILL


def published(logs: Path) -> dict[str, bytes]:
    """The files of the steps that are published, by name."""
    return {path.name: path.read_bytes() for path in logs.glob("*/steps/[0-9][0-9][0-9][0-9].json")}


def assert_whole(logs: Path, kills: int) -> RunDirectory:
    """The run of a log directory is finished, every snapshot can be restored, and nothing half-written is left."""
    (run,) = find_runs(logs)
    assert_run_is_whole(run, kills)
    assert [path for path in logs.glob(".*")] == []
    assert len(list((logs / OBJECTS / "tmp").iterdir())) <= 1, "who writes next sweeps away what was left"
    return run


def assert_run_is_whole(run: RunDirectory, kills: int) -> None:
    assert run.result is not None
    store = SnapshotStore(run.objects)
    for number in range(len(run.steps()) + 1):
        manifest = Manifest.load(run.manifest(number))
        folder = run.path / f"restored-{number}"
        folder.mkdir()
        assert store.restore(manifest, folder) == ()
        shutil.rmtree(folder)
    spent = sum(usage.calls for usage in run.usage().values())
    assert spent <= len(REPLIES) + 1 + 3 * kills, "a kill loses the questions of one step, and the first of the next"
    left = [path.name for place in (run.path, run.steps_folder, run.path / "snapshots") for path in place.glob(".*")]
    # What is written after the result is made anew by mlab audit and mlab grade.
    assert [name for name in left if not name.startswith((".provenance.json.", ".audit.json."))] == []


def told(logs: Path) -> list[int]:
    """The steps that a run's agents were shown, with a 0 for each process that began."""
    path = logs.with_suffix(".told")
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def wait_for_begin(process: subprocess.Popen[bytes], logs: Path, begun: int) -> None:
    """Until a process has imported all and begins."""
    while told(logs).count(0) == begun and process.poll() is None:
        time.sleep(0.002)


def wait_for_telling(process: subprocess.Popen[bytes], script: Path, count: int) -> None:
    """Until a script's agents were told so much, its processes' begins included."""
    while len(told(script)) < count and process.poll() is None:
        time.sleep(0.002)


def test_killed_at_random_moments_a_run_comes_to_the_same_end(world: World) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    reference = world.folder / "reference"
    process = world.life(reference)
    wait_for_begin(process, reference, 0)
    started = time.monotonic()
    assert process.wait(HANGING) == 0, world.errors()
    step = (time.monotonic() - started) / len(REPLIES)
    expected = content_of(assert_whole(reference, 0))
    moments: list[int] = []
    runs = 0
    while len(moments) < KILLS or len(set(moments)) < SPREAD:
        runs += 1
        logs = world.folder / f"run-{runs}"
        lives = 0
        while True:
            process = world.life(logs)
            wait_for_begin(process, logs, lives)
            if len(published(logs)) == len(REPLIES):
                process.wait(HANGING)  # it only grades: let it
            wait_for_step(process, logs, len(published(logs)) + dice.randrange(3))
            time.sleep(dice.uniform(0, step))
            before = published(logs)
            killed = kill(process, group=dice.random() < 0.5)
            assert_nobody()
            after = published(logs)
            assert {name: after[name] for name in before} == before, "what is published stays"
            assert len(after) >= max(told(logs), default=0) - 1, "all but the step in flight is published"
            if not killed:
                assert process.returncode == 0, world.errors()
                break
            lives += 1
            moments.append(len(after))
        assert content_of(assert_whole(logs, lives)) == expected, f"seed {seed}, run {runs}"
    print(f"{len(moments)} kills of {runs} runs, after these numbers of steps: {sorted(moments)}")


def test_killed_at_every_change_of_names_and_every_flush_a_run_comes_to_the_same_end(world: World) -> None:
    # Without a submission there is no grading, which changes nothing of the run.
    make_script(world.script, [write_file("notes.txt", "to do"), EXECUTE, REPLIES[-1]])
    reference = world.folder / "reference"
    assert world.life(reference, 0).wait(HANGING) == 0, world.errors()
    points = int(reference.with_suffix(".points").read_text())
    expected = content_of(assert_whole(reference, 0))
    # Every third one, these or those: a third of the time, and all of them over a few runs of the tests.
    first = random.choice((1, 2, 3))
    assert world.life(world.folder / "run", first, points).wait(HANGING) == 0, world.errors()
    for point in range(first, points + 1, EVERY):
        logs = world.folder / f"run-{point}"
        main(logs, world.task, world.script, world.folder / "told")
        assert content_of(assert_whole(logs, 1)) == expected, f"point {point}"
    print(f"{points} points")


def test_what_a_name_stands_for_is_on_disk_before_anything_relies_on_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power can fail at any moment: a name that came to the disk before its content, or before a name it needs, would be a lie."""
    events: list[tuple[str, str, str]] = []

    def note(name: str, *args: Any, **kwargs: Any) -> None:
        if name in ("fsync", "fdatasync"):
            events.append(("flush", os.readlink(f"/proc/self/fd/{args[0]}"), ""))
        elif name in ("link", "replace", "rename") and not kwargs:
            events.append(("name", str(args[0]), str(args[1])))
        elif name == "mkdir" and not kwargs.get("dir_fd"):
            events.append(("name", "", str(args[0])))

    logs = world.folder / "runs"
    make_script(world.script, [write_file("notes.txt", "to do"), EXECUTE, REPLIES[-1]])
    with monkeypatch.context() as patch:
        before_each_change(note, patch.setattr)
        main(logs, world.task, world.script, logs.with_suffix(".told"))
    (run,) = find_runs(logs)
    kept = [
        (place, new)
        for place, (what, _, new) in enumerate(events)
        if what == "name" and Path(new).is_relative_to(logs) and f"{OBJECTS}/tmp" not in new
    ]
    for place, new in kept:
        old = events[place][1]
        assert not old or ("flush", old, "") in events[:place], f"{new} is named before its content is on disk"
    for number in range(1, 4):
        step = next(place for place, new in kept if new == str(run.steps_folder / f"{number:04d}.json"))
        calls = ("flush", str(run.steps_folder / f"{number:04d}.calls.jsonl"), "")
        assert calls in events[:step], "what was asked for a step is on disk before the step"
        for place, new in kept:
            if place < step and not new.startswith(str(run.workspace)):
                assert ("flush", str(Path(new).parent), "") in events[place:step], f"step {number} relies on {new}"
    assert events[-1] == ("flush", str(run.path), ""), "the result is on disk when the run says so"


def test_processes_that_share_a_log_directory_leave_each_other_alone(world: World) -> None:
    reference, logs = world.folder / "reference", world.folder / "shared"
    assert world.life(reference).wait(HANGING) == 0, world.errors()
    expected = content_of(assert_whole(reference, 0))
    scripts = [make_script(world.folder / f"script-{number}.jsonl") for number in range(4)]
    dice = random.Random(7)
    for _ in range(3):
        before = [len(told(script)) for script in scripts]
        lives = [world.life(logs, script=script) for script in scripts]
        for number, process in [*enumerate(lives)][::2]:
            wait_for_telling(process, scripts[number], before[number] + dice.randrange(4))
            kill(process, group=True)
        for process in lives[1::2]:
            assert process.wait(HANGING) == 0, world.errors()
    for script in scripts:
        assert world.life(logs, script=script).wait(HANGING) == 0, world.errors()
    runs = find_runs(logs)
    assert len(runs) == 4
    for run in runs:
        assert_run_is_whole(run, 3)
        assert content_of(run) == expected


def test_the_command_line_killed_and_resumed_comes_to_its_end(world: World) -> None:
    """The same through `mlab`, in the strongest sandbox there is; the run's log is one that Inspect can read."""
    mlab = commands.MLAB
    start = [
        *mlab,
        "run",
        "guess",
        "--task-path",
        str(world.task),
        "--model",
        f"scripted/{world.script}",
        "--no-score-steps",
        "--baseline",
        "paper",
    ]
    dice = random.Random(11)
    reference = world.folder / "reference"
    assert commands.run([*start, "--log-dir", str(reference)], capture_output=True, timeout=HANGING).returncode == 0
    expected = content_of(assert_whole(reference, 0))
    all_kills = 0
    for number in count():
        logs = world.folder / f"runs-{number}"
        process = commands.Popen([*start, "--log-dir", str(logs)], stdout=subprocess.DEVNULL, start_new_session=True)
        wait_for_step(process, logs, 2)
        process.send_signal(signal.SIGSTOP)
        if os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code != os.CLD_STOPPED:
            process.wait()
            continue  # it came to its end while this process waited for a core
        refused = commands.run([*mlab, "resume", str(find_runs(logs)[0].path)], capture_output=True, text=True, timeout=HANGING)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert "another process is working on" in refused.stderr
        assert kill(process, group=False)
        assert_nobody()
        kills = 1
        while len(published(logs)) < len(REPLIES):
            (run,) = find_runs(logs)
            process = commands.Popen([*mlab, "resume", str(run.path)], stdout=subprocess.DEVNULL, start_new_session=True)
            wait_for_step(process, logs, min(len(published(logs)) + 3, len(REPLIES)))
            time.sleep(dice.uniform(0, 0.1))
            kills += kill(process, group=kills % 2 == 0)
            assert_nobody()
        (run,) = find_runs(logs)
        if run.result is None:
            assert commands.run([*mlab, "resume", str(run.path)], capture_output=True, timeout=HANGING).returncode == 0
        assert content_of(assert_whole(logs, kills)) == expected
        all_kills += kills
        if all_kills >= 3:  # a run may come to its end while this process waits for a core
            break


def wait_for_step(process: subprocess.Popen[bytes], logs: Path, number: int) -> None:
    """Until a step is published."""
    deadline = time.monotonic() + HANGING
    while len(published(logs)) < number and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
