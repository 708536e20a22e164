"""Record which versions of large files a run uses, and delete the oldest where a `SnapshotRetention` asks for it.

    <snapshots>/versions/<path's digest>/00000003-<content's digest>

Each run has a hard link for every large content that its snapshots list, by file and in order. With a `SnapshotRetention` it removes the
links of all but the last versions. A content without a link in any run is deleted from the store, and a marker put in its place, so that
snapshots which list it can say that it was deleted. Small files are never deleted, since they take little space.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mlagentbench.run_spec import SnapshotRetention
from mlagentbench.workspace.snapshots.manifest import ManifestEntry
from mlagentbench.workspace.snapshots.objects import IN_MEMORY, Objects


@contextlib.contextmanager
def publishing(objects: Objects, keep: SnapshotRetention | None, entries: Mapping[str, ManifestEntry], path: Path) -> Iterator[None]:
    """Wrap the publication of a manifest: flush its contents and link the large ones before it, delete old versions after it.

    Args:
        objects: the store of contents.
        keep: which old versions to delete; None for none.
        entries: the manifest's entries.
        path: where the manifest is published.

    Raises:
        StorageFailed: the disk is full or read-only.
    """
    large = {name: entry.digest for name, entry in entries.items() if entry.size > IN_MEMORY and entry.digest is not None}
    folders = {name: path.parent / "versions" / hashlib.sha256(os.fsencode(name)).hexdigest()[:32] for name in large}
    with objects.settling():
        for name, digest in large.items():
            _hold(objects, folders[name], digest)
    yield
    if keep is not None:
        with objects.storing(), objects.exclusive():
            for folder in folders.values():
                _let_go(objects, folder, keep)


def _hold(objects: Objects, folder: Path, digest: str) -> None:
    held = _held(folder)
    if held and held[-1].digest == digest:
        return
    folder.mkdir(parents=True, exist_ok=True)
    number = held[-1].number + 1 if held else 1
    # On a file system without hard links no content is linked, and none is ever deleted.
    with contextlib.suppress(OSError):
        objects.link(digest, folder / f"{number:08d}-{digest}")


def _let_go(objects: Objects, folder: Path, keep: SnapshotRetention) -> None:
    for version in _held(folder)[: -max(1, keep.versions)]:
        path = folder / f"{version.number:08d}-{version.digest}"
        if path.stat().st_size > keep.over_mb * (1 << 20):
            path.unlink()
            objects.drop(version.digest)


class _Version(NamedTuple):
    number: int
    digest: str


def _held(folder: Path) -> list[_Version]:
    """List the versions of a file that the run has links for, oldest first."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [_Version(int(name[:8]), name[9:]) for name in names]
