"""Check, open, create and replace names in an open folder, without following a link."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mlagentbench.errors import ActionError
from mlagentbench.sandbox.access import FOLDER
from mlagentbench.workspace.files import READ, like_parent


class FileInFolder(NamedTuple):
    """A name in a folder that is held open."""

    folder: int
    name: str
    shown: str
    read_only: bool


def printable(name: str) -> str:
    r"""Return a name with unprintable characters and bytes that are not UTF-8 as escapes (`\n`, `\xff`)."""
    if name.isprintable():
        return name
    pieces = (
        char if char.isprintable() else f"\\x{ord(char) - 0xDC00:02x}" if 0xDC80 <= ord(char) <= 0xDCFF else repr(char)[1:-1]
        for char in name
    )
    return "".join(pieces)


def descend(folder: int, part: str, create: bool) -> int:
    """Open a folder in an open folder. With `create`, make it if it does not exist."""
    part = actual_name(folder, part)
    try:
        return os.open(part, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    os.mkdir(part, dir_fd=folder)
    descriptor = os.open(part, FOLDER, dir_fd=folder)
    like_parent(descriptor, folder)
    return descriptor


def actual_name(folder: int, part: str) -> str:
    """Return the entry of a folder that an agent means: the one of that name, or the one that `Workspace.list` shows by it."""
    if "\\" not in part or _exists(folder, part):
        return part
    return next((name for name in os.listdir(folder) if printable(name) == part), part)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def open_file(file: FileInFolder, flags: int = os.O_RDONLY) -> int:
    """Open a regular file, and nothing else.

    Raises:
        ActionError: it is no regular file, or has a second name (hard link) and is not read-only data.
    """
    _check_file(os.stat(file.name, dir_fd=file.folder, follow_symlinks=False), file)
    # A file can be replaced by a pipe between the check and this call, which must not wait for a writer then.
    descriptor = os.open(file.name, flags | READ, dir_fd=file.folder)
    try:
        _check_file(os.fstat(descriptor), file)
    except ActionError:
        os.close(descriptor)
        raise
    return descriptor


def _check_file(status: os.stat_result, file: FileInFolder) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ActionError(f"{file.shown} is a folder; name a file")
    if stat.S_ISLNK(status.st_mode):
        raise ActionError(f"{file.shown} is a link, and links are not followed; name the file itself")
    if not stat.S_ISREG(status.st_mode):
        raise ActionError(f"{file.shown} is no regular file")
    if status.st_nlink > 1 and not file.read_only:
        raise ActionError(
            f"{file.shown} has several names (hard links), one of which may lie outside; copy it by a script and use the copy"
        )


@contextmanager
def replacing(file: FileInFolder, mode: int | None = None) -> Iterator[int]:
    """Yield a descriptor of a new file that replaces another at the end of the block, unless the block raises.

    Args:
        file: the name of the file.
        mode: the new file's mode; by default that of the file it replaces.
    """
    try:
        status = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False)
    except FileNotFoundError:
        pass
    else:
        _check_file(status, file)
        mode = stat.S_IMODE(status.st_mode) if mode is None else mode
    temporary = f".{secrets.token_hex(6)}.writing"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | READ, 0o666, dir_fd=file.folder)
    try:
        yield descriptor
        like_parent(descriptor, file.folder)
        if mode is not None:
            os.fchmod(descriptor, mode & 0o777)
        os.rename(temporary, file.name, src_dir_fd=file.folder, dst_dir_fd=file.folder)
    except BaseException:
        os.unlink(temporary, dir_fd=file.folder)
        raise
    finally:
        os.close(descriptor)
