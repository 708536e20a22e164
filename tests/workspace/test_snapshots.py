"""What snapshots promise: exact, cheap where nothing changed, and unbroken by anything a workspace can hold."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlagentbench.errors import StorageFailed, UsageError
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots import Manifest, SnapshotStore
from tests.workspace.support import Place


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


def test_a_set_user_bit_is_recorded_and_not_given_back(place: Place) -> None:
    (place.root / "shell").write_text("#!/bin/sh\n")
    (place.root / "shell").chmod(0o4755)
    manifest = place.take()
    assert manifest.entries["shell"].mode == 0o4755
    assert stat.S_IMODE((place.restored(manifest) / "shell").stat().st_mode) == 0o755


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
    (place.root / "fresh.bin").write_bytes(os.urandom(4 << 20))
    first = place.take()
    before = bytes_read()
    second = place.take(first)
    assert bytes_read() - before >= 4 << 20
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


# Nothing in a workspace can break it


def test_special_files_are_recorded_as_what_they_are(place: Place) -> None:
    os.mkfifo(place.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(place.root / "socket"))
    with contextlib.suppress(PermissionError):
        os.mknod(place.root / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (place.root / "loop").symlink_to("loop")
    (place.root / "normal").write_text("still here")
    manifest = place.take()
    kinds = {path: entry.kind for path, entry in manifest.entries.items()}
    assert kinds.pop("null", "device") == "device"
    assert kinds == {"pipe": "fifo", "socket": "socket", "loop": "link", "normal": "file"}
    folder = place.path / "out"
    folder.mkdir()
    missing = place.store.restore(manifest, folder)
    assert {name.path for name in missing} - {"null"} == {"pipe", "socket"}
    assert (folder / "normal").read_text() == "still here"


def test_links_are_not_followed_out_of_the_workspace(place: Place) -> None:
    (place.path / "outside").mkdir()
    (place.path / "outside" / "secret").write_text("a secret")
    (place.root / "folder").symlink_to(place.path / "outside")
    (place.root / "file").symlink_to(place.path / "outside" / "secret")
    manifest = place.take()
    assert {path: entry.kind for path, entry in manifest.entries.items()} == {"folder": "link", "file": "link"}
    assert place.stored_bytes() == 0


def test_hard_links_within_are_kept_and_those_to_the_outside_are_not_read(place: Place) -> None:
    (place.root / "d").mkdir()
    (place.root / "d" / "weights").write_text("inside")
    os.link(place.root / "d" / "weights", place.root / "again")
    (place.path / "secret").write_text("a secret outside")
    os.link(place.path / "secret", place.root / "innocent")
    manifest = place.take()
    folder = place.restored(manifest)
    assert (folder / "again").read_text() == "inside"
    assert (folder / "again").samefile(folder / "d" / "weights")
    assert manifest.entries["innocent"].digest is None
    assert "outside the workspace" in (manifest.entries["innocent"].note or "")
    assert not (folder / "innocent").exists()


def test_a_hard_link_whose_other_name_goes_or_changes_is_seen(place: Place) -> None:
    (place.root / "a").write_text("one")
    os.link(place.root / "a", place.root / "b")
    first = place.take()
    place.settled()
    assert place.take(first) == first
    (place.root / "b").write_text("two")
    second = place.take(first)
    assert place.store.read_bytes(second, "a") == b"two"
    (place.root / "a").unlink()
    third = place.take(second)
    assert tree(place.restored(third)) == tree(place.root)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_cannot_be_read_is_recorded_so(place: Place) -> None:
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o777)
        with as_nobody():
            there = Place(Path(open_to_all))
            (there.root / "closed").mkdir()
            (there.root / "closed" / "inside").write_text("x")
            (there.root / "closed").chmod(0)
            (there.root / "locked").write_text("y")
            (there.root / "locked").chmod(0)
            (there.root / "open").write_text("z")
            manifest = there.take()
            (there.root / "closed").chmod(0o700)
    assert manifest.entries["closed"].note == "unreadable: Permission denied"
    assert manifest.entries["locked"].note == "unreadable: Permission denied"
    assert manifest.entries["locked"].digest is None
    assert manifest.entries["open"].digest is not None


def test_folders_without_end_do_not_end_a_run(place: Place) -> None:
    held = os.open(place.root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=held)
        below = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
    os.close(held)
    manifest = place.take()
    assert max(path.count("/") for path in manifest.entries) == 100
    assert "folders deep" in (manifest.entries["d" + "/d" * 100].note or "")
    subprocess.run(["rm", "-rf", place.root], check=True)


def test_a_workspace_that_is_gone_is_an_empty_one(place: Place) -> None:
    (place.root / "a").write_text("a")
    first = place.take()
    os.rename(place.root, place.path / "elsewhere")
    assert place.take(first).entries == {}
    place.root.symlink_to(place.path / "elsewhere")
    assert place.take(first).entries == {}


def test_a_file_that_changes_while_it_is_read_is_recorded_so_and_stored_whole_later(place: Place) -> None:
    program = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(file, os.urandom(30 << 20), 0)
turn = 0
while True:
    turn += 1
    os.pwrite(file, os.urandom(4096), turn * 4096 % (30 << 20))
"""
    path = place.root / "busy.bin"
    writer = subprocess.Popen([sys.executable, "-c", program, path])
    try:
        while not path.exists() or path.stat().st_size < 30 << 20:
            time.sleep(0.01)
        (place.root / "calm").write_text("calm")
        notes = set()
        while not notes:  # the writer may not have had its turn
            manifest = place.take()
            notes = {entry.note for entry in manifest.entries.values()} - {None}
    finally:
        writer.kill()
        writer.wait()
    assert notes == {"changed while it was read"}
    assert manifest.entries["busy.bin"].digest is not None
    assert manifest.entries["calm"].note is None
    later = place.take(manifest)
    assert later.entries["busy.bin"].note is None
    assert (place.restored(later) / "busy.bin").read_bytes() == path.read_bytes()


