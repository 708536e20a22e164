"""Nothing in a workspace can break a snapshot: each thing is recorded as what it is."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mlagentbench.workspace.snapshots.snapshots import Manifest
from tests.workspace.support import Place, tree


def test_special_files_are_recorded_as_what_they_are(place: Place) -> None:
    os.mkfifo(place.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(place.root):  # the path of a socket is short
        listening.bind("socket")
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


def test_what_a_script_closed_to_its_owner_is_opened_and_kept(place: Place) -> None:
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o777)
        with as_nobody():
            there = Place(Path(open_to_all))
            (there.root / "closed" / "deeper").mkdir(parents=True)
            (there.root / "closed" / "deeper" / "inside").write_text("x")
            (there.root / "locked").write_text("y")
            os.link(there.root / "locked", there.root / "another name")
            (there.root / "lent").write_text("z")
            (there.root / "lent").chmod(0o6755)
            for path in ("closed/deeper/inside", "closed/deeper", "closed", "locked", "."):
                (there.root / path).chmod(0)
            manifest = there.take()
            restored = tree(there.restored(manifest))
            assert restored == tree(there.root)
            there.store.restore(manifest, there.root, replace=True)
            assert tree(there.root) == restored
            shutil.rmtree(there.root)
    assert {path: oct(entry.mode) for path, entry in manifest.entries.items()} == {
        "closed": "0o700",
        "closed/deeper": "0o700",
        "closed/deeper/inside": "0o600",
        "locked": "0o600",
        "another name": "0o600",
        "lent": "0o755",
    }


def test_what_is_made_usable_is_no_file_outside(place: Place) -> None:
    outside = place.path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("x")
    os.link(outside / "file", place.root / "hard")
    for name in ("file", "folder"):
        (place.root / name).symlink_to(outside / name)
        (outside / name).chmod(0)
    place.take()
    assert [(outside / name).stat().st_mode & 0o777 for name in ("file", "folder")] == [0, 0]


def make_deep(root: Path, depth: int) -> None:
    """Make folders below one another, each with a file that nobody can read."""
    held = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", 0o700, dir_fd=held)
        below = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
        os.close(os.open("file", os.O_CREAT, 0, dir_fd=held))
    os.close(held)


def test_a_workspace_is_emptied_however_deep_it_is(place: Place) -> None:
    empty = place.take()
    make_deep(place.root, 1500)
    place.store.restore(empty, place.root, replace=True)
    assert os.listdir(place.root) == []


def test_folders_without_end_do_not_end_a_run(place: Place) -> None:
    make_deep(place.root, 3000)
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
            assert writer.poll() is None
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
            assert writer.poll() is None
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
        while time.monotonic() < until or manifest is None:
            manifest = place.take(manifest)
            assert manifest.entries["calm"].note is None
            assert not any(path.startswith("d/") and path != "d/f" for path in manifest.entries)
            assert secret not in {entry.digest for entry in manifest.entries.values()}
    finally:
        swapping.kill()
        swapping.wait()
