"""What a task's `full(public, private)` fetches its data with.

    def full(public, private):
        archive = fetch.download("https://example.org/data.tar.gz")
        fetch.unpack(archive, public, keep=["data/train/*"])

Everything is kept in the cache, shared by tasks, and never fetched twice. A file is checked against the checksum that its task publishes
(`[data.checksums]` in task.toml); one without is known by the checksum that it had the first time. Which task is asking is known by
`fetching`, which `prepare` holds around `full`; it is the thread's own, so call these functions from the thread that `full` is called in.

`$MLAB_MIRROR`, such as `http://127.0.0.1:8000`, has `https://<host>/<path>` fetched from `<mirror>/<host>/<path>`.
"""

from __future__ import annotations

import hashlib
import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from rich.console import Console
from rich.filesize import decimal

from mlagentbench.errors import TaskError
from mlagentbench.records import Record
from mlagentbench.tasks.archives import unpack
from mlagentbench.tasks.cache import cache_directory, locked, unwritable
from mlagentbench.tasks.display import Display
from mlagentbench.tasks.spec import TaskSpec
from mlagentbench.tasks.transfer import Part, transfer

__all__ = ["download", "fetching", "hugging_face", "kaggle_competition", "unpack"]

MIRROR_VARIABLE = "MLAB_MIRROR"
HUGGING_FACE = "https://huggingface.co"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
BLOCK = 1 << 20


class Fetching(NamedTuple):
    """For whom something is fetched, and into which cache."""

    cache: Path
    task: str | None
    checksums: Mapping[str, str]
    display: Display


class DownloadRecord(Record):
    """What is known of a downloaded file; it lies beside it, and stays when the file goes."""

    url: str
    sha256: str
    size: int
    """Bytes."""
    published: str | None
    """The checksum that its task publishes; None where `sha256` is only what it had the first time."""
    task: str | None
    """The task that it was first fetched for."""


_fetching: ContextVar[Fetching | None] = ContextVar("fetching", default=None)


@contextmanager
def fetching(task: TaskSpec, cache: Path, console: Console | None = None) -> Iterator[None]:
    """Fetch for a task, within this context and thread.

    Args:
        task: whose checksums hold.
        cache: where to keep what is fetched.
        console: where to show it; None for nowhere.
    """
    token = _fetching.set(Fetching(cache, task.id, task.data.checksums if task.data else {}, Display(console)))
    try:
        yield
    finally:
        _fetching.reset(token)


def download(url: str, *, name: str | None = None) -> Path:
    """A file over HTTPS, from the cache where it is there already.

    Args:
        url: where it is. Without encryption (`http:`) only with a published checksum, or from this machine.
        name: of the file; by default the last part of the URL's path.

    Returns:
        The file, to be read only.

    Raises:
        TaskError: it is not to be had, is not the file that was published, or does not fit on the disk.
    """
    name = name or urllib.parse.unquote(PurePosixPath(urllib.parse.urlsplit(url).path).name)
    if not name or "/" in name or name.startswith("."):
        raise TaskError(f"{url} names no file; say what it is called with name=")
    host = urllib.parse.urlsplit(url).hostname or "nowhere"
    key = hashlib.sha256(f"{url}\n{name}".encode()).hexdigest()[:12]
    return _file(url, PurePosixPath(f"{host}-{key}", name), name)


