"""Read a submission's files: regular files only, of bounded size, opened without following any link.

Anything else is an InvalidSubmission whose reason names it. Nothing here blocks, and no file is read beyond the size that was checked.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from mlagentbench.errors import InvalidSubmission
from mlagentbench.sandbox.access import FOLDER
from mlagentbench.workspace.files import READ

MAX_BYTES = 64 * 2**20
"""The largest size of one file, unless a grader says otherwise."""
MAX_CODE_BYTES = 64 * 2**20
"""The largest size of all files of a folder of code together."""
MAX_FILES = 10_000
"""The most files and folders of a submission."""
MAX_PATH = 1024
"""The most bytes of a folder's path within a submission, so that copies elsewhere stay below the 4,095 of Linux."""


class SubmissionFiles(NamedTuple):
    """The files of a submission, or of a starter."""

    root: Path

    def names(self) -> tuple[str, ...]:
        """Return the paths of the regular files, relative to the folder, with forward slashes, sorted.

        Raises:
            InvalidSubmission: there are too many, one has too long a path, or a folder cannot be read.
        """
        found: list[str] = []
        folders = [""]
        while folders:
            prefix = folders.pop()
            if len(os.fsencode(prefix)) > MAX_PATH:
                raise InvalidSubmission(f"the path {prefix[:60]}… is longer than {MAX_PATH:,} bytes; leave files in fewer folders")
            try:
                with os.scandir(self.root / prefix) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(f"{prefix}{entry.name}/")
                        elif entry.is_file(follow_symlinks=False):
                            found.append(f"{prefix}{entry.name}")
            except OSError as error:
                raise InvalidSubmission(f"{prefix or 'its folder'} cannot be read ({error.strerror}); leave folders that can be") from None
            if len(found) + len(folders) > MAX_FILES:
                raise InvalidSubmission(f"there are more than {MAX_FILES:,} files and folders; leave fewer")
        return tuple(sorted(found))

    @contextmanager
    def open(self, name: str, max_bytes: int = MAX_BYTES) -> Iterator[IO[bytes]]:
        """Open a file for reading.

        Raises:
            InvalidSubmission: it does not exist, it is no regular file, a link leads to it, or it is larger than `max_bytes`.
        """
        descriptor = self._descriptor(name)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidSubmission(f"{name} is {_kind(status.st_mode)}; leave a regular file")
            if status.st_size > max_bytes:
                raise InvalidSubmission(f"{name} has {_size(status.st_size)}, more than {_size(max_bytes)}")
            with open(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)

    def read_bytes(self, name: str, max_bytes: int = MAX_BYTES) -> bytes:
        """Return a file's content.

        Raises:
            InvalidSubmission: as `open` does.
        """
        with self.open(name, max_bytes) as file:
            # Read only the size that was checked: the file may have grown since.
            return file.read(os.fstat(file.fileno()).st_size)

    def read_text(self, name: str, max_bytes: int = MAX_BYTES) -> str:
        """Return a file's content, which must be UTF-8, with or without a byte order mark.

        Raises:
            InvalidSubmission: as `open` does, or it is no UTF-8.
        """
        try:
            return self.read_bytes(name, max_bytes).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidSubmission(f"{name} is not UTF-8 (byte {error.start}); write it as UTF-8") from None

    def copy_to(self, folder: Path, max_bytes: int = MAX_CODE_BYTES) -> None:
        """Copy the regular files into a folder, with their folders, and nothing else.

        Raises:
            InvalidSubmission: together they are larger than `max_bytes`, or they cannot be listed or opened as above.
        """
        left = max_bytes
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.names():
            with self.open(name, max_bytes) as source:
                left -= os.fstat(source.fileno()).st_size
                if left < 0:
                    raise InvalidSubmission(f"its files are larger than {_size(max_bytes)} together; leave less")
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)

    def _descriptor(self, name: str) -> int:
        """Open a path part by part, none of which may be a link, and without blocking, as a named pipe would."""
        *folders, file = Path(name).parts
        here = os.open(self.root, FOLDER)
        try:
            for part in folders:
                below = os.open(part, FOLDER, dir_fd=here)
                os.close(here)
                here = below
            return os.open(file, READ, dir_fd=here)
        except FileNotFoundError:
            raise InvalidSubmission(f"there is no {name}") from None
        except OSError as error:
            what = "a link" if error.errno == errno.ELOOP else f"no regular file ({error.strerror})"
            raise InvalidSubmission(f"{name} is {what}; leave a regular file") from None
        finally:
            os.close(here)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MB" if count >= 2**20 else f"{count:,} bytes"
