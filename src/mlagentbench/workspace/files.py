"""What everything here that touches files shares: how they are opened, written and copied, holes included."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator

READ = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a file is opened: no link is followed, no pipe waited for. (`O_RDONLY` is 0.)"""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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
