"""A snapshot back into files: names, modes, times, links and holes as they were, each content checked against its digest on the way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import zstandard

from mlagentbench.errors import StorageFailed
from mlagentbench.workspace.files import CHUNK, FOLDER, clone, copy_data, like_parent, write_all
from mlagentbench.workspace.manifest import Entry, Manifest
from mlagentbench.workspace.objects import Objects, digest_of, digest_of_file


class NotRestored(NamedTuple):
    """A name of a snapshot that did not come back, and why."""

    path: str
    reason: str


def restore(objects: Objects, manifest: Manifest, destination: Path) -> tuple[NotRestored, ...]:
    """Write a snapshot into an empty folder."""
    if any(destination.iterdir()):
        raise StorageFailed(f"a snapshot is restored into an empty folder, and {destination} is none")
    root = os.open(destination, FOLDER)
    try:
        restoring = _Restoring(objects, manifest, root)
        restoring.run()
        return tuple(restoring.missing)
    finally:
        os.close(root)


class _Restoring:
    def __init__(self, objects: Objects, manifest: Manifest, root: int) -> None:
        self.missing: list[NotRestored] = []
        self._objects = objects
        self._manifest = manifest
        self._root = root

    def run(self) -> None:
        held: tuple[str, int] = ("", os.dup(self._root))
        folders = []
        # Sorted by folder, so that one is opened once for all its names; what contains comes before what is contained.
        for path in sorted(self._manifest.entries, key=lambda path: path.rpartition("/")[::2]):
            entry = self._manifest.entries[path]
            parent, _, name = path.rpartition("/")
            if held[0] != parent:
                os.close(held[1])
                held = (parent, self._open_folder(parent))
            if entry.kind == "folder":
                folders.append(path)
                self._make_folder(held[1], name)
            else:
                self._make(held[1], name, path, entry)
        os.close(held[1])
        # Modes come last and from below, since a folder may deny what is still to be written into it.
        for path in sorted(folders, key=lambda path: path.count("/"), reverse=True):
            descriptor = self._open_folder(path)
            os.fchmod(descriptor, self._manifest.entries[path].mode & 0o1777)
            os.close(descriptor)

    def _open_folder(self, path: str) -> int:
        descriptor = os.dup(self._root)
        for part in path.split("/") if path else ():
            self._make_folder(descriptor, part)
            below = os.open(part, FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        return descriptor

    def _make_folder(self, parent: int, name: str) -> None:
        try:
            os.mkdir(name, 0o755, dir_fd=parent)
        except FileExistsError:
            return
        descriptor = os.open(name, FOLDER, dir_fd=parent)
        like_parent(descriptor, parent)
        os.close(descriptor)

    def _make(self, parent: int, name: str, path: str, entry: Entry) -> None:
        if entry.kind == "link" and entry.target is not None:
            os.symlink(entry.target, name, dir_fd=parent)
        elif entry.kind == "file" and entry.digest is not None:
            self._make_file(parent, name, path, entry)
        else:
            self.missing.append(NotRestored(path, entry.note or f"a {entry.kind} is not restored"))

    def _make_file(self, parent: int, name: str, path: str, entry: Entry) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        try:
            write_content(self._objects, entry, descriptor)
            like_parent(descriptor, parent)
            os.fchmod(descriptor, entry.mode & 0o777)
            os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(descriptor)


def read_content(objects: Objects, entry: Entry) -> bytes:
    """A file's content, whole.

    Raises:
        StorageFailed: it was not kept, is missing, or is damaged.
    """
    path = _find(objects, entry)
    try:
        content = path.read_bytes()
        if path.name.endswith(".zst"):
            content = zstandard.ZstdDecompressor().decompress(content, max_output_size=entry.size)
    except (OSError, zstandard.ZstdError):
        raise _damaged(path) from None
    if digest_of(content) != entry.digest:
        raise _damaged(path)
    return content


def write_content(objects: Objects, entry: Entry, target: int) -> None:
    """Write a file's content into an empty file; holes stay holes.

    Raises:
        StorageFailed: it was not kept, is missing, or is damaged.
    """
    path = _find(objects, entry)
    if path.name.endswith(".zst") or entry.size <= CHUNK:
        write_all(target, read_content(objects, entry))
        return
    with path.open("rb") as source:
        if not clone(source.fileno(), target):
            copy_data(source.fileno(), target)
    if digest_of_file(target) != entry.digest:
        raise _damaged(path)


def _find(objects: Objects, entry: Entry) -> Path:
    if entry.digest is None:
        raise StorageFailed(f"the content was not kept: {entry.note or entry.kind}")
    path = objects.find(entry.digest)
    if path is None:
        raise StorageFailed(f"a content of the snapshot is missing from {objects.root}: {entry.digest}")
    return path


def _damaged(path: Path) -> StorageFailed:
    return StorageFailed(f"{path} is damaged: its bytes are not those of its name")
