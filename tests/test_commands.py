"""Processes forked by `tests.commands` are what a fresh interpreter would be: the tests of commands rely on it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import commands
from tests.support import HANGING

PROBE = """\
import atexit, json, os, random, signal, sys, tempfile, threading

atexit.register(print, "at exit")
facts = {
    "arguments": sys.argv[1:],
    "name": __name__,
    "input": sys.stdin.read(),
    "folder": os.getcwd(),
    "first_path": sys.path[0],
    "variables": {name: value for name, value in os.environ.items() if name != "_"},
    "temporary": tempfile.gettempdir(),
    "parent": os.getppid(),
    "leads_session": os.getsid(0) == os.getpid(),
    "group": os.getpgrp() == os.getpid(),
    "threads": [threading.active_count(), len(os.listdir("/proc/self/task"))],
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1],
    "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)],
    "mask": list(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "encodings": [(stream.encoding, stream.errors, stream.line_buffering) for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "flags": str(sys.flags),
}
print(json.dumps(facts))
print("an error", file=sys.stderr)
threading.Thread(target=lambda: print("a thread is waited for")).start()
sys.exit(7)
"""


@pytest.fixture
def probe(tmp_path: Path) -> list[str]:
    """A command that tells what its process is like."""
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "typed.txt").write_text("typed")
    return [sys.executable, "-m", "probe", "an argument", "--and=another"]


@pytest.mark.parametrize("new_session", [False, True])
def test_a_forked_process_is_like_a_fresh_one(probe: list[str], tmp_path: Path, new_session: bool) -> None:
    def facts(run: Callable[..., subprocess.CompletedProcess[str]]) -> dict[str, Any]:
        environment = {**os.environ, "TMPDIR": str(tmp_path), "TEST_ONLY": "yes"}
        options = {"env": environment, "cwd": tmp_path, "start_new_session": new_session, "timeout": HANGING}
        with (tmp_path / "typed.txt").open() as typed:
            finished = run(probe, stdin=typed, capture_output=True, text=True, **options)
        assert (finished.returncode, finished.stderr) == (7, "an error\n")
        first, *others = finished.stdout.splitlines()
        assert others == ["a thread is waited for", "at exit"]
        told: dict[str, Any] = json.loads(first)
        return told

    assert facts(commands.run) == facts(subprocess.run)


def test_a_forked_process_dies_of_signals_and_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text("import time\nprint('asleep', flush=True)\ntime.sleep(600)\n")
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        process = commands.Popen([sys.executable, "-m", "sleeper"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"asleep\n"
        assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=HANGING)
        assert process.returncode == -number
        assert (b"KeyboardInterrupt" in errors) == (number == signal.SIGINT)


def test_a_forked_process_writes_to_a_terminal_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "prompt.py").write_text("import sys\nprint(sys.stdout.isatty())\nsys.stdin.readline()\n")
    controller, terminal = pty.openpty()
    process = commands.Popen([sys.executable, "-m", "prompt"], cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    with os.fdopen(os.dup(controller), "rb") as screen:
        assert screen.readline() == b"True\r\n", "before it ends"
    os.write(controller, b"\n")
    assert process.wait(HANGING) == 0
    os.close(controller)


def test_what_is_no_command_of_a_module_is_refused() -> None:
    with pytest.raises(ValueError, match="not a command of a Python module"):
        commands.run(["true"])
