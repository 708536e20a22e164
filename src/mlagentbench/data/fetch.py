"""Fetch the real data of tasks, on behalf of their `full(public, private)`.

    def full(public, private):
        archive = fetch.download("https://example.org/data.tar.gz")
        fetch.unpack(archive, public, keep=["data/train/*"])

Everything is stored in the cache, shared by tasks, and never fetched twice. A file is checked against the checksum that its task publishes
(`[data.checksums]` in task.toml), or else against the checksum of its first download. The context manager `fetching`, which `prepare`
enters around `full`, says for which task files are fetched. Many small files may be fetched in several threads:

    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(fetch.download, urls))

With `$MLAB_MIRROR` set, such as to `http://127.0.0.1:8000`, `https://<host>/<path>` is fetched from `<mirror>/<host>/<path>`.
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

from mlagentbench.data import archives, kaggle
from mlagentbench.data.cache import RECORD_SUFFIX, Source, cache_directory, locked, read_record, unwritable, write_record
from mlagentbench.data.checksums import Expected, digest
from mlagentbench.data.display import Display
from mlagentbench.data.extras import install_command
from mlagentbench.data.kaggle import Competition
from mlagentbench.data.transfer import PartialDownload, Refused, transfer
from mlagentbench.errors import TaskError
from mlagentbench.records import Record
from mlagentbench.task.spec import TaskSpec

__all__ = ["download", "fetching", "hugging_face", "kaggle_competition", "unpack"]

MIRROR_VARIABLE = "MLAB_MIRROR"
HUGGING_FACE = "https://huggingface.co"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class Fetching(NamedTuple):
    """The task for which files are fetched, and the cache that they are stored in."""

    cache: Path
    task: str | None
    checksums: Mapping[str, str]
    display: Display
    unpublished: list[DownloadRecord]
    """The new downloads without a published checksum, whose own is now recorded."""


class DownloadRecord(Record):
    """The record of a downloaded file. It is stored beside the file, and stays when the file is removed."""

    url: str
    sha256: str
    size: int
    """Bytes."""
    published: str | None
    """The checksum that its task publishes; None if `sha256` is only that of the first download."""


class KaggleRecord(Record):
    """The record of a competition's downloaded files."""

    files: Mapping[str, str] = {}
    """The SHA-256 of each file's first download, by path."""
    whole: bool = False
    """Whether these are all files of the competition."""


class _Wanted(NamedTuple):
    """A file to be fetched."""

    url: str
    """The URL that the task named."""
    source: str
    """The URL that it is fetched from: the same, or the mirror's."""
    name: str
    """The path or name by which its checksum is looked up."""
    place: Path
    headers: Mapping[str, str]
    plain: bool
    """Whether an unencrypted connection is allowed."""


_fetching: ContextVar[Fetching | None] = ContextVar("fetching", default=None)
_active: list[Fetching] = []
"""The open `fetching` contexts of all threads."""


@contextmanager
def fetching(task: TaskSpec, cache: Path, console: Console | None = None) -> Iterator[None]:
    """Fetch on behalf of a task inside this context, and in threads started from it.

    Args:
        task: the task; files are checked against its checksums.
        cache: the cache to store files in.
        console: where to show progress; None to show nothing.
    """
    now = Fetching(cache, task.id, task.data.checksums if task.data else {}, Display(console), [])
    token = _fetching.set(now)
    _active.append(now)
    try:
        yield
    finally:
        _active.remove(now)
        _fetching.reset(token)
        _tell_unpublished(now)


def _tell_unpublished(here: Fetching) -> None:
    """Print which downloads have no published checksum, so that only their first one is recorded."""
    if here.unpublished:
        first, *more = here.unpublished
        files = f"{first.url} and {len(more):,} more" if more else first.url
        those = "those of these downloads are" if more else "that of this download is"
        checksum = "" if more else f": sha256:{first.sha256}"
        here.display.say(f"{files}: no checksum is published, so {those} recorded, for the next{checksum}")
        here.unpublished.clear()


def download(url: str, *, name: str | None = None) -> Path:
    """Download a file over HTTPS, unless the cache has it already.

    Args:
        url: the file's URL. An unencrypted one (`http:`) needs a published checksum, or must be on this machine.
        name: the file's name; by default the last part of the URL's path.

    Returns:
        The path of the file in the cache; only read it.

    Raises:
        TaskError: it cannot be downloaded, does not have the expected checksum, or does not fit on the disk.
    """
    split = urllib.parse.urlsplit(url)
    name = name or urllib.parse.unquote(PurePosixPath(split.path).name)
    if not name or "/" in name or name.startswith("."):
        raise TaskError(f"{url} names no file; say what it is called with name=")
    key = hashlib.sha256(f"{url}\n{name}".encode()).hexdigest()[:12]
    here = _here()
    folder = f"{split.hostname}-{key}"
    with _entry(here, folder, url):
        return _fetch(_wanted(here, url, name, PurePosixPath(folder, name)), here)