def hugging_face(repo: str, files: Sequence[str], *, kind: Literal["dataset", "model"] = "dataset", revision: str) -> Path:
    """Files of a repository on Hugging Face (or at `$HF_ENDPOINT`, with `$HF_TOKEN` where it is set).

    Args:
        repo: `owner/name`.
        files: their paths in it.
        kind: of repository.
        revision: a commit; a branch or a tag may change under the same name.

    Returns:
        The folder that holds them, by their paths.

    Raises:
        TaskError: as for `download`.
    """
    endpoint = (os.environ.get("HF_ENDPOINT") or HUGGING_FACE).rstrip("/")
    prefix = "datasets/" if kind == "dataset" else ""
    folder = PurePosixPath(f"huggingface-{kind}-{repo.replace('/', '-')}-{revision.replace('/', '-')}")
    token = os.environ.get("HF_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    for path in files:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise TaskError(f"{path!r} is no path in {repo}")
        url = f"{endpoint}/{prefix}{repo}/resolve/{urllib.parse.quote(revision, safe='')}/{urllib.parse.quote(path)}"
        _file(url, folder / path, path, headers)
    return _here().cache / "downloads" / folder


def kaggle_competition(slug: str, files: Sequence[str] | None = None) -> Path:
    """The files of a Kaggle competition, through kagglehub.

    Args:
        slug: the competition, as in its URL.
        files: their names; None for all, as one archive.

    Returns:
        The folder that holds them.

    Raises:
        TaskError: kagglehub is not installed, there is no key, the competition's rules are not accepted, or it is not to be had.
    """
    raise TaskError("Kaggle is not here yet")


def _here() -> Fetching:
    return _fetching.get() or Fetching(cache_directory(), None, {}, Display(Console(stderr=True)))


def _file(url: str, relative: PurePosixPath, name: str, headers: Mapping[str, str] | None = None) -> Path:
    """A file at its place in the cache, fetched if it is not there, and checked."""
    here = _here()
    place = here.cache / "downloads" / relative
    published = here.checksums.get(name) or here.checksums.get(place.name)
    source, plain = _mirrored(url)
    if not plain and urllib.parse.urlsplit(source).scheme != "https":
        if published is None:
            raise TaskError(f"{url} is not encrypted and no checksum of it is published; name an https URL, or its checksum in task.toml")
        plain = True
    record_path = place.with_name(f".{place.name}.json")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with locked(here.cache, f"download-{relative}", lambda: here.display.say(f"{name}: another process is downloading it")):
            record = _read(record_path)
            expected = _Expected(published, record)
            if place.exists():
                if expected.wrong(place) is None:
                    return place
                # Fallen short on the disk, or of another edition of the task.
                place.unlink()
            resumed = Part.of(place).validator(source) is not None
            wrong = _bring(source, place, expected, headers, plain, here, name)
            if wrong and resumed:
                wrong = _bring(source, place, expected, headers, plain, here, name)
            if wrong:
                raise TaskError(f"{url} is not the file it should be: {wrong}{expected.advice(record_path)}; nothing of it is kept")
            if record is None or record.published != published:
                digest = _digest(place, "sha256")
                record = DownloadRecord(url=url, sha256=digest, size=place.stat().st_size, published=published, task=here.task)
                record_path.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
                if published is None:
                    here.display.say(f"{name}: nobody publishes a checksum of it; that of this download is recorded: sha256:{digest}")
    except OSError as error:
        raise unwritable(here.cache, error) from None
    return place


def _bring(
    source: str, place: Path, expected: _Expected, headers: Mapping[str, str] | None, plain: bool, here: Fetching, name: str
) -> str | None:
    """Transfer a file, and put it at its place if it is right; else say what is wrong, and keep nothing."""
    with here.display.transfer(name) as advance:
        part = transfer(source, place, headers=headers, plain=plain, advance=advance)
    wrong = expected.wrong(part)
    if wrong is None:
        part.rename(place)
    Part.of(place).remove()
    return wrong


class _Expected(NamedTuple):
    """What a file must be."""

    published: str | None
    record: DownloadRecord | None

    def wrong(self, path: Path) -> str | None:
        """What is wrong with a file; None for nothing."""
        if self.published is not None:
            kind, _, checksum = self.published.partition(":")
            if kind not in ("sha256", "md5"):
                raise TaskError(f"the checksum {self.published!r} in task.toml is of no known kind; write sha256:... or md5:...")
        elif self.record is not None:
            kind, checksum = "sha256", self.record.sha256
        else:
            return None
        found = _digest(path, kind)
        if found == checksum.lower():
            return None
        size = path.stat().st_size
        return f"its {kind} is {found} ({decimal(size)}), and that of the {self._what()} is {checksum}"

    def _what(self) -> str:
        return "published file" if self.published is not None else "first download"

    def advice(self, record: Path) -> str:
        """What to do about a file that is wrong."""
        return "" if self.published is not None else f" (if it was meant to change, remove {record})"


def _read(path: Path) -> DownloadRecord | None:
    try:
        return DownloadRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _mirrored(url: str) -> tuple[str, bool]:
    """Where a file is fetched from, and whether it needs no encryption."""
    mirror = os.environ.get(MIRROR_VARIABLE, "").rstrip("/")
    if mirror:
        return f"{mirror}/{re.sub(r'^[a-z]+://', '', url)}", True
    return url, urllib.parse.urlsplit(url).hostname in LOOPBACK
