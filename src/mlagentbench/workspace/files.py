"""What everything here that touches files shares: how they are opened, written and copied, holes included."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from mlagentbench.sandbox.access import open_folder

READ = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a file is opened: no link is followed, no pipe waited for. (`O_RDONLY` is 0.)"""
CHUNK = 1 << 20
_FICLONE = 0x40049409


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write all of it, however little the kernel takes at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """The stretches of a file that hold data, as (start, end); what lies between is holes."""
    position = 0
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
            end = min(size, os.lseek(descriptor, start, os.SEEK_HOLE))
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        if start >= size:
            return
        yield start, end
        position = end


def copy_data(source: int, target: int) -> None:
    """Copy a file's content into an empty file; holes stay holes."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    for start, end in extents(source, size):
        while start < end and (block := os.pread(source, min(CHUNK, end - start), start)):
            os.lseek(target, start, os.SEEK_SET)
            write_all(target, block)
            start += len(block)


def like_parent(descriptor: int, folder: int) -> None:
    """Give a new file its folder's owner, so that scripts run by a lesser user can change what a harness run by root wrote."""
    if os.geteuid() == 0:
        status = os.fstat(folder)
        os.fchown(descriptor, status.st_uid, status.st_gid)


def clone(source: int, target: int) -> bool:
    """Let an empty file share another's blocks until either is written to; False where the file system cannot.

    Raises:
        OSError: the disk is full.
    """
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False
    return True


def clear(folder: int) -> None:
    """Remove all that an open folder holds, however deep and whatever its modes; links themselves, not what they point at.

    A folder's own folders are moved up before it is removed, so that no depth needs a descriptor or a call for each level.

    Raises:
        OSError: something belongs to another user.
    """
    while found := _names(folder):
        for name, is_folder in found.items():
            if not is_folder:
                os.unlink(name, dir_fd=folder)
                continue
            inside = open_folder(name, folder)
            try:
                for below, is_folder_too in _names(inside).items():
                    if is_folder_too:
                        os.close(open_folder(below, inside))  # one that cannot be changed cannot be moved
                        os.rename(below, secrets.token_hex(16), src_dir_fd=inside, dst_dir_fd=folder)
                    else:
                        os.unlink(below, dir_fd=inside)
            finally:
                os.close(inside)
            os.rmdir(name, dir_fd=folder)


def remove(name: str, folder: int) -> None:
    """Remove a name from an open folder, with all that it holds.

    Raises:
        OSError: something belongs to another user, or there is no such name.
    """
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return os.unlink(name, dir_fd=folder)
    inside = open_folder(name, folder)
    try:
        clear(inside)
    finally:
        os.close(inside)
    os.rmdir(name, dir_fd=folder)


def _names(folder: int) -> dict[str, bool]:
    """The names in an open folder, and whether each is a folder."""
    with os.scandir(folder) as entries:
        return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}


def bytes_of(path: Path) -> bytes:
    """Read a regular file, or one that a link leads to.

    Raises:
        OSError: it cannot be read, or is something else, such as a folder or a pipe.
    """
    # Without waiting for whoever may write into a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read()
