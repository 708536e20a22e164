"""Lock a run with flock(2), which the kernel releases when the process that holds it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO, Any

TRIES = 5
"""How often taking a lock is tried: `held` in another process takes it for a moment."""
BETWEEN = 0.02
"""Seconds between two tries."""


def take(file: IO[Any]) -> bool:
    """Lock a file for as long as it is open, and return whether that succeeded: False if another process holds the lock."""
    for _ in range(TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(BETWEEN)
        else:
            return True
    return False


def held(path: Path) -> bool:
    """Return whether a process holds the lock of a file; False if the file is missing or cannot be read."""
    try:
        # O_NONBLOCK, since opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        try:
            # A shared lock, so that several processes can ask at once.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
