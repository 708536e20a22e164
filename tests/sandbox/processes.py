"""What the sandbox tests share."""

from __future__ import annotations

import functools
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from mlagentbench.sandbox.base import Execution
from mlagentbench.sandbox.isolation import probe
from tests.support import HANGING

Run = Callable[..., Execution]

DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", sys.argv[1]])
    os._exit(0)
os.wait()
"""
"""A classic daemon: forked twice, in a session of its own, its parent gone. It keeps the pipe of the output."""


@functools.cache
def available() -> tuple[str, ...]:
    """The sandboxes that work on this machine."""
    return tuple(capability.name for capability in probe() if capability.available)


def only_where(name: str) -> pytest.MarkDecorator:
    """Skip a module whose sandbox does not work here, with the reason."""
    found = next(capability for capability in probe() if capability.name == name)
    return pytest.mark.skipif(not found.available, reason=f"no {name} here: {found.detail}")


class Clock:
    """The clock of a module, which can be put forward."""

    ahead = 0.0
    sleep, time = staticmethod(time.sleep), staticmethod(time.time)

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


class Trace:
    """A command line that nobody else on the machine has: `sleep` for an odd time."""

    def __init__(self) -> None:
        self.seconds = f"{random.randrange(10_000, 90_000)}.{random.randrange(1_000_000):06}"

    def alive(self) -> bool:
        """Whether a process sleeps for that time, now."""
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
                state = (path / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if words[:2] == [b"sleep", self.seconds.encode()] and state not in "ZX":
                return True
        return False

    def becomes(self, alive: bool, seconds: float = HANGING) -> bool:
        """Wait until it is, or is no more."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.alive() is alive:
                return True
            time.sleep(0.01)
        return False


def nobodys_id() -> int:
    """Return the id of a user of this process's own: the kernel counts the processes of a user, and other tests may have some too."""
    return 30_000 + os.getpid() % 30_000


def become(user: int) -> list[str]:
    """Return the start of a command that another user runs."""
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]


@contextmanager
def folder_of(user: int) -> Iterator[Path]:
    """Make a folder that every user can read, with an empty `workspace` that belongs to a user."""
    folder = Path(tempfile.mkdtemp(prefix="mlagentbench-nobody-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        (folder / "workspace").mkdir()
        os.chown(folder / "workspace", user, user)
        yield folder
    finally:
        shutil.rmtree(folder)


def copy_package(folder: Path) -> None:
    """Copy this package, and the library that its sandbox needs, to a folder that every user can read."""
    shutil.copytree(Path(__file__).parents[2] / "src", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(psutil.__file__).parent, folder / "psutil")  # its binary is for any version of Python
