"""Locate the cache of prepared data and downloads, and lock its entries so that several processes can share it.

<cache>/
  prepared/<task>/<variant>-<key>/   public/, private/ and prepared.json; the key is a digest of what made them (sources.py)
  prepared/<task>/.<variant>-*/      a preparation in progress, or one that was killed
  downloads/<source>/                files as they were published, each with its record beside it (fetch.py)
  baselines/<task>/                  the measured scores of the task's starter
  locks/                             one file per lock; never removed, since a lock on a removed file excludes nobody
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, ClassVar, TypeVar

import platformdirs

from mlagentbench.errors import TaskError
from mlagentbench.records import Record
from mlagentbench.util.atomic import replace
from mlagentbench.util.lock import acquire

CACHE_VARIABLE = "MLAB_CACHE"
RECORD_SUFFIX = ".record"
"""The suffix of the hidden JSON files beside downloads."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""The error numbers of a full disk."""
LONGEST = 120
"""The most characters of a lock's name; file systems allow 255 bytes."""

R = TypeVar("R", bound=Record)


class Source(Record):
    """Where a folder of downloads comes from. It is written into the folder before the first download."""

    NAME: ClassVar[str] = ".source.record"

    url: str
    task: str | None
    """The task for which it was first downloaded."""


def is_record(path: Path) -> bool:
    """Return whether a file among the downloads is one of our records."""
    return path.name.startswith(".") and path.suffix == RECORD_SUFFIX


def cache_directory() -> Path:
    """Return the cache's folder: `$MLAB_CACHE`, or the platform's user cache directory."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser().absolute() if named else Path(platformdirs.user_cache_dir("mlagentbench"))


@contextmanager
def locked(cache: Path, name: str, waiting: Callable[[], object] | None = None) -> Iterator[None]:
    """Hold a lock of the cache against other processes and threads. The kernel releases it when its holder ends, even if killed.

    `waiting` is called once if it is held already.

    Raises:
        TaskError: the cache cannot be written.
    """
    with _open(cache, name) as file:
        if not acquire(file, timeout=0):
            if waiting:
                waiting()
            acquire(file)
        yield


@contextmanager
def locked_if_free(cache: Path, name: str) -> Iterator[bool]:
    """Hold a lock of the cache if it is free; do not wait for it.

    Yields:
        Whether the lock was taken.

    Raises:
        TaskError: the cache cannot be written.
    """
    with _open(cache, name) as file:
        yield acquire(file, timeout=0)


def read_record(path: Path, kind: type[R]) -> R | None:
    """Return the record in a file; None if there is no file, or it holds no record of this kind."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def write_record(path: Path, record: Record) -> None:
    """Write a record atomically.

    Raises:
        OSError: the disk is full or read-only.
    """
    replace(path, record.model_dump_json(indent=1) + "\n")


def _open(cache: Path, name: str) -> IO[bytes]:
    path = cache / "locks" / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[-LONGEST:]}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError as error:
        raise unwritable(cache, error) from None


def unwritable(cache: Path, error: OSError) -> TaskError:
    """Return the error for a cache that cannot be written, or that is full."""
    if error.errno in FULL:
        return TaskError(f"no space is left in the cache {cache}; free some, or name another folder with --cache-dir or ${CACHE_VARIABLE}")
    return TaskError(f"cannot write to the cache {cache}: {error.strerror}; name another folder with --cache-dir or ${CACHE_VARIABLE}")
