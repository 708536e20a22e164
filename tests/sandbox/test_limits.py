"""The pieces that hold limits, where a whole command would show too little."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.access import DEEPEST, FolderSize
from mlagentbench.sandbox.linux.limits import ControlGroup, DiskWatch, LimitWatch, make_group, prelude
from tests.support import HANGING


@pytest.fixture
def group() -> ControlGroup:
    made = make_group(ScriptLimits(memory_mb=64, processes=3))
    if made is None:
        pytest.skip("no control group can be made here")
    yield made
    while not made.end():
        time.sleep(0.01)


def test_a_command_joins_its_control_group_before_it_starts(group: ControlGroup) -> None:
    done = subprocess.run([*prelude(ScriptLimits(), group, True), "cat", "/proc/self/cgroup"], capture_output=True, text=True)

    assert group.folders[0].name in done.stdout


def test_a_group_ends_with_who_is_in_it(group: ControlGroup) -> None:
    sleeper = subprocess.Popen([*prelude(ScriptLimits(), group, True), "sleep", "600"])
    while not group.processes():
        time.sleep(0.01)

    while not group.end():
        time.sleep(0.01)

    assert sleeper.wait(HANGING) == -9
    assert not any(folder.exists() for folder in group.folders)


def test_a_command_that_cannot_join_does_not_run(group: ControlGroup) -> None:
    missing = ControlGroup((Path("/sys/fs/cgroup/missing"),))

    done = subprocess.run([*prelude(ScriptLimits(), missing, True), "echo", "ran"], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (126, "")


def test_words_are_passed_as_they_are() -> None:
    words = ["a b", "$HOME", "'\"", "-n", "*", ""]
    done = subprocess.run([*prelude(ScriptLimits(), None, True), "printf", "<%s>", *words], capture_output=True, text=True)

    assert done.stdout == "".join(f"<{word}>" for word in words)


def test_a_folder_is_measured_without_what_its_links_point_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"x" * (1 << 20))
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "link").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    watch = DiskWatch(folder, FolderSize(1 << 20, 1000))
    assert not watch.broken()

    (folder / "deep" / "file").write_bytes(b"x" * (2 << 20))
    assert watch.broken()


def test_a_sparse_file_counts_what_it_holds(tmp_path: Path) -> None:
    os.truncate(os.open(tmp_path / "sparse", os.O_CREAT | os.O_RDWR), 1 << 40)

    assert not DiskWatch(tmp_path, FolderSize(1 << 20, 1000)).broken()


def test_a_folder_with_too_many_files_is_over_its_limit(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}").touch()
    assert not DiskWatch(tmp_path, FolderSize(1 << 20, 10)).broken()
    assert DiskWatch(tmp_path, FolderSize(1 << 20, 9)).broken()


@pytest.fixture
def own_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk on which nobody else writes or makes room."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "none", tmp_path], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"this machine does not let the test mount a disk: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_folder_that_must_be_over_its_limit_is_looked_at_at_once(own_disk: Path) -> None:
    watch = DiskWatch(own_disk, FolderSize(8 << 20, 1000))
    watch.broken()
    watch._next = time.monotonic() + HANGING  # the last look took long
    (own_disk / "big").write_bytes(b"x" * (40 << 20))
    assert watch.due()


def test_nothing_is_hidden_from_the_watch_in_closed_or_deep_folders(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "file").write_bytes(b"x" * (2 << 20))
    (tmp_path / "closed").chmod(0o300)
    assert DiskWatch(tmp_path, FolderSize(1 << 20, 1000)).broken()
    assert (tmp_path / "closed").stat().st_mode & 0o777 == 0o700

    deep = tmp_path / "deep"
    (deep / "/".join("d" * (DEEPEST + 10))).mkdir(parents=True)
    assert DiskWatch(deep, FolderSize(1 << 20, 10_000)).broken()


def test_a_folder_is_looked_at_only_when_the_disk_shows_that_it_may_have_grown(own_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = DiskWatch(own_disk, FolderSize(64 << 20, 1000))
    monkeypatch.setattr(watch, "LONGEST", float("inf"))  # however long this process waits for a core
    watch.broken()
    watch._next = 0.0  # the time that is left after the last look is over
    assert not watch.due()

    (own_disk / "big").write_bytes(b"x" * (40 << 20))
    assert watch.due()
    assert not watch.broken()


def test_a_program_whose_allocation_failed_hit_the_memory_limit(tmp_path: Path) -> None:
    watch = LimitWatch(ScriptLimits(), os.getpid(), tmp_path, None)

    assert watch.verdict(1, "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB") == "memory"
    assert watch.verdict(0, "MemoryError was caught") == "exit"
    assert watch.verdict(1, "ValueError") == "exit"
