"""Lock a file, so that one process at a time does something, such as a timed grading on this machine.

The lock is the kernel's (flock on a file that everybody may read), so it ends with its holder and is never stale. It is advisory: it keeps
gradings from disturbing one another, and protects nothing else.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mlagentbench.errors import GradingError
from mlagentbench.util.lock import acquire

PLACES = (Path("/run/lock"), Path("/tmp"))
"""Folders for the lock file; the first that exists is used. Not `tempfile.gettempdir()`, which differs between users and shells."""
NAME = "mlagentbench-timing.lock"
POLL = 0.02
"""Seconds between two tries. A thread that waited in the kernel could not be cancelled."""


def lock_file() -> Path:
    """Return the path of the lock file of timed gradings."""
    return next((place for place in PLACES if place.is_dir()), PLACES[-1]) / NAME


@asynccontextmanager
async def timing() -> AsyncIterator[None]:
    """Hold the machine's lock for a timing; wait until nobody else holds it.

    Raises:
        GradingError: the lock file can be neither opened nor created.
    """
    async with holding(lock_file()):
        yield


@asynccontextmanager
async def holding(path: Path) -> AsyncIterator[None]:
    """Hold a file's lock; wait until nobody else holds it.

    Raises:
        GradingError: the file can be neither opened nor created.
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
    """Try to lock a file; return a descriptor that holds the lock until it is closed, or None to try again later."""
    try:
        descriptor = _open(path)
    except OSError as error:
        raise GradingError(f"no lock for grading: {error}; make {path} a file that can be read") from error
    with suppress(FileNotFoundError):
        # Somebody may have deleted the file, and others would then lock a new one.
        if acquire(descriptor, timeout=0) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    os.close(descriptor)
    return None


def _open(path: Path) -> int:
    """Open a file for reading, which is all that flock needs, so that one user's file serves the others."""
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
