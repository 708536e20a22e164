"""The store of contents: shared by processes that are killed at any moment, on disks that fill up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlagentbench.errors import StorageFailed, UsageError
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore
from tests.workspace.support import Place


def test_a_damaged_content_is_told_and_not_handed_out(place: Place) -> None:
    for name, size in (("small", 100), ("text", 100_000), ("large", 20 << 20)):
        (place.root / name).write_bytes(os.urandom(size) if name != "text" else b"abc" * size)
    manifest = place.take()
    manifest.save(place.path / "0000")
    for path in (place.path / "objects").rglob("*"):
        if path.is_file():
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.chmod(0o644)
            path.write_bytes(content)
    for name in ("small", "text", "large"):
        with pytest.raises(StorageFailed, match="damaged"):
            place.store.read_bytes(manifest, name)
        with pytest.raises(StorageFailed, match="damaged"):
            place.restored(manifest.select([name]))


def test_a_missing_content_is_told(place: Place) -> None:
    (place.root / "a").write_text("a")
    manifest = place.take()
    manifest.save(place.path / "0000")
    for path in (place.path / "objects").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(StorageFailed, match="lacks"):
        place.restored(manifest)


def test_a_file_that_is_not_in_a_snapshot_is_told(place: Place) -> None:
    (place.root / "folder").mkdir()
    manifest = place.take()
    for path in ("none", "folder"):
        with pytest.raises(UsageError, match="no file"):
            place.store.read_bytes(manifest, path)


def test_a_snapshot_can_be_read_before_it_is_saved_and_by_others_after(place: Place) -> None:
    (place.root / "a").write_text("a")
    manifest = place.take()
    assert place.store.read_bytes(manifest, "a") == b"a"
    manifest.save(place.path / "0000")
    loaded = Manifest.load(place.path / "0000")
    assert SnapshotStore(place.path / "objects").read_bytes(loaded, "a") == b"a"


WRITER = """
import os, random, sys
from pathlib import Path
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import SnapshotStore
store, home, turns = SnapshotStore(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
home.mkdir()
(home / "ws").mkdir()
manifest = None
for turn in range(turns):
    # All writers write the same contents at the same time: seeds are turns.
    generator = random.Random(turn)
    for number in range(20):
        (home / "ws" / f"{number}.bin").write_bytes(generator.randbytes(generator.randrange(50_000)))
    (home / "ws" / "large.bin").write_bytes(generator.randbytes(17 << 20))
    manifest = store.take(Workspace(home / "ws"), manifest)
    manifest.save(home / f"{turn:04d}")
    print(turn, flush=True)
"""


def writer(place: Place, name: str, turns: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(place.path / "objects"), str(place.path / name), str(turns)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_processes_that_write_the_same_store_at_once_never_corrupt_it(place: Place) -> None:
    writers = [writer(place, f"run-{number}", 3) for number in range(6)]
    for each in writers:
        each.communicate()
    assert [each.returncode for each in writers] == [0] * 6
    digests = set()
    for number in range(6):
        for turn in range(3):
            manifest = Manifest.load(place.path / f"run-{number}" / f"{turn:04d}")
            digests.add(manifest.digest)
            place.restored(manifest)  # checks every content
    assert len(digests) == 3
    assert place.stored_bytes() < 3 * (20 << 20)


def test_a_process_killed_at_any_moment_leaves_a_whole_store(place: Place) -> None:
    for number in range(8):
        each = writer(place, f"run-{number}", 1000)
        assert each.stdout is not None
        each.stdout.readline()
        time.sleep(0.02 + 0.013 * number)
        each.kill()
        each.wait()
        each.stdout.close()
        saved = sorted((place.path / f"run-{number}").glob("[0-9]*"))
        assert saved
        for path in saved[-2:]:
            place.restored(Manifest.load(path))
    (place.root / "a").write_text("a")
    place.take().save(place.path / "after")
    left = [path for path in (place.path / "objects" / "tmp").iterdir() if any(path.iterdir())]
    assert left == []


@pytest.mark.parametrize("size", [6 << 20, 20 << 20])
def test_a_full_disk_is_told_and_leaves_the_store_usable(place: Place, small_disk: Path, size: int) -> None:
    place.store = SnapshotStore(small_disk / "objects")
    (place.root / "small").write_text("small")
    first = place.take()
    first.save(small_disk / "0000")
    (place.root / "large").write_bytes(os.urandom(size))
    with pytest.raises(StorageFailed, match="make room"):
        place.take(first)
    (place.root / "large").unlink()
    (place.root / "small").write_text("other")
    second = place.take(first)
    second.save(small_disk / "0001")
    assert place.store.read_bytes(Manifest.load(small_disk / "0000"), "small") == b"small"
    assert place.store.read_bytes(Manifest.load(small_disk / "0001"), "small") == b"other"
