"""Files that are there whole or not at all, and stay when the machine loses its power."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{6}")


def publish(path: Path, text: str) -> None:
    """Write a new file.

    Raises:
        OSError: it cannot be written, or stands there already.
    """
    temporary = _written(path, text)
    try:
        os.link(temporary, path)
    finally:
        temporary.unlink()
    flush(path.parent)


def replace(path: Path, text: str) -> None:
    """Write a file; one that stands there already goes when the new one is whole.

    Raises:
        OSError: it cannot be written.
    """
    temporary = _written(path, text)
    try:
        os.replace(temporary, path)
    except OSError:
        temporary.unlink()
        raise
    flush(path.parent)


def flush(path: Path) -> None:
    """Have a file, or the names in a folder, on disk when this returns.

    Raises:
        OSError: the disk is full or broken.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove what processes that were killed had begun to write here. Nobody may be writing meanwhile.

    Raises:
        OSError: the folder is read-only.
    """
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            path.unlink()


def _written(path: Path, text: str) -> Path:
    """Write a file beside its place and flush it to disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fdatasync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
