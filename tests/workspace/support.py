"""A workspace with a store of snapshots beside it."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore


def disk_bytes(*folders: Path) -> int:
    """What the files in some folders take on disk together, without holes and the rest of a last block, one with several names once."""
    sizes = {}
    for path in (path for folder in folders for path in folder.rglob("*")):
        if not path.is_dir():
            status = path.lstat()
            sizes[status.st_ino] = min(status.st_size, status.st_blocks * 512)
    return sum(sizes.values())


def tree(root: Path) -> dict[bytes, object]:
    """All that a folder holds: kinds, modes, contents, links, times."""
    found: dict[bytes, object] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            held: object = None
            if stat.S_ISLNK(status.st_mode):
                held = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    held = (file.read(), status.st_mtime_ns)
            found[os.path.relpath(path, os.fsencode(root))] = (status.st_mode, held)
    return found


class Place:
    """A workspace and its store, as a run has them.

    `settled()` waits until what was written is old enough to be trusted by its times.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path / "ws"
        self.root.mkdir(parents=True, exist_ok=True)
        self.workspace = Workspace(self.root)
        self.store = SnapshotStore(path / "objects")
        self._restored = 0

    def take(self, previous: Manifest | None = None) -> Manifest:
        return self.store.take(self.workspace, previous)

    def restored(self, manifest: Manifest) -> Path:
        """The snapshot, restored into a new folder."""
        self._restored += 1
        folder = self.path / f"restored-{self._restored}"
        folder.mkdir()
        self.store.restore(manifest, folder)
        return folder

    def stored_bytes(self) -> int:
        """What the store takes on disk."""
        return disk_bytes(self.path / "objects")

    @staticmethod
    def settled() -> None:
        time.sleep(0.15)
