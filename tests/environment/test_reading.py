"""What is told of the files that are opened."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlagentbench.environment.reading import MOST, FileAccessLog

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux only")


@pytest.fixture
def reads(tmp_path: Path) -> Iterator[FileAccessLog]:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    for number in range(2 * MOST):
        (tmp_path / "folder" / "inner" / f"{number}").write_text("x")
    (tmp_path / "folder" / "a b").write_text("x")
    reads = FileAccessLog(tmp_path / "folder", "data")
    yield reads
    reads.close()


def test_what_another_process_opens_is_told_once(reads: FileAccessLog, tmp_path: Path) -> None:
    assert reads.opened() == []
    subprocess.run(["cat", tmp_path / "folder" / "inner" / "7", tmp_path / "folder" / "a b"], check=True, capture_output=True)
    assert reads.opened() == ["data/a b", "data/inner/7"]
    assert reads.opened() == []


def test_looking_at_names_is_no_reading(reads: FileAccessLog, tmp_path: Path) -> None:
    subprocess.run(["ls", "-lR", tmp_path / "folder"], check=True, capture_output=True)
    assert reads.opened() == []


def test_many_files_are_told_by_their_number(reads: FileAccessLog, tmp_path: Path) -> None:
    for path in (tmp_path / "folder" / "inner").iterdir():
        path.read_text()
    told = reads.opened()
    assert len(told) == MOST + 1
    assert told[-1] == f"data/… and {MOST} more"


def test_without_a_folder_nothing_is_told() -> None:
    reads = FileAccessLog(None, "data")
    assert reads.opened() == []
    reads.close()
    reads.close()


def test_a_folder_that_is_closed_tells_nothing_more(reads: FileAccessLog, tmp_path: Path) -> None:
    reads.close()
    (tmp_path / "folder" / "a b").read_text()
    assert reads.opened() == []
