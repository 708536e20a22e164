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
import importlib.util
import os
import re
import shutil
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import IO, Literal, NamedTuple

from rich.console import Console

from mlagentbench.errors import TaskError
from mlagentbench.records import Record
from mlagentbench.tasks import kaggle
from mlagentbench.tasks.archives import unpack
from mlagentbench.tasks.cache import cache_directory, locked, read_record, unwritable, write_record
from mlagentbench.tasks.checksums import Expected, digest
from mlagentbench.tasks.display import Display
from mlagentbench.tasks.extras import install_command
from mlagentbench.tasks.kaggle import Competition
from mlagentbench.tasks.spec import TaskSpec
from mlagentbench.tasks.transfer import Part, Refused, transfer

__all__ = ["download", "fetching", "hugging_face", "kaggle_competition", "unpack"]

MIRROR_VARIABLE = "MLAB_MIRROR"
HUGGING_FACE = "https://huggingface.co"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


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

    @classmethod
    def of(cls, path: Path, url: str, expected: Expected, here: Fetching) -> DownloadRecord:
        """What is known of a file that has come."""
        return cls(url=url, sha256=digest(path), size=path.stat().st_size, published=expected.published, task=here.task)


class KaggleRecord(Record):
    """What is known of a competition's downloaded files."""

    slug: str
    files: Mapping[str, str] = {}
    """The SHA-256 of each at its first download, by path."""
    whole: bool = False
    """Whether these are all."""
    task: str | None
    """The task that they were first fetched for."""


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
        try:
            _file(url, folder / path, path, headers)
        except Refused as refused:
            if refused.status not in (401, 403):
                raise
            page = f"{endpoint}/{prefix}{repo}"
            advice = f"accept its terms at {page}, and set HF_TOKEN to a token of that account ({endpoint}/settings/tokens)"
            raise TaskError(f"Hugging Face does not give out {path} of {repo}: {advice}") from None
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
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        raise TaskError(f"{slug!r} is no name of a Kaggle competition; it is the last part of the URL of its page")
    if importlib.util.find_spec("kagglehub") is None:
        raise TaskError(f"the files of Kaggle's {slug} need kagglehub; install with: {install_command(['kaggle'])}")
    here = _here()
    key = f"kaggle.com-{slug}"
    competition = Competition(slug, here.cache / "downloads" / key)
    try:
        competition.files.mkdir(parents=True, exist_ok=True)
        with locked(here.cache, f"download-{key}", lambda: here.display.say(f"{slug}: another process is downloading it")) as lock:
            for file in files if files is not None else [None]:
                _kaggle(competition, file, here, lock)
    except OSError as error:
        raise unwritable(here.cache, error) from None
    return competition.files


def _kaggle(competition: Competition, file: str | None, here: Fetching, lock: IO[bytes]) -> None:
    """One file of a competition at its place, or all of them, fetched if they are not there, and checked."""
    record_path = competition.cache / ".record.json"
    record = read_record(record_path, KaggleRecord) or KaggleRecord(slug=competition.slug, task=here.task)

    def wrong(name: str) -> str | None:
        path = competition.files / name
        return Expected.of(name, here.checksums, record.files.get(name)).wrong(path) if path.is_file() else "it is not there"

    if file is None and record.whole:
        if not any(map(wrong, record.files)):
            return
        shutil.rmtree(competition.files)  # kagglehub would take what is there for what it should be
    elif file is not None and file in record.files:
        if not wrong(file):
            return
        (competition.files / file).unlink(missing_ok=True)
    with here.display.other(f"{competition.slug}: {file or 'all its files'}, from Kaggle") as show:
        kaggle.fetch(competition, file, mirror=os.environ.get(MIRROR_VARIABLE, ""), lock=lock, show=show)
    names = [file] if file is not None else competition.names()
    for name in names:
        if reason := wrong(name):
            (competition.files / name).unlink(missing_ok=True)
            advice = Expected.of(name, here.checksums, record.files.get(name)).advice(record_path)
            raise TaskError(f"{name} of Kaggle's {competition.slug} is not the file it should be: {reason}{advice}; nothing of it is kept")
    digests = {**record.files, **{name: digest(competition.files / name) for name in names}}
    whole = record.whole or file is None
    write_record(record_path, KaggleRecord(slug=competition.slug, task=here.task, files=digests, whole=whole))


def _here() -> Fetching:
    return _fetching.get() or Fetching(cache_directory(), None, {}, Display(Console(stderr=True)))


def _file(url: str, relative: PurePosixPath, name: str, headers: Mapping[str, str] | None = None) -> Path:
    """A file at its place in the cache, fetched if it is not there, and checked."""
    here = _here()
    place = here.cache / "downloads" / relative
    record_path = place.with_name(f".{place.name}.json")
    source, plain = _mirrored(url)
    if not plain and urllib.parse.urlsplit(source).scheme != "https":
        if Expected.of(name, here.checksums, None).published is None:
            raise TaskError(f"{url} is not encrypted and no checksum of it is published; name an https URL, or its checksum in task.toml")
        plain = True
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with locked(here.cache, f"download-{relative}", lambda: here.display.say(f"{name}: another process is downloading it")):
            record = read_record(record_path, DownloadRecord)
            expected = Expected.of(name, here.checksums, record.sha256 if record else None)
            if not place.exists() or expected.wrong(place):
                place.unlink(missing_ok=True)
                resumed = Part.of(place).validator(source) is not None
                wrong = _bring(source, place, expected, headers, plain, here, name)
                if wrong and resumed:
                    wrong = _bring(source, place, expected, headers, plain, here, name)
                if wrong:
                    raise TaskError(f"{url} is not the file it should be: {wrong}{expected.advice(record_path)}; nothing of it is kept")
            if record is None or record.published != expected.published:
                _record(DownloadRecord.of(place, url, expected, here), record_path, here, name)
    except OSError as error:
        raise unwritable(here.cache, error) from None
    return place


def _bring(
    source: str, place: Path, expected: Expected, headers: Mapping[str, str] | None, plain: bool, here: Fetching, name: str
) -> str | None:
    """Transfer a file, and put it at its place if it is right; else say what is wrong, and keep nothing."""
    with here.display.transfer(name) as advance:
        part = transfer(source, place, headers=headers, plain=plain, advance=advance, say=lambda text: here.display.say(f"{name}: {text}"))
    wrong = expected.wrong(part)
    if wrong is None:
        part.rename(place)
    Part.of(place).remove()
    return wrong


def _record(record: DownloadRecord, path: Path, here: Fetching, name: str) -> None:
    write_record(path, record)
    if record.published is None:
        here.display.say(f"{name}: no checksum of it is published, so that of this download is recorded: sha256:{record.sha256}")


def _mirrored(url: str) -> tuple[str, bool]:
    """Where a file is fetched from, and whether it needs no encryption."""
    mirror = os.environ.get(MIRROR_VARIABLE, "").rstrip("/")
    if mirror:
        return f"{mirror}/{re.sub(r'^[a-z]+://', '', url)}", True
    return url, urllib.parse.urlsplit(url).hostname in LOOPBACK
