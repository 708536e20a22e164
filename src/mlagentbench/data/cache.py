"""The cache: where prepared data and downloads lie, and the locks by which several processes share them.

<cache>/
  prepared/<task>/<variant>-<key>/   public/, private/ and prepared.json; the key is of what made them (prepare.py)
  prepared/<task>/.<variant>-*/      a preparation that goes on, or one that was killed
  downloads/<source>/                a file or files as they were published, each with its record beside it (fetch.py)
  baselines/<task>/                  what its starter scores, measured
  locks/                             a file each; never removed, since a lock on a removed file is none
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, ClassVar, TypeVar

import platformdirs

from mlagentbench.errors import TaskError
from mlagentbench.records import Record

CACHE_VARIABLE = "MLAB_CACHE"
RECORD_SUFFIX = ".record"
"""Of hidden files beside downloads, which hold JSON."""
LONGEST = 120
"""Characters of a lock's name; a file system takes 255 bytes."""

R = TypeVar("R", bound=Record)


class Source(Record):
    """Where a folder of downloads comes from; it lies in it from the beginning."""

    NAME: ClassVar[str] = ".source.record"

    url: str
    task: str | None
    """For whom it was first downloaded."""


def is_record(path: Path) -> bool:
    """Whether a file of the downloads is a note of ours."""
    return path.name.startswith(".") and path.suffix == RECORD_SUFFIX


def cache_directory() -> Path:
    """Where prepared data is kept: `$MLAB_CACHE`, or the platform's place for caches."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser().absolute() if named else Path(platformdirs.user_cache_dir("mlagentbench"))


@contextmanager
def locked(cache: Path, name: str, waiting: Callable[[], object] | None = None) -> Iterator[IO[bytes]]:
    """Hold a lock of the cache, against other processes and other threads alike; it ends with its holder, killed or not.

    Args:
        cache: the cache.
        name: of the lock.
        waiting: is called once if another holds it, before this one waits.

    Yields:
        The open file: a child process that inherits it holds the lock too.

    Raises:
        TaskError: the cache cannot be written.
    """
    with _open(cache, name) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


@contextmanager
def locked_if_free(cache: Path, name: str) -> Iterator[bool]:
    """Hold a lock if nobody else does.

    Yields:
        Whether it is held.

    Raises:
        TaskError: the cache cannot be written.
    """
    with _open(cache, name) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def read_record(path: Path, kind: type[R]) -> R | None:
    """A record; None where there is none, or none of this kind."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def write_record(path: Path, record: Record) -> None:
    """Write a record, whole or not at all.

    Raises:
        OSError: the disk is full or read-only.
    """
    new = path.with_name(f".{path.name.lstrip('.')}.new")
    new.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def _open(cache: Path, name: str) -> IO[bytes]:
    path = cache / "locks" / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[-LONGEST:]}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError as error:
        raise unwritable(cache, error) from None


def unwritable(cache: Path, error: OSError) -> TaskError:
    """The error of a cache that cannot be written."""
    return TaskError(f"cannot write to the cache {cache}: {error.strerror}; name another folder with --cache-dir or ${CACHE_VARIABLE}")
