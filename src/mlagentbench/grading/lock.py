"""One at a time, whoever asks: timed gradings on a machine, and whatever else has a file to lock.

The lock is the kernel's (flock on a file that everybody may read), so it ends with its holder and is never stale. It is advisory: it keeps
gradings from disturbing one another, and nothing else.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mlagentbench.errors import GradingError

PLACES = (Path("/run/lock"), Path("/tmp"))
"""Where the file may lie: the first that exists. Not `tempfile.gettempdir()`, which differs between users and even shells."""
NAME = "mlagentbench-timing.lock"
POLL = 0.02
"""Seconds between two tries. A thread that waited in the kernel could not be cancelled."""


def lock_file() -> Path:
    """The file that is locked."""
    return next((place for place in PLACES if place.is_dir()), PLACES[-1]) / NAME


@asynccontextmanager
async def timing() -> AsyncIterator[None]:
    """Have the machine for a timing; waits until nobody else has it.

    Raises:
        GradingError: the lock's file can be neither opened nor made.
    """
    async with holding(lock_file()):
        yield


@asynccontextmanager
async def holding(path: Path) -> AsyncIterator[None]:
    """Have a file's lock; waits until nobody else has it.

    Raises:
        GradingError: the file can be neither opened nor made.
    """
    descriptor = _take(path)
    while descriptor is None:
        await asyncio.sleep(POLL)
        descriptor = _take(path)
    try:
        yield
    finally:
        os.close(descriptor)


def _take(path: Path) -> int | None:
    """The lock, as a descriptor that holds it until closed; None where another has it."""
    try:
        descriptor = _open(path)
    except OSError as error:
        raise GradingError(f"no lock for grading: {error}; make {path} a file that can be read") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Somebody may have tidied the folder: a lock on a file that nobody else finds would be no lock.
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def _open(path: Path) -> int:
    """Open for reading, which is all that flock needs, so that one user's file serves the others."""
    plain = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, plain)
    except FileNotFoundError:
        try:
            descriptor = os.open(path, plain | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return os.open(path, plain)
        os.fchmod(descriptor, 0o644)  # whatever the user's umask is
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return descriptor
