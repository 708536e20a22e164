"""`mlab prepare`, as a user meets it: real processes, and a server in the place of the network."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from mlagentbench.task.seeds import SEED
from tests import commands
from tests.cli.test_cli import END, complaint, here, mlab, script
from tests.mirror import Cut, Mirror, Slow, Status
from tests.tasks.tiny import DATA, PREPARE, URL, make_task

CONTENT = bytes(range(256)) * 4000


def test_a_task_is_prepared_once_and_a_line_says_where(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path)
    finished = mlab("prepare", "tiny", "--variant", "mini", "--task-path", tmp_path / "tiny")
    assert finished.returncode == 0, finished.stderr
    (line,) = finished.stdout.splitlines()
    assert line.split()[:4] == ["tiny", "mini", "24", "B"]
    place = Path(line.split()[-1])
    assert place.parent == tmp_path / "cache" / "prepared" / "tiny"
    assert (place / "public" / "train.csv").read_text() == f"seed {SEED}"
    assert "was there" in mlab("prepare", "tiny", "--variant", "mini", "--task-path", tmp_path / "tiny").stdout
    assert "was there" not in mlab("prepare", "tiny", "--variant", "mini", "--force", "--task-path", tmp_path / "tiny").stdout


def test_real_data_is_announced_before_it_is_fetched(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path, more=DATA)
    mirror.add(URL, CONTENT)
    finished = mlab("prepare", "tiny", "--task-path", tmp_path / "tiny", "--json")
    (told,) = json.loads(finished.stdout)
    assert (told["task"], told["variant"], told["made"], told["public_bytes"]) == ("tiny", "full", True, len(CONTENT))
    assert finished.stderr.index("licence: CC BY 4.0") < finished.stderr.index("no checksum is published")
    assert "https://example.org/terms" in finished.stderr


def test_a_terminal_shows_a_bar(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path, more=DATA)
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Slow(500_000, 0.5))
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    command = [*commands.MLAB, "prepare", "tiny", "--task-path", str(tmp_path / "tiny")]
    process = commands.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    screen = b""
    while True:
        try:
            screen += os.read(controller, 65536)
        except OSError:
            break
    out, _ = process.communicate(timeout=300)
    os.close(controller)
    assert process.returncode == 0
    assert "━" in screen.decode() and "train.csv" in screen.decode()
    assert out.startswith(b"tiny")


def test_all_tasks_are_prepared_and_one_that_cannot_be_stops_no_other(mirror: Mirror, tmp_path: Path) -> None:
    for name in ("good", "other"):
        make_task(tmp_path / "tasks", name=name)
    make_task(tmp_path / "tasks", "def mini(public, private, seed):\n    1 / 0\n", name="bad")
    arguments = ("good", "bad", "other", "--variant", "mini", "--task-path", tmp_path / "tasks")
    finished = mlab("prepare", *arguments)
    assert finished.returncode == 2
    assert [line.split()[0] for line in finished.stdout.splitlines()] == ["good", "other"]
    assert finished.stderr == "bad cannot be prepared: prepare.py raised ZeroDivisionError: division by zero\n"
    told = json.loads(mlab("prepare", *arguments, "--json").stdout)
    assert ["error" in each for each in told] == [False, True, False]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((), "name the tasks to prepare, or say --all"),
        (("tiny", "--all"), "name the tasks to prepare, or say --all"),
        (("--all",), "say which data of all tasks: --variant mini"),
        (("tinny",), "there is no task 'tinny'"),
        (("tiny",), "HTTP 404"),
        (("tiny", "--variant", "mini", "--cache-dir", "/proc/cache"), "cannot write to the cache /proc/cache"),
    ],
)
def test_what_cannot_be_prepared_is_one_line_and_status_2(
    mirror: Mirror, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    make_task(tmp_path)
    finished = here("prepare", *arguments, "--task-path", tmp_path / "tiny")
    assert finished.returncode == 2
    assert finished.stdout == ""
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("mlab: ") and expected in last
    assert "Traceback" not in finished.stderr


def test_another_place_is_named_on_the_command_line(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path)
    arguments = ("tiny", "--variant", "mini", "--task-path", tmp_path / "tiny", "--cache-dir", tmp_path / "elsewhere")
    finished = mlab("prepare", *arguments)
    assert str(tmp_path / "elsewhere" / "prepared" / "tiny") in finished.stdout
    assert f"MLAB_CACHE={tmp_path / 'elsewhere'}" in finished.stderr
    assert not (tmp_path / "cache").exists()


def test_an_interrupt_keeps_what_has_come(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path, more=DATA)
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Slow(500_000, 600))
    command = [*commands.MLAB, "prepare", "tiny", "--task-path", str(tmp_path / "tiny")]
    process = commands.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (parts := list((tmp_path / "cache").rglob("*.part"))) or not parts[0].stat().st_size:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not list((tmp_path / "cache" / "prepared" / "tiny").iterdir())
    assert mlab("prepare", "tiny", "--task-path", tmp_path / "tiny").returncode == 0
    assert mirror.requests[-1].range is not None


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap, which makes a small disk for this test, is not installed")
@pytest.mark.parametrize("says_how_much", [True, False])
def test_a_full_disk_is_one_line(mirror: Mirror, tmp_path: Path, says_how_much: bool) -> None:
    mirror.lengths = says_how_much
    make_task(tmp_path, more=DATA)
    mirror.add(URL, CONTENT * 8)
    small = ["bwrap", "--dev-bind", "/", "/", "--size", "5000000", "--tmpfs", "/mnt"]
    command = [sys.executable, "-m", "mlagentbench", "prepare", "tiny", "--task-path", str(tmp_path / "tiny"), "--cache-dir", "/mnt/cache"]
    finished = subprocess.run([*small, *command], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 2, finished.stderr
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("mlab: ")
    assert ("needs 8.2 MB more, and" if says_how_much else "no space is left") in last


@pytest.mark.slow
def test_a_run_prepares_its_data_before_it_begins(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path, more=DATA)
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Cut(1000), Status(404))
    model = script(tmp_path / "end.yaml", END)
    arguments = ("run", "tiny", "--task-path", tmp_path / "tiny", "--model", model, "--log-dir", tmp_path / "runs", "--baseline", "none")
    finished = mlab(*arguments)
    assert finished.returncode == 2
    assert "HTTP 404" in finished.stderr.splitlines()[-1]
    assert not list((tmp_path / "runs").glob("*/run.json"))
    finished = mlab(*arguments)
    assert finished.returncode == 0, finished.stderr
    assert "licence: CC BY 4.0" in finished.stderr


def test_a_run_whose_scripts_lack_a_package_does_not_begin(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path, PREPARE, extras=["vision"])
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    model = script(tmp_path / "end.yaml", END)
    arguments = ("run", "tiny", "--variant", "mini", "--task-path", tmp_path / "tiny", "--model", model, "--log-dir", tmp_path / "runs")
    finished = mlab(*arguments, "--python", bare)
    assert f'which {bare} lacks; install with: {bare} -m pip install "torch>=2.6"' in complaint(finished)
    assert finished.returncode == 2
