"""Take snapshots of a workspace, of which only changed files take time and space, and restore them.

A snapshot is a `Manifest`, which lists all names, and contents in a store that all runs of a log directory share. Pipes, sockets, devices
and unreadable files are listed in the manifest, but have no content.

Not covered: read-only data; owners and extended attributes; times of folders and links.
"""

from __future__ import annotations

import os
from pathlib import Path

from mlagentbench.errors import StorageFailed, UsageError
from mlagentbench.sandbox.access import open_folder
from mlagentbench.workspace.diff import FileChange, diff
from mlagentbench.workspace.paths import READ_LIMIT, Workspace
from mlagentbench.workspace.snapshots.manifest import Manifest, ManifestEntry
from mlagentbench.workspace.snapshots.objects import Objects
from mlagentbench.workspace.snapshots.restore import NotRestored, check_content, read_content, restore
from mlagentbench.workspace.snapshots.scan import Scan

__all__ = ["FileChange", "Manifest", "ManifestEntry", "NotRestored", "SnapshotStore"]


class SnapshotStore:
    """The store of snapshots' contents, shared by any number of runs, threads and processes.

    Args:
        root: the store's folder; it is created when something is first stored.
    """

    def __init__(self, root: Path) -> None:
        self._objects = Objects(root)

    def stored_bytes(self, digest: str) -> int:
        """Return the bytes that a content takes on disk, compressed and without holes; 0 where the store lacks it."""
        return self._objects.stored_bytes(digest)

    def take(self, workspace: Workspace, previous: Manifest | None = None, *, most_files: int | None = None) -> Manifest:
        """Snapshot a workspace. This blocks: in an asyncio program call it in a thread.

        Args:
            workspace: the workspace.
            previous: the snapshot before. Files that are unchanged since then are not read.
            most_files: the limit of files, folders and links; None for none.

        Raises:
            LimitReached: the workspace holds more (`limit_storage`).
            StorageFailed: the disk is full or read-only.
        """
        previous = previous or Manifest({})
        scan = Scan(self._objects, workspace.data.keys(), previous.entries, previous._signatures, most_files)
        try:
            root = open_folder(workspace.root)
        except (FileNotFoundError, NotADirectoryError):
            # A script that runs without a sandbox can remove its own workspace; the snapshot is empty then.
            pass
        else:
            try:
                scan.look(root)
            finally:
                os.close(root)
        unchanged = not scan.changed and len(scan.entries) == len(previous.entries)
        entries = previous.entries if unchanged else scan.entries
        return Manifest(entries, scan.signatures, self._objects.flush, previous._base)

    def restore(self, manifest: Manifest, destination: Path, *, replace: bool = False) -> tuple[NotRestored, ...]:
        """Write a snapshot, or a selected part of one, into an empty folder.

        Args:
            manifest: the snapshot.
            destination: the folder. A snapshot does not hold the links or mount points of read-only data: see `paths.place_data`.
            replace: remove what the folder holds first.

        Returns:
            What was not restored: special files, and files that could not be read.

        Raises:
            StorageFailed: the folder is not empty, the disk is full, or the store lacks a content or has a damaged one.
        """
        try:
            return restore(self._objects, manifest, destination, replace)
        except OSError as error:
            raise StorageFailed(f"cannot restore a snapshot into {destination}: {error.strerror}") from error

    def read_bytes(self, manifest: Manifest, path: str, limit: int = READ_LIMIT) -> bytes:
        """Return the content of a snapshot's file.

        Raises:
            UsageError: the snapshot has no such file, or it is larger than `limit` bytes.
            StorageFailed: its content was not stored, is missing, or is damaged.
        """
        entry = manifest.entries.get(path)
        if entry is None or entry.kind != "file":
            raise UsageError(f"the snapshot has no file {path!r}")
        if entry.size > limit:
            raise UsageError(f"{path!r} is too large to be read at once: {entry.size:,} bytes; restore the snapshot instead")
        return read_content(self._objects, entry)

    def check(self, entry: ManifestEntry) -> None:
        """Check that the content of a snapshot's file is the one that its digest names.

        Raises:
            StorageFailed: it was not stored, is missing, cannot be read, or is another one.
        """
        try:
            check_content(self._objects, entry)
        except OSError as error:
            raise StorageFailed(f"a content cannot be read: {error.strerror}: {entry.digest}") from error

    def diff(self, before: Manifest, after: Manifest) -> list[FileChange]:
        """Return what changed from one snapshot to another, sorted by path. A change of times alone is left out.

        Raises:
            StorageFailed: the store lacks a content or has a damaged one.
        """
        return diff(self._objects, before, after)
