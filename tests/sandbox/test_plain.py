"""What holds without a sandbox is tested with the others in `test_process.py`; here is what the absence of one means."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlagentbench.sandbox.linux import process_tree
from mlagentbench.sandbox.plain import PlainSandbox
from mlagentbench.sandbox.standalone.supervise import MARK, children, is_zombie
from tests.sandbox.processes import Clock, Run, Trace
from tests.support import HANGING


def test_it_says_that_it_isolates_nothing() -> None:
    assert PlainSandbox().isolation == "none"
    assert "isolates nothing" in (PlainSandbox.__doc__ or "")


def test_a_command_runs_in_the_workspace_as_the_user(execute: Run, workspace: Path) -> None:
    assert execute(PlainSandbox(), "sh", "-c", "pwd; id -u").output == f"{workspace}\n{os.getuid()}\n"


def test_no_gpu_is_visible_unless_asked_for(execute: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")

    assert execute(PlainSandbox(), "sh", "-c", "echo gpus:$CUDA_VISIBLE_DEVICES").output == "gpus:\n"


def test_a_command_that_kills_its_supervisor_does_not_get_away(execute: Run, trace: Trace) -> None:
    code = "import os, subprocess, sys\nsubprocess.Popen(['sleep', sys.argv[1]])\nos.kill(os.getppid(), 9)"

    before = set(Path("/tmp").glob(f"mlagentbench-{os.getpid()}-*"))  # of a killed process that had this id
    for groups in (True, False):
        execute(PlainSandbox(), "python", "-c", code, trace.seconds, groups=groups)
        assert not trace.alive()
    assert set(Path("/tmp").glob(f"mlagentbench-{os.getpid()}-*")) <= before


def test_a_command_that_stops_its_supervisor_is_ended(execute: Run, trace: Trace) -> None:
    code = "import os, subprocess, sys\nos.kill(os.getppid(), 19)\nsubprocess.Popen(['sleep', sys.argv[1]]).wait()"

    done = execute(PlainSandbox(), "python", "-c", code, trace.seconds, seconds=0.5)

    assert done.reason == "time"
    assert not trace.alive()


SUPERVISOR = Path(__file__).parents[2] / "src/mlagentbench/sandbox/standalone/supervise.py"


def test_the_supervisor_passes_on_how_its_command_ended() -> None:
    for command, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)):
        words = [sys.executable, "-I", "-S", SUPERVISOR, str(os.getpid()), "--", "sh", "-c", command]
        assert subprocess.run(words, env={MARK: f"test-{os.getpid()}"}).returncode == status


def test_a_command_that_ends_just_before_it_is_to_be_ended_has_its_own_status() -> None:
    words = [sys.executable, "-I", "-S", SUPERVISOR, str(os.getpid()), "--", "sh", "-c", "echo up; read line; exit 7"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env={MARK: f"test-{os.getpid()}"}, **pipes) as supervisor:
        assert supervisor.stdin is not None and supervisor.stdout is not None and supervisor.stdout.readline() == b"up\n"
        supervisor.send_signal(signal.SIGSTOP)  # it has no core
        supervisor.stdin.close()
        while not all(map(is_zombie, children(supervisor.pid))):
            time.sleep(0.01)
        supervisor.terminate()
        supervisor.send_signal(signal.SIGCONT)
        assert supervisor.wait(HANGING) == 7


def test_a_process_that_ended_while_the_harness_had_no_core_is_no_process_that_cannot_be_ended(
    execute: Run, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlagentbench.sandbox.linux.process_tree.time", clock := Clock())
    gone = process_tree._gone

    def gone_after_a_wait_for_a_core(pid: int) -> bool:
        if clock.ahead:
            return gone(pid)
        time.sleep(0.5)
        clock.ahead = 1000
        return False

    monkeypatch.setattr(process_tree, "_gone", gone_after_a_wait_for_a_core)
    code = "import os, subprocess, sys\nsubprocess.Popen(['sleep', sys.argv[1]])\nos.kill(os.getppid(), 9)"
    execute(PlainSandbox(), "python", "-c", code, trace.seconds, groups=False)
    assert not trace.alive()


def test_a_supervisor_whose_harness_died_first_starts_nothing() -> None:
    words = [sys.executable, "-I", "-S", SUPERVISOR, "1", "--", "echo", "started"]

    assert subprocess.run(words, capture_output=True, env={MARK: f"test-{os.getpid()}"}).stdout == b""
