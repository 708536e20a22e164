"""What snapshots promise: exact, and cheap where nothing changed."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from mlagentbench.errors import StorageFailed
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore
from tests.workspace.support import Place, tree


def bytes_read() -> int:
    """What this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


# Exact


def test_what_was_there_comes_back_exactly(place: Place) -> None:
    (place.root / "a" / "b").mkdir(parents=True)
    (place.root / "empty-folder").mkdir()
    (place.root / "a" / "b" / "text.txt").write_text("hello " * 500)
    (place.root / "a" / "noise.bin").write_bytes(os.urandom(700_000))
    (place.root / "empty").touch()
    (place.root / "run.sh").write_text("echo")
    (place.root / "run.sh").chmod(0o751)
    (place.root / "link").symlink_to("a/b/text.txt")
    (place.root / "dangling").symlink_to("/no/such/place")
    (place.root / "secret").write_text("x")
    (place.root / "secret").chmod(0o000 if os.geteuid() == 0 else 0o400)
    (place.root / "a" / "b").chmod(0o500)
    assert tree(place.restored(place.take())) == tree(place.root)


@pytest.mark.parametrize("size", [0, 1, 255, 256 << 10, (256 << 10) + 1, 3_000_000, 16 << 20, (16 << 20) + 1, 40_000_001])
@pytest.mark.parametrize("kind", ["noise", "text", "zeros"])
def test_a_file_of_any_size_comes_back(place: Place, size: int, kind: str) -> None:
    content = {"noise": os.urandom(size), "text": (b"0.123,0.456\n" * (size // 12 + 1))[:size], "zeros": bytes(size)}[kind]
    (place.root / "file").write_bytes(content)
    manifest = place.take()
    assert (place.restored(manifest) / "file").read_bytes() == content
    assert place.store.read_bytes(manifest, "file") == content


def test_names_of_any_bytes(place: Place) -> None:
    names = [
        b"sp ace",
        b"new\nline",
        b"-rf",
        b"\xff\xfe",
        b"quote'\"",
        b"\x1b[31m",
        "é".encode(),
        b"e\xcc\x81",
        b"a" * 255,
        b"back\\slash",
        b"*",
    ]
    for name in names:
        folder = os.path.join(os.fsencode(place.root), name)
        os.mkdir(folder)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(name)
    manifest = place.take()
    manifest.save(place.path / "0000")
    assert tree(place.restored(Manifest.load(place.path / "0000"))) == tree(place.root)


def test_a_step_of_long_ago_is_restored_as_it_was(place: Place) -> None:
    manifest = None
    wanted = {}
    for step in range(6):
        (place.root / "train.py").write_text(f"step = {step}\n")
        (place.root / f"log-{step}").write_text("x" * step)
        if step == 4:
            (place.root / "log-1").unlink()
        manifest = place.take(manifest)
        manifest.save(place.path / f"{step:04d}")
        wanted[step] = tree(place.root)
    for step, held in wanted.items():
        assert tree(place.restored(Manifest.load(place.path / f"{step:04d}"))) == held


def test_a_folder_that_holds_something_is_only_replaced_when_asked(place: Place) -> None:
    (place.root / "kept.txt").write_text("kept")
    manifest = place.take()
    (place.root / "closed").mkdir()
    (place.root / "closed" / "file").write_text("x")
    (place.root / "closed").chmod(0)
    (place.root / "way-out").symlink_to(place.path)
    with pytest.raises(StorageFailed, match="empty"):
        place.store.restore(manifest, place.root)
    place.store.restore(manifest, place.root, replace=True)
    assert os.listdir(place.root) == ["kept.txt"]
    assert (place.path / "objects").is_dir()


def test_a_part_is_restored_without_the_rest(place: Place) -> None:
    (place.root / "out" / "deep").mkdir(parents=True)
    (place.root / "out" / "deep" / "submission.csv").write_text("id\n")
    (place.root / "train.py").write_text("x")
    folder = place.restored(place.take().select(["**/submission.csv"]))
    assert sorted(tree(folder)) == [b"out", b"out/deep", b"out/deep/submission.csv"]


def test_a_set_user_bit_is_taken_away(place: Place) -> None:
    (place.root / "shell").write_text("#!/bin/sh\n")
    (place.root / "shell").chmod(0o4755)
    manifest = place.take()
    assert manifest.entries["shell"].mode == 0o755
    for folder in (place.root, place.restored(manifest)):
        assert stat.S_IMODE((folder / "shell").stat().st_mode) == 0o755


# Changes are seen


def test_only_what_changed_is_different(place: Place) -> None:
    (place.root / "a").write_text("a")
    (place.root / "b").write_text("b")
    first = place.take()
    place.settled()
    second = place.take(first)
    assert second == first
    assert second.digest == first.digest
    (place.root / "b").write_text("B")
    third = place.take(second)
    assert [change.path for change in place.store.diff(second, third)] == ["b"]
    assert third.digest != second.digest


def test_a_change_that_sets_the_time_back_is_seen(place: Place) -> None:
    file = place.root / "metrics.json"
    file.write_text("accuracy 0.10")
    place.settled()
    first = place.take()
    was = file.stat()
    file.write_text("accuracy 0.99")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert file.stat().st_mtime_ns == was.st_mtime_ns
    second = place.take(first)
    assert place.store.read_bytes(second, "metrics.json") == b"accuracy 0.99"


def test_a_file_swapped_for_another_of_the_same_size_and_time_is_seen(place: Place) -> None:
    file, other = place.root / "a", place.root / "b"
    file.write_text("1")
    other.write_text("2")
    for path in (file, other):
        os.utime(path, ns=(10**18, 10**18))
    place.settled()
    first = place.take()
    os.rename(other, file)
    assert place.store.read_bytes(place.take(first), "a") == b"2"


def test_changes_within_a_tick_of_the_clock_are_seen(place: Place) -> None:
    file = place.root / "counter"
    manifest = None
    for turn in range(100):
        file.write_bytes(b"%05d" % turn)
        manifest = place.take(manifest)
        file.write_bytes(b"%05d" % (turn + 50000))
        manifest = place.take(manifest)
        assert place.store.read_bytes(manifest, "counter") == b"%05d" % (turn + 50000)


def test_a_file_written_just_before_a_snapshot_is_read_again_at_the_next(place: Place) -> None:
    for _ in range(20):  # until this process was not held up between writing and taking
        (place.root / "fresh.bin").write_bytes(os.urandom(4 << 20))
        first = place.take()
        before = bytes_read()
        second = place.take(first)
        if again := bytes_read() - before >= 4 << 20:
            break
    assert again
    place.settled()
    third = place.take(second)
    before = bytes_read()
    place.take(third)
    assert bytes_read() - before < 100_000


def test_modes_and_kinds_count_as_changes_and_times_alone_do_not(place: Place) -> None:
    for name in ("mode", "kind", "time"):
        (place.root / name).write_text("x")
    first = place.take()
    (place.root / "mode").chmod(0o600)
    (place.root / "kind").unlink()
    (place.root / "kind").mkdir()
    os.utime(place.root / "time", (1, 1))
    second = place.take(first)
    assert [(change.path, change.change) for change in place.store.diff(first, second)] == [("kind", "changed"), ("mode", "changed")]


# Cheap


def test_unchanged_files_are_not_read_and_changed_ones_once(place: Place) -> None:
    for number in range(20):
        (place.root / f"{number}.bin").write_bytes(os.urandom(1 << 20))
    (place.root / "large.bin").write_bytes(os.urandom(40 << 20))
    place.settled()
    first = place.take()
    os.link(place.root / "large.bin", place.root / "also-large.bin")
    first = place.take(first)
    place.settled()
    first = place.take(first)
    before = bytes_read()
    second = place.take(first)
    assert bytes_read() - before < 100_000
    (place.root / "3.bin").write_bytes(os.urandom(1 << 20))
    (place.root / "large.bin").write_bytes(os.urandom(40 << 20))
    before = bytes_read()
    place.take(second)
    assert 41 << 20 <= bytes_read() - before < 43 << 20


def test_fifty_unchanged_steps_cost_the_workspace_once(place: Place) -> None:
    for number in range(50):
        (place.root / f"{number}.bin").write_bytes(os.urandom(100_000))
    unique = 50 * 100_000
    manifest = None
    for step in range(51):
        manifest = place.take(manifest)
        manifest.save(place.path / "objects" / f"snapshot-{step:04d}")
    assert place.stored_bytes() < 1.15 * unique  # 4 KiB blocks and fifty small files are the rest


def test_one_content_is_stored_once_whatever_its_names(place: Place) -> None:
    content = os.urandom(1 << 20)
    for number in range(10):
        (place.root / f"copy-{number}").write_bytes(content)
    place.take().save(place.path / "0000")
    assert place.stored_bytes() < 1.1 * (1 << 20)


def test_runs_of_one_log_directory_share_what_they_hold(tmp_path: Path) -> None:
    content = os.urandom(1 << 20)
    for run in ("a", "b", "c"):
        other = Place(tmp_path / run)
        other.store = SnapshotStore(tmp_path / "objects")
        (other.root / "starter.bin").write_bytes(content)
        other.take().save(tmp_path / run / "0000")
    stored = sum(path.stat().st_size for path in (tmp_path / "objects").rglob("*") if path.is_file())
    assert stored == 1 << 20


def test_text_is_compressed(place: Place) -> None:
    (place.root / "table.csv").write_text("0.12345,0.67890,label\n" * 40_000)
    place.take().save(place.path / "0000")
    assert place.stored_bytes() < 100_000


def test_read_only_data_is_not_looked_at(place: Place) -> None:
    data = place.path / "data"
    data.mkdir()
    (data / "row").write_text("x")
    (place.root / "data").mkdir()
    (place.root / "data" / "planted").write_text("y")
    (place.root / "train.py").write_text("z")
    manifest = place.store.take(Workspace(place.root, {"data": data}))
    assert list(manifest.entries) == ["train.py"]


def test_ten_gigabytes_of_holes_cost_nothing_and_stay_holes(place: Place) -> None:
    with (place.root / "sparse").open("wb") as file:
        file.write(b"head")
        file.seek(5 << 30)
        file.write(b"middle")
        file.truncate(10 << 30)
    started = time.process_time()
    manifest = place.take()
    folder = place.restored(manifest)
    assert time.process_time() - started < 2
    status = (folder / "sparse").stat()
    assert status.st_size == 10 << 30
    assert status.st_blocks * 512 < 1 << 20
    with (folder / "sparse").open("rb") as file:
        assert file.read(4) == b"head"
        file.seek(5 << 30)
        assert file.read(6) == b"middle"
    assert place.stored_bytes() < 1 << 20


def test_a_sparse_file_and_a_full_one_of_equal_bytes_are_one_content(place: Place) -> None:
    (place.root / "full").write_bytes(bytes(20 << 20) + b"end")
    with (place.root / "sparse").open("wb") as file:
        file.seek(20 << 20)
        file.write(b"end")
    entries = place.take().entries
    assert entries["full"].digest == entries["sparse"].digest
