"""Write files atomically: a file appears whole or not at all, and unless said otherwise survives a power loss."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{6}")


def publish(path: Path, content: str | bytes) -> None:
    """Write a new file.

    Raises:
        OSError: it cannot be written, or exists already.
    """
    with _temporary(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        flush(temporary)
        os.link(temporary, path)
    flush(path.parent)


def replace(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Write a file, replacing one that exists already.

    Args:
        path: the file.
        content: its new content.
        durable: whether to flush it to disk, so that it survives a power loss.

    Raises:
        OSError: it cannot be written. An earlier file is still there.
    """
    with replacing(path, durable=durable) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file beside a path. At the end of the block it replaces the file there, unless the block raises."""
    with _temporary(path) as temporary:
        yield temporary
        if durable:
            flush(temporary)
        os.replace(temporary, path)
    if durable:
        flush(path.parent)


def flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk.

    Raises:
        OSError: the disk is full or broken.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        (os.fsync if path.is_dir() else os.fdatasync)(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder. Call it only while no other process writes there.

    Raises:
        OSError: the folder is read-only.
    """
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            path.unlink()


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Yield a new path beside a path, and remove the file there at the end of the block if it still exists."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
