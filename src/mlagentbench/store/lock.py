"""The lock of a run: the kernel's, so that none outlives the process that holds it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO, Any

TRIES = 5
"""How often a lock is tried: who only asks whether it is held holds it for a moment."""
BETWEEN = 0.02
"""Seconds between two tries."""


def take(file: IO[Any]) -> bool:
    """Take the lock of a file, for as long as it is open; False where another process has it."""
    for _ in range(TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(BETWEEN)
        else:
            return True
    return False


def held(path: Path) -> bool:
    """Whether a process holds the lock of a file; False where there is no such file, or none that may be read."""
    try:
        # Without waiting for whoever may write into a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        try:
            # Shared, so that any number may ask at once.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
