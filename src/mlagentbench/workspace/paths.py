"""Read and change files of a workspace by the paths that an agent names, which cannot leave the workspace.

A path is first split into its parts and `..` resolved, without the file system. Then each folder is opened from the one above it, and no
link is followed. The file so reached cannot lie outside, whatever is renamed or linked meanwhile. The same code recognizes read-only data,
so that no spelling of a path can make it writable.

Not covered: what the agent's scripts do to files, which the sandbox limits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from mlagentbench.errors import ActionError, StorageFailed, TaskError
from mlagentbench.sandbox.access import FOLDER, open_folder
from mlagentbench.sandbox.base import WORKSPACE
from mlagentbench.workspace.files import copy_data, remove, write_all
from mlagentbench.workspace.folder_files import FileInFolder, actual_name, descend, open_file, printable, replacing

__all__ = ["Kind", "Use", "Workspace", "create_workspace", "place_data", "printable"]

Kind = Literal["file", "folder", "other"]
Use = Literal["list", "read", "write", "remove"]
READ_LIMIT = 64 << 20
"""The default limit of bytes for reading a file at once."""

CACHES = ("__pycache__", "*.pyc", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".DS_Store")
"""Globs of files that are not copied from a starter."""

_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class Workspace:
    """The folder an agent works in, and the read-only data that appears in it.

    Args:
        root: the run's own folder, which the agent may change.
        data: files and folders of prepared data by their top-level names. They are read at their paths on the host, never copied.
        links: as for `place_data`.

    Every method takes paths relative to the workspace, or absolute ones below `/workspace` or below `root`. Bytes of a path that are not
    UTF-8 are surrogates (`os.fsdecode`). A name that `list` has escaped is accepted in that form too.

    Every method raises `ActionError` with a message for the agent, and `StorageFailed` where the host's disk is full or read-only.
    """

    def __init__(self, root: Path, data: Mapping[str, Path] | None = None, *, links: bool = False) -> None:
        self.root = Path(os.path.abspath(root))
        self.data: Mapping[str, Path] = {name: path.resolve() for name, path in (data or {}).items()}
        self._links = links
        self.watch: Callable[[Use, str], None] = lambda use, path: None
        """A callback that is called with every use of a file and its path as the agent wrote it."""
        for name in self.data:
            if name in ("", ".", "..") or "/" in name:
                raise ValueError(f"{name!r} is no top-level name")

    def restore_data(self) -> None:
        """Create the links or mount points of read-only data again where a script without a sandbox has replaced them."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, TaskError):  # such a script can remove the whole workspace
            place_data(self.root, self.data, links=self._links)

    def list(self, path: str = ".") -> list[str]:
        """Return the names in a folder, sorted, folders with a trailing slash. Unprintable characters are escaped.

        Raises:
            ActionError: there is no such folder.
        """
        self.watch("list", path)
        with self._find(path) as file:
            if not stat.S_ISDIR(os.stat(file.name, dir_fd=file.folder, follow_symlinks=False).st_mode):
                raise ActionError(f"{file.shown} is no folder")
            descriptor = os.open(file.name, FOLDER, dir_fd=file.folder)
            try:
                with os.scandir(descriptor) as entries:
                    found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            finally:
                os.close(descriptor)
        if not self._parts(path):
            found.update((name, host.is_dir()) for name, host in self.data.items())
        return sorted(printable(name) + "/" * is_folder for name, is_folder in found.items())

    def kind(self, path: str) -> Kind | None:
        """Return whether a path names a file, a folder, something else (a link, a pipe, a device), or nothing (None).

        Raises:
            ActionError: the path leads outside.
        """
        try:
            with self._find(path) as file:
                mode = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False).st_mode
        except _Unreachable:
            return None
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def is_read_only(self, path: str) -> bool:
        """Return whether a path lies in the read-only data.

        Raises:
            ActionError: the path leads outside.
        """
        parts = self._parts(path)
        return bool(parts) and parts[0] in self.data

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """Return a file's content.

        Raises:
            ActionError: it is no regular file, has several names (hard links), or is larger than `limit` bytes.
        """
        self.watch("read", path)
        with self._find(path) as file:
            descriptor = open_file(file)
            try:
                size = os.fstat(descriptor).st_size
                if size > limit:
                    raise ActionError(
                        f"{file.shown} is too large to be read at once: {size:,} bytes, at most {limit:,}; read it by a script"
                    )
                with open(descriptor, "rb", closefd=False) as stream:
                    return stream.read(limit)
            finally:
                os.close(descriptor)

    def read_text(self, path: str, limit: int = READ_LIMIT) -> str:
        """Return a file's content as text. Bytes that are not UTF-8 become surrogates, which `write_text` turns back into the same bytes.

        Raises:
            ActionError: as `read_bytes`.
        """
        return self.read_bytes(path, limit).decode("utf-8", "surrogateescape")

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a file, whole or not at all. Missing folders are created, and an existing file keeps its mode.

        Raises:
            ActionError: the path names something other than a file, or read-only data.
        """
        self.watch("write", path)
        with self._find(path, write=True) as file, replacing(file) as descriptor:
            write_all(descriptor, content)

    def write_text(self, path: str, text: str) -> None:
        """Write a text file as UTF-8, with surrogates from `read_text` as the bytes that they stand for.

        Raises:
            ActionError: as `write_bytes`, or the text holds other lone surrogates.
        """
        self.write_bytes(path, _encoded(text))

    def append_text(self, path: str, text: str) -> None:
        """Append to a file. It is created if it does not exist.

        Raises:
            ActionError: as `write_text`.
        """
        content = _encoded(text)
        if self.kind(path) is None:
            return self.write_bytes(path, content)
        self.watch("write", path)
        with self._find(path, write=True) as file:
            descriptor = open_file(file, os.O_WRONLY | os.O_APPEND)
            size = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, content)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
            finally:
                os.close(descriptor)

    def copy(self, source: str, target: str) -> None:
        """Copy a file, with its mode and its holes.

        Raises:
            ActionError: the source is no file, or the target cannot be written.
        """
        self.watch("read", source)
        self.watch("write", target)
        with self._find(source) as origin:
            descriptor = open_file(origin)
            try:
                with self._find(target, write=True) as file, replacing(file, stat.S_IMODE(os.fstat(descriptor).st_mode)) as copied:
                    copy_data(descriptor, copied)
            finally:
                os.close(descriptor)

    def remove(self, path: str) -> None:
        """Remove a file, or a link but not its target.

        Raises:
            ActionError: it does not exist, or is a folder or read-only data.
        """
        self.watch("remove", path)
        with self._find(path, write=True) as file:
            if stat.S_ISDIR(os.stat(file.name, dir_fd=file.folder, follow_symlinks=False).st_mode):
                raise ActionError(f"{file.shown} is a folder; only files can be removed")
            os.unlink(file.name, dir_fd=file.folder)

    def relative(self, path: str) -> str:
        """Return a path as snapshots name it, whatever its spelling: `a/b` for `./a//b` and `/workspace/a/b`.

        Raises:
            ActionError: it cannot be a path of the workspace.
        """
        return "/".join(self._parts(path))

    def _parts(self, path: str) -> tuple[str, ...]:
        """Split a path into its names from the workspace down, with `.` and `..` resolved."""
        shown = _quoted(path)
        if not path:
            raise ActionError("a path is missing; name a file relative to the workspace")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise ActionError(f"{shown} cannot be a path: it holds characters that no file name can") from None
        if "\0" in path:
            raise ActionError(f"{shown} cannot be a path: it holds a null character")
        parts: list[str] = []
        for part in self._from_root(path).split("/"):
            if part == "..":
                if not parts:
                    raise ActionError(f"{shown} is outside the workspace; name files relative to it")
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return tuple(parts)

    def _from_root(self, path: str) -> str:
        """Return a path without the workspace's own path before it, if it is absolute."""
        if not path.startswith("/"):
            return path
        # Scripts see the workspace at `/workspace` or at its path on the host, and an agent uses the paths that they print.
        for top in (WORKSPACE, str(self.root)):
            if path.rstrip("/") == top or path.startswith(top + "/"):
                return path[len(top) :]
        raise ActionError(f"{_quoted(path)} is outside the workspace; name files relative to it")

    @contextmanager
    def _find(self, path: str, write: bool = False) -> Iterator[FileInFolder]:
        """Open a path's last folder. With `write`, create missing folders."""
        parts, shown = self._parts(path), _quoted(path)
        read_only = bool(parts) and parts[0] in self.data
        if write and read_only:
            raise ActionError(f"{shown} is read-only data; write to another path")
        if write and not parts:
            raise ActionError(f"{shown} is the workspace itself; name a file in it")
        base = self.root
        if read_only:
            host = self.data[parts[0]]
            base, parts = host.parent, (host.name, *parts[1:])
        held = []
        try:
            held.append(os.open(base, FOLDER))
            for part in parts[:-1]:
                held.append(descend(held[-1], part, write))
            name = actual_name(held[-1], parts[-1]) if parts else "."
            yield FileInFolder(held[-1], name, shown, read_only)
        except OSError as error:
            raise self._error(error, shown) from None
        finally:
            for descriptor in held:
                os.close(descriptor)

    def _error(self, error: OSError, shown: str) -> ActionError | StorageFailed:
        """Return an error of the operating system as an error with a message for the agent."""
        match error.errno:
            case errno.ENOENT:
                return _Unreachable(f"there is no {shown}")
            case errno.ENOTDIR | errno.ELOOP:
                return _Unreachable(f"{shown} leads through a file or a link; only folders can be entered, and links are not followed")
            case errno.ENAMETOOLONG:
                return _Unreachable(f"{shown} is too long for a path")
            case number if number in _FULL_DISK:
                return StorageFailed(f"cannot write to {self.root}: {error.strerror}; make room, then continue the run")
            case _:
                return ActionError(f"{shown} cannot be used: {error.strerror}")


