"""Write files atomically and durably: a file appears whole or not at all, and survives a power loss."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{6}")


def publish(path: Path, text: str) -> None:
    """Write a new file, atomically and durably.

    Raises:
        OSError: it cannot be written, or exists already.
    """
    temporary = _written(path, text)
    try:
        os.link(temporary, path)
    finally:
        temporary.unlink()
    flush(path.parent)


def replace(path: Path, text: str) -> None:
    """Write a file atomically, replacing one that exists already.

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
    """Flush a file, or the entries of a folder, to disk.

    Raises:
        OSError: the disk is full or broken.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
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


def _written(path: Path, text: str) -> Path:
    """Write a temporary file beside a path, flush it to disk, and return its path."""
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
