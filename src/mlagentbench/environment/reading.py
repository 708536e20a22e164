"""Records which files of a folder are opened, through inotify(7). That includes scripts in a sandbox, which mounts the same folder.

Not covered: systems other than Linux, sandboxes on another kernel, and more files at once than the kernel's queue holds. There the list is
incomplete, or empty.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

MOST = 200
"""The most files that one call reports."""
_OPEN, _OVERFLOW, _IS_FOLDER = 0x20, 0x4000, 0x40000000
_HEAD = struct.Struct("iIII")


class FileAccessLog:
    """Reports the files of a folder that were opened. The folder must not change.

    Args:
        folder: the folder; None to report nothing.
        name: the folder's name in the reported paths.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._name = name
        self._folders: dict[int, Path] = {}
        self._descriptor = _watch(folder, self._folders) if folder else -1

    def opened(self) -> list[str]:
        """Return the files that were opened since the last call, sorted."""
        found: set[str] = set()
        while events := self._events():
            position = 0
            while position < len(events):
                watch, mask, _, length = _HEAD.unpack_from(events, position)
                position += _HEAD.size + length
                name = os.fsdecode(events[position - length : position].rstrip(b"\0"))
                if mask & _OVERFLOW:
                    found.add(f"{self._name}/… (more than could be noted)")
                elif mask & _OPEN and not mask & _IS_FOLDER and watch in self._folders:
                    found.add(f"{self._name}/{self._folders[watch] / name}")
        told = sorted(found)
        return told if len(told) <= MOST else [*told[:MOST], f"{self._name}/… and {len(told) - MOST} more"]

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _events(self) -> bytes:
        try:
            return os.read(self._descriptor, 1 << 16) if self._descriptor >= 0 else b""
        except BlockingIOError:
            return b""


def _watch(folder: Path, folders: dict[int, Path]) -> int:
    """Watch a folder and all folders below it through inotify(7).

    Args:
        folder: the folder.
        folders: is filled with the watched folders, relative to `folder`, by watch descriptor.

    Returns:
        The inotify descriptor; -1 if the system has no inotify.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "inotify_init1"):
        return -1
    descriptor: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return -1
    for place, _, _ in os.walk(folder):
        watch = library.inotify_add_watch(descriptor, os.fsencode(place), _OPEN)
        if watch >= 0:
            folders[watch] = Path(place).relative_to(folder)
    return descriptor