def create_workspace(root: Path, starter: Path, data: Mapping[str, Path], *, links: bool = False) -> Workspace:
    """Set up a workspace: copy the starter, and create links or mount points for the data.

    Args:
        root: an empty folder; it is created if it does not exist.
        starter: the task's starter.
        data: prepared files and folders by their top-level names, as for `Workspace`.
        links: create links to the data, for sandboxes without a file system of their own; otherwise empty files and folders to mount over.

    Raises:
        TaskError: the starter is missing or has a name that the data has too, or prepared data is missing.
    """
    if not starter.is_dir():
        raise TaskError(f"there is no starter in {starter}")
    for name in data:
        if os.path.lexists(starter / name):
            raise TaskError(f"{starter / name} stands where read-only data of that name belongs; remove one of them")
    shutil.copytree(starter, root, ignore=shutil.ignore_patterns(*CACHES), dirs_exist_ok=True)
    # The starter's files may be read-only where this package is installed; the agent must be able to change the copies.
    for path in (root, *root.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    place_data(root, data, links=links)
    return Workspace(root, data, links=links)


def place_data(root: Path, data: Mapping[str, Path], *, links: bool = False) -> None:
    """Create links or mount points for read-only data. Call it also after restoring a snapshot, which does not hold them.

    Raises:
        TaskError: prepared data is missing.
    """
    for host in data.values():
        if not host.exists():
            raise TaskError(f"the prepared data {host} is missing; prepare the task again")
    folder = open_folder(root)
    try:
        for name, host in data.items():
            _place_one(folder, name, host.resolve(), links)
    finally:
        os.close(folder)


def _place_one(folder: int, name: str, host: Path, links: bool) -> None:
    """Create the link or mount point for one name of data, and replace anything else of that name."""
    wanted = stat.S_IFLNK if links else stat.S_IFDIR if host.is_dir() else stat.S_IFREG
    try:
        kind = stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        if kind == wanted and (not links or os.readlink(name, dir_fd=folder) == str(host)):
            return
        remove(name, folder)
    except FileNotFoundError:
        pass
    if links:
        os.symlink(host, name, dir_fd=folder)
    elif host.is_dir():
        os.mkdir(name, dir_fd=folder)
    else:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder))


class _Unreachable(ActionError):
    """A path names nothing, or leads through something that is no folder."""


def _quoted(path: str) -> str:
    return f"'{printable(path)}'"


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ActionError(f"the text cannot be written: its character {error.start} is half of a surrogate pair") from None
