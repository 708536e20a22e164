"""What the sandbox tests share."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from mlagentbench.sandbox.base import Execution

Run = Callable[..., Execution]


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

    def becomes(self, alive: bool, seconds: float = 5.0) -> bool:
        """Wait until it is, or is no more."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.alive() is alive:
                return True
            time.sleep(0.01)
        return False
