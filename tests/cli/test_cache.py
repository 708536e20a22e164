"""`mlab cache`, as a user meets it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from tests import commands
from tests.cli.test_cli import complaint, mlab
from tests.mirror import Cut, Mirror, Status
from tests.tasks.tiny import DATA, PREPARE, URL, make_task


@pytest.fixture
def filled(mirror: Mirror, tmp_path: Path) -> Path:
    """A cache with both data sets of a task and their download, and with one of another task."""
    mirror.add(URL, b"x" * 5000)
    for name in ("tiny", "other"):
        make_task(tmp_path / "tasks", more=DATA, name=name)
    for arguments in (("tiny", "other", "--variant", "mini"), ("tiny", "--variant", "full")):
        finished = mlab("prepare", *arguments, "--task-path", tmp_path / "tasks")
        assert finished.returncode == 0, finished.stderr
    return tmp_path / "cache"


def listed(tmp_path: Path) -> list[tuple[str, str, str | None, str]]:
    """Kind, task, variant and state of all that is there."""
    found = json.loads(mlab("cache", "list", "--json", "--task-path", tmp_path / "tasks").stdout)
    return [(each["kind"], each["task"], each["variant"], each["state"]) for each in found]


def test_what_the_cache_holds_is_listed_with_sizes(filled: Path, tmp_path: Path) -> None:
    assert listed(tmp_path) == [
        ("prepared", "other", "mini", "ready"),
        ("prepared", "tiny", "full", "ready"),
        ("prepared", "tiny", "mini", "ready"),
        ("download", "tiny", None, "ready"),
    ]
    shown = mlab("cache", "list", "--task-path", tmp_path / "tasks").stdout
    assert "5.0 kB" in shown and URL in shown and str(filled) in shown


def test_many_downloads_from_one_place_are_one_row(mirror: Mirror, tmp_path: Path) -> None:
    urls = [f"https://example.org/{number}.png" for number in range(30)]
    for url in urls:
        mirror.add(url, b"png")
    body = f"from mlagentbench.data import fetch\n\ndef full(public, private):\n    for url in {urls}:\n        fetch.download(url)\n"
    make_task(tmp_path / "tasks", body)
    assert mlab("prepare", "tiny", "--task-path", tmp_path / "tasks").returncode == 0
    shown = mlab("cache", "list", "--task-path", tmp_path / "tasks").stdout
    assert shown.count("https://") == 1 and ".png and 29 more" in shown
    assert len(listed(tmp_path)) == 31


def test_data_whose_code_changed_is_out_of_date(filled: Path, tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", PREPARE + "# changed\n", more=DATA)
    assert ("prepared", "tiny", "mini", "out of date") in listed(tmp_path)
    assert ("prepared", "other", "mini", "ready") in listed(tmp_path)
    found = json.loads(mlab("cache", "list", "--json").stdout)
    assert {each["state"] for each in found if each["kind"] == "prepared"} == {"of no known task"}


@pytest.mark.parametrize(
    "arguments, left",
    [
        ((), {("download", "tiny", None)}),
        (("tiny",), {("prepared", "other", "mini"), ("download", "tiny", None)}),
        (("--variant", "mini"), {("prepared", "tiny", "full"), ("download", "tiny", None)}),
        (("tiny", "--variant", "full"), {("prepared", "tiny", "mini"), ("prepared", "other", "mini"), ("download", "tiny", None)}),
        (("other", "--downloads"), {("prepared", "tiny", "mini"), ("prepared", "tiny", "full"), ("download", "tiny", None)}),
        (("--downloads",), set()),
    ],
)
def test_what_is_asked_for_is_removed(filled: Path, tmp_path: Path, arguments: tuple[str, ...], left: set[tuple[str, ...]]) -> None:
    finished = mlab("cache", "clear", *arguments, "--yes")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.endswith("removed\n")
    assert {each[:3] for each in listed(tmp_path)} == left


def test_a_download_that_was_cleared_is_known_again(filled: Path, tmp_path: Path, mirror: Mirror) -> None:
    removed = json.loads(mlab("cache", "clear", "--downloads", "--yes", "--json").stdout)
    assert sum(each["bytes"] for each in removed if each["kind"] == "download") == 5000
    assert mlab("cache", "clear", "--downloads", "--yes").stdout == "nothing to remove\n"
    mirror.add(URL, b"y" * 5000)
    finished = mlab("prepare", "tiny", "--task-path", tmp_path / "tasks")
    assert "not the file it should be" in finished.stderr.splitlines()[-1]


def test_nothing_is_removed_unasked(filled: Path, tmp_path: Path) -> None:
    finished = commands.run([*commands.MLAB, "cache", "clear"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert finished.returncode == 2
    assert "Remove 3 prepared data sets" in complaint(finished) and "--yes" in finished.stderr
    assert len(listed(tmp_path)) == 4


@pytest.mark.parametrize("answer, left", [(b"y\n", 1), (b"n\n", 4), (b"\n", 4)])
def test_a_person_is_asked(filled: Path, tmp_path: Path, answer: bytes, left: int) -> None:
    controller, terminal = pty.openpty()
    process = commands.Popen([*commands.MLAB, "cache", "clear"], stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    screen = b""
    while b"[y/N]" not in screen:
        screen += os.read(controller, 1000)
    assert b"Remove 3 prepared data sets" in screen
    os.write(controller, answer)
    while process.poll() is None:
        time.sleep(0.02)
    assert len(listed(tmp_path)) == left
    os.close(controller)


def test_a_task_that_is_not_there_is_said(filled: Path) -> None:
    assert "nothing of tinny is in" in complaint(mlab("cache", "clear", "tinny", "--yes"))


def test_an_empty_cache_is_none_to_complain_of(tmp_path: Path) -> None:
    assert mlab("cache", "list", "--cache-dir", tmp_path / "cache").stdout.startswith("0 B in")
    assert mlab("cache", "list", "--json", "--cache-dir", tmp_path / "cache").stdout == "[]\n"
    assert mlab("cache", "clear", "--yes", "--cache-dir", tmp_path / "cache").stdout == "nothing to remove\n"
    assert not (tmp_path / "cache").exists()


def test_a_preparation_in_progress_is_left_alone_and_one_that_was_killed_is_not(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", PREPARE.replace("time.sleep(0.3)", "time.sleep(600)"))
    command = [*commands.MLAB, "prepare", "tiny", "--variant", "mini", "--task-path", str(tmp_path / "tasks")]
    process = commands.Popen(command)
    while not list((tmp_path / "cache").rglob("train.csv")):
        assert process.poll() is None
        time.sleep(0.02)
    assert listed(tmp_path) == [("unfinished", "tiny", "mini", "in progress")]
    finished = mlab("cache", "clear", "--yes")
    assert "the mini data of tiny is being prepared; it is left as it is" in finished.stderr
    assert list((tmp_path / "cache").rglob("train.csv"))
    process.kill()
    process.wait(300)
    assert listed(tmp_path) == [("unfinished", "tiny", "mini", "left over")]
    assert mlab("cache", "clear", "--yes").returncode == 0
    assert not list((tmp_path / "cache" / "prepared").rglob("*.csv"))


def test_an_unfinished_download_is_listed_and_cleared(mirror: Mirror, tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", more=DATA)
    mirror.add(URL, b"x" * 5000)
    mirror.fail(URL, Cut(1000), Status(404))
    assert mlab("prepare", "tiny", "--task-path", tmp_path / "tasks").returncode == 2
    assert listed(tmp_path) == [("download", "tiny", None, "unfinished")]
    mlab("cache", "clear", "tiny", "--downloads", "--yes")
    assert listed(tmp_path) == []
