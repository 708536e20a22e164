"""What an agent may have left where a grader looks for a file."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from mlagentbench import InvalidSubmission
from mlagentbench.grading.reader import MAX_FILES, SubmissionFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("the answers")
    folder = tmp_path / "submission"
    (folder / "data").mkdir(parents=True)
    (folder / "submission.csv").write_bytes(b"\xef\xbb\xbfid,value\n1,2\n")
    (folder / "data" / "more.csv").write_text("x")
    return folder


def test_a_regular_file_is_read(folder: Path) -> None:
    files = SubmissionFiles(folder)
    assert files.names() == ("data/more.csv", "submission.csv")
    assert files.read_text("submission.csv") == "id,value\n1,2\n"
    assert files.read_bytes("data/more.csv") == b"x"


def _link(folder: Path) -> None:
    (folder / "trap").symlink_to("../secret.txt")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "trap")


def _folder(folder: Path) -> None:
    (folder / "trap").mkdir()


def _socket(folder: Path) -> None:
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("trap")
    finally:
        os.chdir(here)


def _sparse(folder: Path) -> None:
    with (folder / "trap").open("wb") as file:
        file.truncate(10 * 2**30)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_link, "trap is a link"),
        (_pipe, "trap is a named pipe"),
        (_folder, "trap is a folder"),
        (_socket, "trap is no regular file"),
        (_sparse, "trap has 10,240.0 MB, more than 64.0 MB"),
        (lambda folder: None, "there is no trap"),
    ],
)
def test_anything_else_is_an_invalid_submission_that_says_what_it_is(folder: Path, make: object, reason: str) -> None:
    make(folder)  # type: ignore[operator]
    with pytest.raises(InvalidSubmission, match=reason):
        SubmissionFiles(folder).read_bytes("trap")


def test_a_folder_that_is_a_link_leads_nowhere(folder: Path) -> None:
    (folder / "up").symlink_to("..")
    with pytest.raises(InvalidSubmission, match=r"up/secret\.txt is"):
        SubmissionFiles(folder).read_bytes("up/secret.txt")
    assert "up/secret.txt" not in SubmissionFiles(folder).names()


def test_text_must_be_utf8(folder: Path) -> None:
    (folder / "submission.csv").write_bytes("id,value\n".encode("utf-16"))
    with pytest.raises(InvalidSubmission, match="not UTF-8"):
        SubmissionFiles(folder).read_text("submission.csv")


def test_a_copy_holds_the_regular_files_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    _link(folder)
    os.mkfifo(folder / "pipe")
    SubmissionFiles(folder).copy_to(tmp_path / "copy")
    copied = sorted(str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if not path.is_dir())
    assert copied == ["data/more.csv", "submission.csv"]


def test_a_path_that_is_too_long_to_be_copied_is_refused(folder: Path, tmp_path: Path) -> None:
    """Such a file is made, and can be opened, one folder after another; by its whole path it cannot."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("train.py", os.O_CREAT, dir_fd=here))
    os.close(here)
    for read in (SubmissionFiles(folder).names, lambda: SubmissionFiles(folder).copy_to(tmp_path / "copy")):
        with pytest.raises(InvalidSubmission, match="is longer than 1,024 bytes; leave files in fewer folders"):
            read()
    with pytest.raises(InvalidSubmission, match="File name too long"):
        SubmissionFiles(folder).read_bytes("x" * 300)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("mode", [0o000, 0o100])
def test_a_folder_that_cannot_be_read_is_refused(folder: Path, mode: int) -> None:
    (folder / "data").chmod(mode)
    with pytest.raises(InvalidSubmission, match=r"cannot be read \(Permission denied\); leave folders that can be"):
        SubmissionFiles(folder).names()
    (folder / "data").chmod(0o700)


def test_a_copy_has_a_size_and_a_number_of_files(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidSubmission, match="larger than 16 bytes together"):
        SubmissionFiles(folder).copy_to(tmp_path / "copy", max_bytes=16)
    for number in range(MAX_FILES + 1):
        os.link(folder / "submission.csv", folder / f"{number}.py")
    with pytest.raises(InvalidSubmission, match="more than 10,000 files and folders"):
        SubmissionFiles(folder).names()
