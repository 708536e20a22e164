"""Keeping only the last versions of large files: off by default, and never at another run's cost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.errors import StorageFailed
from mlagentbench.run_spec import SnapshotRetention
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore
from tests.workspace.support import Place, disk_bytes

ROOT = Path(__file__).parents[2]
LARGE = 17 << 20
TWO = SnapshotRetention(versions=2, over_mb=16)


def run(path: Path, keep: SnapshotRetention | None = None) -> Place:
    """A run of the log directory that the path's parent is."""
    made = Place(path)
    made.store = SnapshotStore(path.parent / "objects", keep=keep)
    return made


def steps(place: Place, contents: list[bytes]) -> list[Manifest]:
    """A step for each content of `model.pt`, with a log that grows."""
    taken: list[Manifest] = []
    for content in contents:
        (place.root / "model.pt").write_bytes(content)
        (place.root / "log.txt").write_text(f"step {len(taken)}\n")
        taken.append(place.take(taken[-1] if taken else None))
        taken[-1].save(place.path / f"{len(taken) - 1:04d}")
    return taken


def versions(count: int) -> list[bytes]:
    return [os.urandom(LARGE) for _ in range(count)]


def test_all_versions_are_kept_unless_asked(tmp_path: Path) -> None:
    place = run(tmp_path / "a")
    contents = versions(4)
    for content, manifest in zip(contents, steps(place, contents), strict=True):
        assert (place.restored(manifest) / "model.pt").read_bytes() == content
        assert place.store.lost(manifest) == []


def test_only_the_last_versions_stay_and_the_other_steps_say_so(tmp_path: Path) -> None:
    place = run(tmp_path / "a", TWO)
    contents = versions(5)
    taken = steps(place, contents)
    assert [place.store.lost(manifest) for manifest in taken] == [["model.pt"]] * 3 + [[]] * 2
    assert disk_bytes(tmp_path / "objects", place.path / "versions") < 2.1 * LARGE
    for content, manifest in zip(contents[3:], taken[3:], strict=True):
        assert (place.restored(manifest) / "model.pt").read_bytes() == content
    out = tmp_path / "out"
    out.mkdir()
    (missing,) = place.store.restore(taken[0], out)
    assert missing.path == "model.pt"
    assert "later versions" in missing.reason
    assert (out / "log.txt").read_text() == "step 0\n"
    with pytest.raises(StorageFailed, match="later versions"):
        place.store.read_bytes(taken[0], "model.pt")


def test_another_run_keeps_what_it_lists(tmp_path: Path) -> None:
    contents = versions(4)
    careful, thrifty = run(tmp_path / "careful"), run(tmp_path / "thrifty", TWO)
    kept = steps(careful, contents)
    steps(thrifty, contents)
    for content, manifest in zip(contents, kept, strict=True):
        assert (careful.restored(manifest) / "model.pt").read_bytes() == content
    assert disk_bytes(tmp_path / "objects", careful.path / "versions", thrifty.path / "versions") < 4.1 * LARGE


def test_a_version_that_comes_back_is_kept_again(tmp_path: Path) -> None:
    place = run(tmp_path / "a", SnapshotRetention(versions=1, over_mb=16))
    first, second, third = versions(3)
    taken = steps(place, [first, second, third, first])
    assert place.store.lost(taken[0]) == []
    assert [place.store.lost(manifest) for manifest in taken[1:]] == [["model.pt"], ["model.pt"], []]
    assert (place.restored(taken[3]) / "model.pt").read_bytes() == first


def test_a_file_that_stays_the_same_for_long_is_not_let_go(tmp_path: Path) -> None:
    place = run(tmp_path / "a", TWO)
    content = os.urandom(LARGE)
    taken = steps(place, [content] * 6)
    assert all(place.store.lost(manifest) == [] for manifest in taken)


def test_steps_without_a_change_are_no_versions(tmp_path: Path) -> None:
    place = run(tmp_path / "a", TWO)
    first, second = versions(2)
    taken = steps(place, [first, second, second, second])
    assert place.store.lost(taken[0]) == []


def test_what_a_snapshot_found_in_the_store_is_there_when_it_is_saved(tmp_path: Path) -> None:
    thrifty, slow = run(tmp_path / "thrifty", SnapshotRetention(versions=1, over_mb=16)), run(tmp_path / "slow")
    first, second = versions(2)
    steps(thrifty, [first])
    (slow.root / "model.pt").write_bytes(first)
    taken = slow.take()
    steps(thrifty, [second])
    taken.save(slow.path / "0000")
    assert (slow.restored(taken) / "model.pt").read_bytes() == first


def test_files_below_the_size_are_all_kept(tmp_path: Path) -> None:
    place = run(tmp_path / "a", SnapshotRetention(versions=1, over_mb=50))
    contents = versions(3)
    assert all(place.store.lost(manifest) == [] for manifest in steps(place, contents))


def test_two_files_of_one_content_hold_it_each(tmp_path: Path) -> None:
    place = run(tmp_path / "a", SnapshotRetention(versions=1, over_mb=16))
    first, second = versions(2)
    (place.root / "best.pt").write_bytes(first)
    taken = steps(place, [first, second])
    assert place.store.lost(taken[0]) == []
    assert (place.restored(taken[1]) / "best.pt").read_bytes() == first


WRITER = """
import random, sys
from pathlib import Path
from tests.workspace.test_versions import TWO, run, steps
place = run(Path(sys.argv[1]), TWO)
taken = steps(place, [random.Random(turn % 3).randbytes(17 << 20) for turn in range(12)])
for manifest in taken[-2:]:
    assert place.store.lost(manifest) == []
    place.restored(manifest)
"""


def test_runs_that_write_and_let_go_the_same_contents_at_once_lose_none_they_keep(tmp_path: Path) -> None:
    runs = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / f"run-{number}")], cwd=ROOT) for number in range(4)]
    assert [each.wait() for each in runs] == [0] * 4
