"""Publishes steps to disk, measures what a run stores there, and decides whether the run is to blame for a full disk."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

from mlagentbench.errors import InfrastructureError, LimitReached
from mlagentbench.records import Step
from mlagentbench.run_spec import RunLimits
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import storage
from mlagentbench.sandbox.access import FolderSize, measure, open_folder
from mlagentbench.workspace.files import clear
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore


class Publisher:
    """Publishes a run's steps, each with a snapshot of the workspace before it.

    Args:
        workspace: the workspace that is snapshotted.
        directory: where steps and snapshots are stored.
        limits: how much the run may store, and how many files its workspace may hold.
        workspace_mb: how large the workspace may become; a run over it is to blame for a full disk.
    """

    def __init__(self, workspace: Workspace, directory: RunDirectory, limits: RunLimits, workspace_mb: int) -> None:
        self._workspace = workspace
        self._directory = directory
        self._store = SnapshotStore(directory.objects)
        self._limits = limits
        self._workspace_bytes = workspace_mb << 20
        self._manifest: Manifest | None = None
        self._home: Workspace | None = None
        self._home_manifest: Manifest | None = None
        self._publishing: asyncio.Task[None] | None = None
        self._sizes: dict[str, int] = {}
        """Bytes on disk of each content that the run's snapshots name, by its digest."""
        self.stored = 0
        """Bytes on disk that the run has stored: its snapshots' contents, each counted once, and its records."""

    def begin(self, steps: int) -> None:
        """Snapshot the initial workspace; for a resumed run, load what it has stored instead.

        Raises:
            LimitReached: the workspace holds more files than it may.
            StorageFailed: the disk is full or read-only.
        """
        if not steps:
            return self._snapshot(0)
        for number in range(steps + 1):
            self._manifest = Manifest.load(self._directory.manifest(number))
            self._count(self._manifest)
            if self._directory.home_manifest(number).exists():
                self._home_manifest = Manifest.load(self._directory.home_manifest(number))
                self._count(self._home_manifest)

    def include(self, home: Path) -> None:
        """Restore the agent's home folder from the last snapshot, and include it in every later one. Call `begin` first.

        Raises:
            StorageFailed: the disk is full or read-only, or a content is missing or damaged.
        """
        home.mkdir(exist_ok=True)
        self._store.restore(self._home_manifest or Manifest({}), home, replace=True)
        self._home = Workspace(home)

    def publish_soon(self, step: Step) -> None:
        """Begin to publish a step and its snapshot, in a thread. Call `settle` before the workspace changes again."""
        self._publishing = asyncio.create_task(asyncio.to_thread(self._publish, step))

    async def settle(self) -> None:
        """Wait until the last step is published. A failure is raised again by every further call.

        Raises:
            LimitReached: the workspace holds more files than it may; the step is not published.
            StorageFailed: the disk is full or read-only.
        """
        if self._publishing is not None:
            await asyncio.shield(self._publishing)
            self._publishing = None

    def content_after(self, step: int, name: str) -> bytes | None:
        """Return a file's content after a step; None if there was no file.

        Raises:
            StorageFailed: its content is missing or damaged.
        """
        manifest = Manifest.load(self._directory.manifest(step))
        return self._store.read_bytes(manifest, name) if name in manifest.entries else None

    def filled_by(self, failure: InfrastructureError) -> LimitReached | None:
        """Return the storage limit if the run itself has filled the disk, and empty its workspace to make room; else return None.

        The run is to blame if its workspace or its snapshots exceed their limits; otherwise something else filled the disk.
        """
        if getattr(failure.__cause__, "errno", None) not in (errno.ENOSPC, errno.EDQUOT):
            return None
        roots = [each.root for each in (self._workspace, self._home) if each is not None]
        sizes = [measure(root, FolderSize(self._workspace_bytes, self._limits.files)) for root in roots]
        size, files = sum(each.bytes for each in sizes), sum(each.files for each in sizes)
        if size <= self._workspace_bytes and files <= self._limits.files and self.stored < self._limits.storage_mb << 20:
            return None
        for root in roots:
            folder = open_folder(root)
            try:
                clear(folder)
            finally:
                os.close(folder)
        return LimitReached("limit_storage", "the run's files have filled the disk; its last step is lost, the ones before are kept")

    def _publish(self, step: Step) -> None:
        self._snapshot(step.number)
        self._directory.publish_step(step)

    def _snapshot(self, number: int) -> None:
        with storage(self._directory.path):
            if self._home is not None:
                self._home_manifest = self._store.take(self._home, self._home_manifest, most_files=self._limits.files)
                self._directory.save_manifest(self._home_manifest, self._directory.home_manifest(number))
                self._count(self._home_manifest)
            self._workspace.restore_data()
            self._manifest = self._store.take(self._workspace, self._manifest, most_files=self._limits.files)
            self._directory.save_manifest(self._manifest, self._directory.manifest(number))
            self._count(self._manifest)

    def _count(self, manifest: Manifest) -> None:
        self._sizes |= {digest: self._store.stored_bytes(digest) for digest in manifest.digests - self._sizes.keys()}
        self.stored = sum(self._sizes.values()) + self._directory.records_bytes()
