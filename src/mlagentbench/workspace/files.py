"""Helpers to open, write, copy and remove files, with holes preserved. Other modules of this package build on them."""

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
"""Flags for opening a file without following a link or waiting for a pipe. (`O_RDONLY` is 0.)"""
CHUNK = 1 << 20
_FICLONE = 0x40049409


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """Write all bytes, with as many calls as the kernel needs."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a file that hold data, as (start, end) in bytes. Between them are holes."""
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
    """Copy a file's content into an empty file. Holes stay holes."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    for start, end in extents(source, size):
        while start < end and (block := os.pread(source, min(CHUNK, end - start), start)):
            os.lseek(target, start, os.SEEK_SET)
            write_all(target, block)
            start += len(block)


def like_parent(descriptor: int, folder: int) -> None:
    """Give a new file its folder's owner if run by root, so that scripts of another user can change the file."""
    if os.geteuid() == 0:
        status = os.fstat(folder)
        os.fchown(descriptor, status.st_uid, status.st_gid)


def clone(source: int, target: int) -> bool:
    """Make an empty file share another's blocks until either is written to (FICLONE). Returns False where the file system cannot.

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
    """Remove all that an open folder holds, at any depth and with any modes. Links are removed, not their targets.

    Before a folder is removed, its subfolders are moved up, so that no nesting needs an open descriptor or a recursive call per level.

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
                        os.close(open_folder(below, inside))  # moving a folder needs the right to write to it, which this grants
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
    """List the names in an open folder, and whether each is a folder."""
    with os.scandir(folder) as entries:
        return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}


def bytes_of(path: Path, most: int | None = None) -> bytes:
    """Read a regular file of at most `most` bytes, or of any size for None. Links are followed.

    Raises:
        OSError: it cannot be read, is larger, or is not a regular file but, for example, a folder or a pipe.
    """
    # Opening a pipe would otherwise wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if most is not None and status.st_size > most:
            raise OSError(errno.EFBIG, f"it has {status.st_size >> 20:,} MB, and at most {most >> 20:,} MB are read")
        return file.read()
