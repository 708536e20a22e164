"""A command over pipes, as a grader uses it: what is said both ways, its limits, and its pauses."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import pytest

from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.base import Sandbox, SandboxSpec
from mlagentbench.sandbox.output import Transcript
from mlagentbench.sandbox.process import TICK, SandboxProcess, _Pump, start
from tests.sandbox.processes import DAEMON, Clock, Trace
from tests.support import HANGING

ECHO = """
import sys
for line in sys.stdin:
    print(line.strip()[::-1], flush=True)
    print("seen", line.strip(), file=sys.stderr, flush=True)
"""


def test_a_grader_talks_with_a_command_over_pipes(sandbox: Sandbox, workspace: Path) -> None:
    with start(sandbox, ("python", "-c", ECHO), SandboxSpec(workspace)) as process:
        for word in (b"abc", b"xyz"):
            process.stdin.write(word + b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == word[::-1] + b"\n"
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(HANGING) == 0

    assert process.reason == "exit"
    assert process.stderr_tail() == "seen abc\nseen xyz\n"


def test_leaving_a_piped_command_ends_all_it_started(sandbox: Sandbox, workspace: Path, trace: Trace) -> None:
    with start(
        sandbox, ("python", "-c", f"{DAEMON}\nprint('up', flush=True)\nimport time; time.sleep(600)", trace.seconds), SandboxSpec(workspace)
    ) as process:
        assert process.stdout.readline() == b"up\n"
        assert trace.becomes(True)
        process.stdin.write(b"never flushed")

    assert not trace.alive()
    assert process.reason == "cancelled"


def test_a_piped_command_is_ended_at_its_time_limit(sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlagentbench.sandbox.process.time", clock := Clock())
    command = ("sh", "-c", "echo up; sleep 600")
    with start(sandbox, command, SandboxSpec(workspace, limits=ScriptLimits(seconds=1000))) as process:
        assert process.stdout.readline() == b"up\n"
        clock.ahead = 2000
        assert process.stdout.read() == b""  # it would wait for minutes

        assert process.wait(HANGING) == 137
    assert process.reason == "time"


def test_a_piped_command_is_ended_at_its_memory_limit(sandbox: Sandbox, workspace: Path) -> None:
    hungry = ("python", "-c", "kept = []\nwhile True: kept.append(b'x' * (8 << 20))")
    with start(sandbox, hungry, SandboxSpec(workspace, limits=ScriptLimits(memory_mb=300, seconds=HANGING))) as process:
        assert process.stdout.read() == b""
    assert process.reason == "memory"


def test_a_flood_of_errors_does_not_stop_a_piped_command(sandbox: Sandbox, workspace: Path) -> None:
    flood = "import sys\nfor _ in range(60): sys.stderr.write('x' * (1 << 20))\nprint('done', flush=True)"
    with start(sandbox, ("python", "-c", flood), SandboxSpec(workspace)) as process:
        assert process.stdout.readline() == b"done\n"
    assert len(process.stderr_tail()) < 65 * 1024


def test_the_time_left_is_never_less_than_it_is_while_a_command_is_being_frozen(sandbox: Sandbox, workspace: Path) -> None:
    looks: list[float] = []

    def look(frame: FrameType, event: str, argument: object) -> object:
        """Look at each line of `freeze`, as the thread that watches the command may."""
        if frame.f_code is not SandboxProcess.freeze.__code__:
            return None
        looks.append(process._left())
        return look

    with start(sandbox, ("sleep", "600"), SandboxSpec(workspace, limits=ScriptLimits(seconds=900))) as process:
        assert process._since is not None
        process._since -= 600
        before = sys.gettrace()
        sys.settrace(look)
        try:
            process.freeze()
        finally:
            sys.settrace(before)
        assert len(looks) > 2 and min(looks) > 100
        process.thaw()


def test_a_frozen_command_does_nothing_and_its_time_does_not_pass(
    sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlagentbench.sandbox.process.time", clock := Clock())
    count = "import time\nwhile True:\n    open('ticks', 'a').write('.')\n    time.sleep(0.01)"
    ticks = workspace / "ticks"
    with start(sandbox, ("python", "-c", count), SandboxSpec(workspace, limits=ScriptLimits(seconds=900))) as process:
        while not ticks.exists() and process.running:
            time.sleep(0.01)
        process.freeze()
        size = ticks.stat().st_size
        clock.ahead += 1000
        time.sleep(6 * TICK)  # in which its limits are checked
        assert ticks.stat().st_size == size
        assert process.running

        process.thaw()
        while ticks.stat().st_size == size and process.running:
            time.sleep(0.01)
        assert process.running
        clock.ahead += 1000
        assert process.wait(HANGING) == 137
    assert process.reason == "time"


def test_ending_a_frozen_command_does_not_wait_for_the_next_look_at_its_limits() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with open(reading, "rb") as pipe:
        pump = _Pump(pipe.fileno(), Transcript(1 << 10), lambda text: None)
        pump.drain()
        closed = threading.Event()
        closed.set()
        began = time.monotonic()
        pump.wait(60, closed)
        assert time.monotonic() - began < 30
