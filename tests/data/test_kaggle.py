"""Files of competitions come from where Kaggle's own client finds them, on a server that speaks as Kaggle does."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlagentbench.data import fetch
from mlagentbench.data.download import transfer
from mlagentbench.errors import TaskError
from tests.mirror import STORAGE, Cut, Mirror, Slow, Status
from tests.support import HANGING

pytest.importorskip("kagglesdk")

SLUG = "house-of-cards"
TRAIN = random.Random(0).randbytes(3_000_000)
FILES = {"train.csv": TRAIN, "images/1.png": b"png", "test.csv": b"Id\n1\n"}
ARCHIVE = f"https://{STORAGE}/{SLUG}/archive.zip"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Waits are short, and nobody's key is found."""
    monkeypatch.setattr(transfer, "FIRST_WAIT", 0.01)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@contextmanager
def refused(pattern: str) -> Iterator[None]:
    """A refusal in one line."""
    with pytest.raises(TaskError, match=pattern) as error:
        yield
    assert "\n" not in str(error.value)


def test_all_files_of_a_competition_come_once(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES)
    folder = fetch.kaggle_competition(SLUG)
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == FILES
    asked = len(mirror.requests)
    assert fetch.kaggle_competition(SLUG) == folder
    assert fetch.kaggle_competition(SLUG, ["test.csv"]) == folder
    assert len(mirror.requests) == asked


def test_some_files_of_a_competition_come_alone(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES)
    folder = fetch.kaggle_competition(SLUG, ["test.csv", "images/1.png"])
    assert (folder / "images" / "1.png").read_bytes() == b"png"
    assert not (folder / "train.csv").exists()


def test_a_competition_that_was_cut_off_is_gone_on_with(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES)
    # Kaggle's client opens the file too, and reads nothing of it.
    mirror.fail(ARCHIVE, Cut(0), Cut(2_000_000))
    folder = fetch.kaggle_competition(SLUG)
    assert (folder / "train.csv").read_bytes() == TRAIN
    ranges = [asked.range for asked in mirror.asked(ARCHIVE) if asked.range]
    assert len(ranges) == 1 and 0 < int(ranges[0].removeprefix("bytes=").rstrip("-")) <= 2_000_000


def test_a_server_that_fails_for_a_moment_is_asked_again(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES)
    mirror.fail(ARCHIVE, Status(503), Cut(0), Status(503))
    assert (fetch.kaggle_competition(SLUG) / "train.csv").read_bytes() == TRAIN


def test_a_competition_that_was_killed_is_finished(mirror: Mirror, tmp_path: Path) -> None:
    mirror.competition(SLUG, FILES)
    mirror.fail(ARCHIVE, Cut(0), Slow(2_000_000, 600))
    code = f"from mlagentbench.data import fetch; fetch.kaggle_competition({SLUG!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    while not any(path.stat().st_size for path in (tmp_path / "cache").rglob("*.part")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(HANGING)
    folder = fetch.kaggle_competition(SLUG)
    assert (folder / "train.csv").read_bytes() == TRAIN
    assert mirror.requests[-1].range
    assert not list((tmp_path / "cache").rglob("*.zip"))


def test_rules_that_are_not_accepted_are_named(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES, accepted=False)
    with refused(f"accept its rules at https://www.kaggle.com/competitions/{SLUG}/rules"):
        fetch.kaggle_competition(SLUG)
    mirror.accepted.add(SLUG)
    assert (fetch.kaggle_competition(SLUG) / "train.csv").read_bytes() == TRAIN


def test_a_key_that_is_not_there_is_asked_for(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror.competition(SLUG, FILES)
    monkeypatch.delenv("KAGGLE_KEY")
    with refused(r"asks for a key: make one at https://www.kaggle.com/settings .*KAGGLE_API_TOKEN.*/rules"):
        fetch.kaggle_competition(SLUG)
    assert mirror.requests == []


def test_a_key_that_is_wrong_is_said_to_be(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror.competition(SLUG, FILES)
    monkeypatch.setenv("KAGGLE_KEY", "another")
    with refused("does not take your key"):
        fetch.kaggle_competition(SLUG)


def test_what_kaggle_does_not_know_is_said(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES)
    with refused("does not know the competition house-of-glass"):
        fetch.kaggle_competition("house-of-glass")
    with refused(f"does not know labels.csv of the competition {SLUG}"):
        fetch.kaggle_competition(SLUG, ["labels.csv"])
    with refused("no name of a Kaggle competition"):
        fetch.kaggle_competition("../etc")


def test_without_kagglesdk_the_command_that_installs_it_is_told(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kagglesdk", None)
    with refused(r'install with: pip install "mlagentbench\[kaggle\]"'):
        fetch.kaggle_competition(SLUG)


@pytest.mark.parametrize("files", [None, ["train.csv", "images/1.png"]], ids=["all", "some"])
def test_files_are_read_once_and_again_only_if_their_time_or_size_changed(mirror: Mirror, files: list[str] | None) -> None:
    mirror.competition(SLUG, FILES)
    folder = fetch.kaggle_competition(SLUG, files)
    asked, path = len(mirror.requests), folder / "train.csv"
    checked = path.stat()
    path.write_bytes(b"x" * len(TRAIN))
    os.utime(path, ns=(checked.st_atime_ns, checked.st_mtime_ns))
    fetch.kaggle_competition(SLUG, files)
    assert len(mirror.requests) == asked, "it was read"
    os.utime(path, ns=(checked.st_atime_ns, checked.st_mtime_ns + 10**9))
    fetch.kaggle_competition(SLUG, files)
    assert len(mirror.requests) > asked and path.read_bytes() == TRAIN


def test_a_file_that_was_damaged_in_the_cache_is_fetched_again(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES)
    folder = fetch.kaggle_competition(SLUG, ["train.csv"])
    (folder / "train.csv").write_bytes(b"")
    assert (fetch.kaggle_competition(SLUG, ["train.csv"]) / "train.csv").read_bytes() == TRAIN


def test_a_file_that_changed_since_its_first_download_is_refused(mirror: Mirror) -> None:
    mirror.competition(SLUG, FILES)
    folder = fetch.kaggle_competition(SLUG)
    (folder / "train.csv").unlink()
    mirror.competition(SLUG, {"train.csv": b"other"})
    with refused("house-of-cards/train.csv is not the file it should be.*if it was meant to change, remove"):
        fetch.kaggle_competition(SLUG)
    assert not (folder / "train.csv").exists()
