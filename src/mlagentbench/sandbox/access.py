"""Folders and files of a workspace, opened and measured whatever modes a script gave them.

Everything is reached by descriptors and no link is followed, so that nothing outside a workspace is changed, whatever a script that still
runs swaps meanwhile. Modes of folders and files become such that their owner can use them; bits that lend an owner's rights (setuid and
setgid) are taken away. Not covered: files that belong to another user, and flags that only root can set (`chattr +i`).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OF_FOLDERS, OF_FILES = 0o700, 0o600
"""What the owners of folders, and of files that they could not read, are given."""
LENT = 0o6000
"""The setuid and the setgid bit."""
DEEPEST = 300
"""Folders within folders beyond which nothing is measured; each of them is held open."""
_ONLY_NAME = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
_INHERITED = "system.posix_acl_default"


class Measured(NamedTuple):
    """What a folder holds."""

    bytes: float
    """On disk; infinite where folders are nested deeper than `DEEPEST`."""
    files: int
    """Names of any kind: files, folders, links."""


def open_folder(path: str | os.PathLike[str], within: int | None = None) -> int:
    """Open a folder, and make sure that its owner can list it, change it and enter it.

    Args:
        path: the folder, relative to `within` if that is given.
        within: a descriptor of the folder it is in.

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
        os.removexattr(descriptor, _INHERITED)  # by which all that is made there could be closed to its owner
    return descriptor


def make_usable(path: str | os.PathLike[str], within: int | None = None) -> None:
    """Give a folder or a regular file a mode by which its owner can use it. Leave what belongs to somebody else as it is."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, _ONLY_NAME, dir_fd=within)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                least = OF_FOLDERS if stat.S_ISDIR(mode) else OF_FILES
                # A descriptor of a mere name cannot be changed by fchmod; the kernel's link to it leads to that very file.
                os.chmod(f"/proc/self/fd/{descriptor}", _usable(stat.S_IMODE(mode), least))
        finally:
            os.close(descriptor)


def is_usable(mode: int) -> bool:
    """Whether a regular file can be read by its owner, and lends nobody the owner's rights."""
    return mode & (LENT | stat.S_IRUSR) == stat.S_IRUSR


def measure(root: str | os.PathLike[str], most: Measured) -> Measured:
    """Measure a folder, until it is known to hold more than `most` of anything. Takes 3 µs a file."""
    size, files = 0, 0
    with contextlib.ExitStack() as opened:
        held = [_Listing(root, None, opened)]
        while held and size <= most.bytes and files <= most.files:
            entry = held[-1].next()
            if entry is None:
                held.pop().close()
                continue
            files += 1
            with contextlib.suppress(OSError):  # it went away
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    if len(held) > DEEPEST:
                        return Measured(float("inf"), files)
                    held.append(_Listing(entry.name, held[-1].descriptor, opened))
    return Measured(size, files)


class _Listing:
    """A folder that is being listed; empty where it went away or belongs to somebody else."""

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
