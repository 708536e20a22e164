"""Lock files with flock(2), which the kernel releases when the holder ends, even if it is killed. No other module calls flock.

The package `filelock` is not used: it has no locks on folders or on files that may only be read, and no probe that leaves them unchanged.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

POLL = 0.02
"""Seconds between two tries."""
OWNED = 1.0
"""Seconds after which a lock that another process owns is not waited for: a child of a killed owner may have it for a moment more."""
LOOKED_AT = 60.0
"""Seconds to wait for processes that only look at a lock. Each holds it for microseconds, unless the machine stops it just then."""


def acquire(file: int | IO[bytes] | IO[str], *, timeout: float | None = None, shared: bool = False) -> bool:
    """Lock an open file or folder until it is released or closed, and return whether that succeeded.

    Args:
        file: the file, or its descriptor. A child process that inherits it holds the lock too.
        timeout: the seconds to try; 0 for a single try, None to wait in the kernel as long as it takes.
        shared: whether others may hold a shared lock at the same time.
    """
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if timeout is None:
        fcntl.flock(file, mode)
        return True
    end = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(file, mode | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
        time.sleep(POLL)


def own(file: IO[bytes]) -> bool:
    """Lock an open file that other processes look at with `held`, and return whether that succeeded: not if one of them owns it."""
    begun = looked_at = time.monotonic()
    while not acquire(file, timeout=0):
        now = time.monotonic()  # before the look: this process may be stopped after it
        if acquire(file, timeout=0, shared=True):
            release(file)
            looked_at = now
        if now - looked_at > OWNED or now - begun > LOOKED_AT:
            return False
        time.sleep(POLL)
    return True


def release(file: int | IO[bytes] | IO[str]) -> None:
    """Unlock a file that stays open."""
    fcntl.flock(file, fcntl.LOCK_UN)


def held(path: Path) -> bool:
    """Return whether a process holds the lock of a file; False if the file is missing or cannot be read.

    To find out, this holds a shared lock for a moment.
    """
    try:
        # O_NONBLOCK, since opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not acquire(descriptor, timeout=0, shared=True)
    finally:
        os.close(descriptor)
