"""Restore a snapshot: names, modes, times of files, links and holes. Each content is checked against its digest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import zstandard

from mlagentbench.errors import StorageFailed
from mlagentbench.sandbox.access import FOLDER, open_folder
from mlagentbench.workspace.files import clear, clone, copy_data, like_parent, write_all
from mlagentbench.workspace.snapshots.content import Unread, digest_of, digest_of_file
from mlagentbench.workspace.snapshots.manifest import Manifest, ManifestEntry
from mlagentbench.workspace.snapshots.objects import Objects


class NotRestored(NamedTuple):
    """A name of a snapshot that was not restored, or a folder not restored in full, and why."""

    path: str
    reason: str


def restore(objects: Objects, manifest: Manifest, destination: Path, replace: bool) -> tuple[NotRestored, ...]:
    """Write a snapshot into an empty folder. With `replace`, empty the folder first.

    Returns:
        What was not restored.

    Raises:
        StorageFailed: the folder is not empty, or the store lacks a content or has a damaged one.
        OSError: the disk is full, or something in the folder cannot be removed.
    """
    root = open_folder(destination)
    try:
        if replace:
            clear(root)
        elif os.listdir(root):
            raise StorageFailed(f"a snapshot is restored into an empty folder, and {destination} holds something")
        restoring = _Restoring(objects, manifest, root)
        restoring.run()
        return tuple(restoring.missing)
    finally:
        os.close(root)


class _Restoring:
    def __init__(self, objects: Objects, manifest: Manifest, root: int) -> None:
        self.missing: list[NotRestored] = []
        self._objects = objects
        self._entries = manifest.entries
        self._root = root

    def run(self) -> None:
        second_names = []
        for parent, paths in self._by_folder().items():
            with self._folder(parent) as folder:
                for path in paths:
                    entry, name = self._entries[path], path.rpartition("/")[2]
                    if entry.kind == "folder":
                        self._make_folder(folder, name)
                        if entry.note:
                            self.missing.append(NotRestored(path, entry.note))
                    elif entry.kind == "file" and entry.target in self._entries:
                        second_names.append(path)
                    else:
                        self._make(folder, name, path, entry)
        for path in second_names:
            self._link(path, self._entries[path])
        # Modes are set last, and those of inner folders first, since a folder's mode may deny writing into it.
        folders = [path for path, entry in self._entries.items() if entry.kind == "folder"]
        for path in sorted(folders, key=lambda path: path.count("/"), reverse=True):
            with self._folder(path) as folder:
                os.fchmod(folder, self._entries[path].mode & 0o1777)

    def _by_folder(self) -> dict[str, list[str]]:
        """Group paths by their folders, outer folders first, so that each folder is opened once."""
        folders: dict[str, list[str]] = {}
        for path in sorted(self._entries):
            folders.setdefault(path.rpartition("/")[0], []).append(path)
        return folders

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """Open a folder below the root, and create it if it does not exist."""
        descriptor = os.dup(self._root)
        try:
            for part in path.split("/") if path else ():
                self._make_folder(descriptor, part)
                below = os.open(part, FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _make_folder(self, parent: int, name: str) -> None:
        try:
            os.mkdir(name, 0o755, dir_fd=parent)
        except FileExistsError:
            return
        descriptor = os.open(name, FOLDER, dir_fd=parent)
        like_parent(descriptor, parent)
        os.close(descriptor)

    def _make(self, parent: int, name: str, path: str, entry: ManifestEntry) -> None:
        if entry.kind == "link" and entry.target is not None:
            os.symlink(entry.target, name, dir_fd=parent)
        elif entry.kind == "file" and entry.digest is not None:
            self._make_file(parent, name, path, entry)
        else:
            self.missing.append(NotRestored(path, entry.note or f"a {entry.kind} is not restored"))

    def _link(self, path: str, entry: ManifestEntry) -> None:
        assert entry.target is not None
        parent, _, name = path.rpartition("/")
        first_parent, _, first = entry.target.rpartition("/")
        with self._folder(first_parent) as origin, self._folder(parent) as folder:
            os.link(first, name, src_dir_fd=origin, dst_dir_fd=folder, follow_symlinks=False)

    def _make_file(self, parent: int, name: str, path: str, entry: ManifestEntry) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        try:
            write_content(self._objects, entry, descriptor)
            like_parent(descriptor, parent)
            os.fchmod(descriptor, entry.mode & 0o777)
            os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(descriptor)


def read_content(objects: Objects, entry: ManifestEntry) -> bytes:
    """Return a file's content.

    Raises:
        StorageFailed: it was not stored, is missing, or is damaged.
    """
    descriptor, packed = _open(objects, entry)
    with open(descriptor, "rb") as file:
        content = file.read()
    if packed:
        try:
            content = zstandard.ZstdDecompressor().decompress(content, max_output_size=entry.size)
        except zstandard.ZstdError:
            raise _damaged(objects, entry) from None
    if digest_of(content) != entry.digest:
        raise _damaged(objects, entry)
    return content


def check_content(objects: Objects, entry: ManifestEntry) -> None:
    """Read a file's content without keeping it.

    Raises:
        StorageFailed: it was not stored, is missing, or is damaged.
    """
    source, packed = _open(objects, entry)
    try:
        if packed:
            read_content(objects, entry)
        elif digest_of_file(source) != entry.digest:
            raise _damaged(objects, entry)
    except Unread:
        raise _damaged(objects, entry) from None
    finally:
        os.close(source)


def write_content(objects: Objects, entry: ManifestEntry, target: int) -> None:
    """Write a file's content into an empty file. Holes stay holes.

    Raises:
        StorageFailed: it was not stored, is missing, or is damaged.
    """
    source, packed = _open(objects, entry)
    try:
        if packed:
            write_all(target, read_content(objects, entry))
            return
        if not clone(source, target):
            copy_data(source, target)
    finally:
        os.close(source)
    if digest_of_file(target) != entry.digest:
        raise _damaged(objects, entry)


def _open(objects: Objects, entry: ManifestEntry) -> tuple[int, bool]:
    if entry.digest is None:
        raise StorageFailed(f"the content was not kept: {entry.note or entry.kind}")
    try:
        return objects.open(entry.digest)
    except FileNotFoundError:
        raise StorageFailed(f"{objects.root} lacks a content that the snapshot names: {entry.digest}") from None


def _damaged(objects: Objects, entry: ManifestEntry) -> StorageFailed:
    return StorageFailed(f"a content in {objects.root} is damaged, its bytes are not those of its name: {entry.digest}")