def unpack(archive: Path, into: Path, *, keep: Sequence[str] | None = None) -> None:
    """Unpack an archive: zip, tar (also .gz, .bz2, .xz), or a single compressed file (.gz, .bz2, .xz).

    Args:
        archive: the file.
        into: the folder, created if missing; existing files are overwritten.
        keep: globs of the members to unpack, matched against the whole path (`*` matches `/` too); None for all.

    Raises:
        TaskError: the archive is damaged or unsafe, the disk lacks the space, or a glob matches nothing.
    """
    with _here().display.transfer(archive.name, "unpacking") as advance:
        archives.unpack(archive, into, keep=keep, advance=advance)


def hugging_face(repo: str, files: Sequence[str], *, kind: Literal["dataset", "model"] = "dataset", revision: str) -> Path:
    """Download files of a repository on Hugging Face (or at `$HF_ENDPOINT`; with `$HF_TOKEN` if it is set).

    Args:
        repo: `owner/name`.
        files: their paths in the repository; checksums are looked up by path or by file name.
        kind: the kind of repository.
        revision: a commit. A branch or a tag works too, but may change under the same name.

    Returns:
        The folder that holds them under their paths.

    Raises:
        TaskError: as for `download`, or the repository's terms are not accepted.
    """
    here = _here()
    endpoint = (os.environ.get("HF_ENDPOINT") or HUGGING_FACE).rstrip("/")
    page = f"{endpoint}/{'datasets/' if kind == 'dataset' else ''}{repo}"
    folder = f"huggingface-{kind}-{repo.replace('/', '-')}-{revision.replace('/', '-')}"
    token = os.environ.get("HF_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with _entry(here, folder, page):
        for path in files:
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise TaskError(f"{path!r} is no path in {repo}")
            url = f"{page}/resolve/{urllib.parse.quote(revision, safe='')}/{urllib.parse.quote(path)}"
            try:
                _fetch(_wanted(here, url, path, PurePosixPath(folder, path), headers), here)
            except Refused as refused:
                if refused.status not in (401, 403):
                    raise
                advice = f"accept its terms at {page}, and set HF_TOKEN to a token of that account ({endpoint}/settings/tokens)"
                raise TaskError(f"Hugging Face does not give out {path} of {repo}: {advice}") from None
    return here.cache / "downloads" / folder


def kaggle_competition(slug: str, files: Sequence[str] | None = None) -> Path:
    """Download the files of a Kaggle competition with kagglehub.

    Args:
        slug: the competition's name in its URL.
        files: their paths in the competition; None for all, as one archive.

    Returns:
        The folder that holds them under their paths.

    Raises:
        TaskError: kagglehub is not installed, there is no key, the competition's rules are not accepted, or a file cannot be downloaded or
            does not have the expected checksum.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        raise TaskError(f"{slug!r} is no name of a Kaggle competition; it is the last part of the URL of its page")
    if importlib.util.find_spec("kagglehub") is None:
        raise TaskError(f"the files of Kaggle's {slug} need kagglehub; install with: {install_command(['kaggle'])}")
    here = _here()
    folder = f"kaggle.com-{slug}"
    competition = Competition(slug, here.cache / "downloads" / folder)
    with _entry(here, folder, competition.page) as lock:
        competition.files.mkdir(parents=True, exist_ok=True)
        for file in files if files is not None else [None]:
            _fetch_from_kaggle(competition, file, here, lock)
    return competition.files


def _here() -> Fetching:
    """Return the context to fetch in. If no task is being prepared, as in a shell, it has no checksums and shows progress on stderr.

    Raises:
        TaskError: the thread has no context, and several tasks are being prepared.
    """
    here = _fetching.get()
    if here is None and len(_active) > 1:
        raise TaskError("a thread fetches, and several tasks are being prepared: run it in contextvars.copy_context() of `full`")
    return here or next(iter(_active), None) or Fetching(cache_directory(), None, {}, Display(Console(stderr=True)), [])


@contextmanager
def _entry(here: Fetching, folder: str, url: str) -> Iterator[IO[bytes]]:
    """Create a folder of the downloads, and lock it."""
    path = here.cache / "downloads" / folder
    try:
        with locked(here.cache, f"download-{folder}", lambda: here.display.say(f"{url}: another process is downloading it")) as lock:
            path.mkdir(parents=True, exist_ok=True)
            if read_record(path / Source.NAME, Source) is None:
                write_record(path / Source.NAME, Source(url=url, task=here.task))
            yield lock
    except OSError as error:
        raise unwritable(here.cache, error) from None


def _wanted(here: Fetching, url: str, name: str, relative: PurePosixPath, headers: Mapping[str, str] = {}) -> _Wanted:
    place = here.cache / "downloads" / relative
    if mirror := os.environ.get(MIRROR_VARIABLE, "").rstrip("/"):
        return _Wanted(url, f"{mirror}/{url.partition('://')[2]}", name, place, headers, plain=True)
    split = urllib.parse.urlsplit(url)
    plain = split.scheme != "https"
    if plain and split.hostname not in LOOPBACK and Expected.of(name, here.checksums, None).published is None:
        raise TaskError(f"{url} is not encrypted and no checksum of it is published; name an https URL, or its checksum in task.toml")
    return _Wanted(url, url, name, place, headers, plain)


def _fetch(wanted: _Wanted, here: Fetching) -> Path:
    """Return a file's path in the cache, after downloading it if it is missing or has the wrong checksum."""
    place = wanted.place
    record_path = place.with_name(f".{place.name}{RECORD_SUFFIX}")
    place.parent.mkdir(parents=True, exist_ok=True)
    record = read_record(record_path, DownloadRecord)
    expected = Expected.of(wanted.name, here.checksums, record.sha256 if record else None)
    if not place.exists() or expected.wrong(place):
        place.unlink(missing_ok=True)
        if wrong := _transfer(wanted, expected, here):
            raise TaskError(f"{wanted.url} is not the file it should be: {wrong}{expected.advice(record_path)}; nothing of it is kept")
    if record is None or record.published != expected.published:
        record = DownloadRecord(url=wanted.url, sha256=digest(place), size=place.stat().st_size, published=expected.published)
        write_record(record_path, record)
        if record.published is None:
            here.unpublished.append(record)
            if here not in _active:
                _tell_unpublished(here)
    return place


def _transfer(wanted: _Wanted, expected: Expected, here: Fetching) -> str | None:
    """Download a file. If its checksum is wrong, discard it and return what is wrong; else move it into the cache and return None."""

    def say(text: str) -> None:
        here.display.say(f"{wanted.name}: {text}")

    for again in (True, False):
        with here.display.transfer(wanted.name) as advance:
            found = transfer(wanted.source, wanted.place, headers=wanted.headers, plain=wanted.plain, advance=advance, say=say)
        wrong = expected.wrong(found.path)
        if wrong is None:
            found.path.rename(wanted.place)
        PartialDownload.of(wanted.place).remove()
        if wrong is None or not found.pieced:
            break
        if again:
            say("the pieces that came do not fit together; downloading it anew")
    return wrong


def _fetch_from_kaggle(competition: Competition, file: str | None, here: Fetching, lock: IO[bytes]) -> None:
    """Download one file of a competition, or all of them, unless they are in the cache with the right checksums.

    Raises:
        TaskError: a file cannot be downloaded, or does not have the expected checksum.
    """
    record_path = competition.cache / f".{competition.slug}{RECORD_SUFFIX}"
    record = read_record(record_path, KaggleRecord) or KaggleRecord()

    def expected(name: str) -> Expected:
        return Expected.of(name, here.checksums, record.files.get(name))

    def wrong(name: str) -> str | None:
        path = competition.files / name
        return expected(name).wrong(path) if path.is_file() else "it is not there"

    if file is None and record.whole:
        if not any(map(wrong, record.files)):
            return
        shutil.rmtree(competition.files)  # kagglehub does not check the files that it finds
    elif file is not None and file in record.files:
        if not wrong(file):
            return
        (competition.files / file).unlink(missing_ok=True)
    with here.display.other(f"{file or 'all files'} of Kaggle's {competition.slug}") as show:
        kaggle.fetch(competition, file, mirror=os.environ.get(MIRROR_VARIABLE, ""), lock=lock, show=show)
    names = [file] if file is not None else competition.names()
    for name in names:
        if reason := wrong(name):
            (competition.files / name).unlink(missing_ok=True)
            advice = expected(name).advice(record_path)
            raise TaskError(f"{name} of Kaggle's {competition.slug} is not the file it should be: {reason}{advice}; nothing of it is kept")
    digests = {**record.files, **{name: digest(competition.files / name) for name in names}}
    write_record(record_path, KaggleRecord(files=digests, whole=record.whole or file is None))