def test_a_file_that_grows_and_shrinks_is_stored_as_some_content_that_can_be_had(place: Place) -> None:
    program = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
content = os.urandom(20 << 20)
while True:
    os.pwrite(file, content, 0)
    os.ftruncate(file, 18 << 20)
"""
    path = place.root / "busy.bin"
    writer = subprocess.Popen([sys.executable, "-c", program, path])
    manifests: list[Manifest] = []
    try:
        while not path.exists() or path.stat().st_size < 18 << 20:
            time.sleep(0.01)
        for _ in range(8):
            manifests.append(place.take(manifests[-1] if manifests else None))
    finally:
        writer.kill()
        writer.wait()
    for manifest in manifests:
        place.restored(manifest)  # checks what it restores


def test_files_that_come_and_go_do_not_break_a_snapshot(place: Place) -> None:
    swap = """
while :; do
    mkdir d; echo x >d/f; ln d/f g; mkfifo p; rm -rf d g p; ln -s / d; rm d
    echo x >p; rm p; echo x >s; rm s; ln ../secret s; rm s
done
"""
    (place.path / "secret").write_text("a secret outside")
    secret = hashlib.sha256(b"a secret outside").hexdigest()
    (place.root / "calm").write_text("calm")
    swapping = subprocess.Popen(["sh", "-c", swap], cwd=place.root, stderr=subprocess.DEVNULL)
    try:
        manifest = None
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            manifest = place.take(manifest)
            assert manifest.entries["calm"].note is None
            assert not any(path.startswith("d/") and path != "d/f" for path in manifest.entries)
            assert secret not in {entry.digest for entry in manifest.entries.values()}
    finally:
        swapping.kill()
        swapping.wait()


# The store


def test_a_damaged_content_is_told_and_not_handed_out(place: Place) -> None:
    for name, size in (("small", 100), ("text", 100_000), ("large", 20 << 20)):
        (place.root / name).write_bytes(os.urandom(size) if name != "text" else b"abc" * size)
    manifest = place.take()
    manifest.save(place.path / "0000")
    for path in (place.path / "objects").rglob("*"):
        if path.is_file() and path.name != "lock":
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
from mlagentbench.workspace.snapshots import SnapshotStore
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"this machine does not let the test mount a small disk: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


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
