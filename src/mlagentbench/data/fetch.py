"""Fetch the real data of tasks, on behalf of their `full(public, private)`.

    def full(public, private):
        archive = fetch.download("https://example.org/data.tar.gz")
        fetch.unpack(archive, public, keep=["data/train/*"])

Everything is stored in the cache, shared by tasks, and never fetched twice. A file is checked against the checksum that its task publishes
(`[data.checksums]` in task.toml), or else against the checksum of its first download; later only if its size or its time of change is not
what it was then. The context manager `fetching`, which `prepare`
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
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from rich.console import Console
from rich.filesize import decimal

from mlagentbench.data.cache import RECORD_SUFFIX, Source, cache_directory, locked, read_record, unwritable, write_record
from mlagentbench.data.checksums import Expected, digest
from mlagentbench.data.download import archives, kaggle
from mlagentbench.data.download.display import Display
from mlagentbench.data.download.transfer import Interrupted, PartialDownload, Refused, persist, transfer
from mlagentbench.data.extras import install_command
from mlagentbench.data.metadata import MOMENT
from mlagentbench.errors import TaskError
from mlagentbench.records import Record
from mlagentbench.task.spec import TaskSpec

__all__ = ["download", "fetching", "hugging_face", "kaggle_competition", "unpack"]

MIRROR_VARIABLE = "MLAB_MIRROR"
HUGGING_FACE = "https://huggingface.co"
DOWNLOADS = 8
"""The most files of a competition that are downloaded at once."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class Fetching(NamedTuple):
    """The task for which files are fetched, and the cache that they are stored in."""

    cache: Path
    task: str | None
    checksums: Mapping[str, str]
    display: Display
    unpublished: list[DownloadRecord]
    """The new downloads without a published checksum, whose own is now recorded."""
    digests: dict[tuple[int, int], str]
    """The SHA-256 of each file that was fetched, by device and inode, so that links to it need not be read again."""


class DownloadRecord(Record):
    """The record of a downloaded file. It is stored beside the file, and stays when the file is removed."""

    url: str
    sha256: str
    size: int
    """Bytes."""
    published: str | None
    """The checksum that its task publishes; None if `sha256` is only that of the first download."""


class ArchiveRecord(Record):
    """The record of the files of an archive that was unpacked and removed."""

    files: Mapping[str, str]
    """The SHA-256 of each file's first download, by path."""
    sizes: Mapping[str, int] = {}
    """Their bytes; an earlier version did not record them."""


class _Wanted(NamedTuple):
    """A file to be fetched."""

    url: str
    """The URL that stands for it in messages and records."""
    find: Callable[[], str]
    """Returns the URL that it is fetched from, or raises `Interrupted`."""
    name: str
    """The path or name by which its checksum is looked up."""
    place: Path
    headers: Mapping[str, str] = {}
    plain: bool = False
    """Whether an unencrypted connection is allowed."""


_fetching: ContextVar[Fetching | None] = ContextVar("fetching", default=None)
_active: list[Fetching] = []
"""The open `fetching` contexts of all threads."""


@contextmanager
def fetching(task: TaskSpec, cache: Path, console: Console | None = None) -> Iterator[Mapping[tuple[int, int], str]]:
    """Fetch on behalf of a task inside this context, and in threads started from it.

    Args:
        task: the task; files are checked against its checksums.
        cache: the cache to store files in.
        console: where to show progress; None to show nothing.

    Yields:
        The SHA-256 of the files fetched so far, by device and inode.
    """
    now = Fetching(cache, task.id, task.data.checksums if task.data else {}, Display(console), [], {})
    token = _fetching.set(now)
    _active.append(now)
    try:
        yield now.digests
    finally:
        _active.remove(now)
        _fetching.reset(token)
        _warn_unpublished(now)


def _warn_unpublished(here: Fetching) -> None:
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
        return _fetch(_wanted(here, url, name, here.cache / "downloads" / folder / name), here)


def unpack(archive: Path, into: Path, *, keep: Sequence[str] | None = None) -> list[str]:
    """Unpack an archive: zip, tar (also .gz, .bz2, .xz), or a single compressed file (.gz, .bz2, .xz).

    Args:
        archive: the file.
        into: the folder, created if missing; existing files are overwritten.
        keep: globs of the members to unpack, matched against the whole path (`*` matches `/` too); None for all.

    Returns:
        The paths of the unpacked files in the folder.

    Raises:
        TaskError: the archive is damaged or unsafe, the disk lacks the space, or a glob matches nothing.
    """
    with _here().display.transfer(archive.name, "unpacking") as advance:
        return archives.unpack(archive, into, keep=keep, advance=advance)


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
                _fetch(_wanted(here, url, path, here.cache / "downloads" / folder / path, headers), here)
            except Refused as refused:
                if refused.status not in (401, 403):
                    raise
                advice = f"accept its terms at {page}, and set HF_TOKEN to a token of that account ({endpoint}/settings/tokens)"
                raise TaskError(f"Hugging Face does not give out {path} of {repo}: {advice}") from None
    return here.cache / "downloads" / folder


def kaggle_competition(slug: str, files: Sequence[str] | None = None) -> Path:
    """Download the files of a Kaggle competition.

    Args:
        slug: the competition's name in its URL.
        files: their paths in the competition, which are downloaded one by one; None for all, as one archive.

    Returns:
        The folder that holds them under their paths.

    Raises:
        TaskError: kagglesdk is not installed, there is no key, the competition's rules are not accepted, or a file cannot be downloaded or
            does not have the expected checksum.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        raise TaskError(f"{slug!r} is no name of a Kaggle competition; it is the last part of the URL of its page")
    if importlib.util.find_spec("kagglesdk") is None:
        raise TaskError(f"the files of Kaggle's {slug} need kagglesdk; install with: {install_command(['kaggle'])}")
    here = _here()
    page = kaggle.page_of(slug)
    folder = here.cache / "downloads" / f"kaggle.com-{slug}"

    def wanted(file: str | None, place: Path) -> _Wanted:
        def find() -> str:
            return _mirrored(kaggle.find_file(slug, file))

        return _Wanted(f"{page}/{file}" if file else page, find, file or slug, place, plain=MIRROR_VARIABLE in os.environ)

    with _entry(here, folder.name, page):
        if files is None:
            _fetch_archive(wanted(None, folder / f".{slug}.zip"), folder / "files", here)
        with ThreadPoolExecutor(DOWNLOADS) as pool:
            try:
                for _ in pool.map(lambda file: _fetch(wanted(file, folder / "files" / file), here), files or ()):
                    pass
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return folder / "files"


def _fetch_archive(wanted: _Wanted, folder: Path, here: Fetching) -> None:
    """Download an archive, unpack it into a folder and remove it, unless all its files are there with the right checksums.

    Raises:
        TaskError: it cannot be downloaded, or a file does not have the expected checksum.
    """
    record_path = wanted.place.with_suffix(RECORD_SUFFIX)
    record = read_record(record_path, ArchiveRecord)
    expected = {name: Expected.of(name, here.checksums, digest) for name, digest in (record.files if record else {}).items()}
    if record and all(known.holds_for(folder / name, record.sizes.get(name)) for name, known in expected.items()):
        _remember(here, {folder / name: sha256 for name, sha256 in record.files.items()})
        return
    _transfer(wanted, Expected(None, None), here)
    names = unpack(wanted.place, folder)
    wanted.place.unlink()
    for name in names:
        known = expected.get(name) or Expected.of(name, here.checksums, None)
        _check(folder / name, known, f"{wanted.url}/{name}", record_path)
    files = {name: digest(folder / name) for name in names}
    write_record(record_path, ArchiveRecord(files=files, sizes={name: (folder / name).stat().st_size for name in names}))
    _remember(here, {folder / name: sha256 for name, sha256 in files.items()})


def _here() -> Fetching:
    """Return the context to fetch in. If no task is being prepared, as in a shell, it has no checksums and shows progress on stderr.

    Raises:
        TaskError: the thread has no context, and several tasks are being prepared.
    """
    here = _fetching.get()
    if here is None and len(_active) > 1:
        raise TaskError("a thread fetches, and several tasks are being prepared: run it in contextvars.copy_context() of `full`")
    return here or next(iter(_active), None) or Fetching(cache_directory(), None, {}, Display(Console(stderr=True)), [], {})


@contextmanager
def _entry(here: Fetching, folder: str, url: str) -> Iterator[None]:
    """Create a folder of the downloads, and lock it."""
    path = here.cache / "downloads" / folder
    try:
        with locked(here.cache, f"download-{folder}", lambda: here.display.say(f"{url}: another process is downloading it")):
            path.mkdir(parents=True, exist_ok=True)
            if read_record(path / Source.NAME, Source) is None:
                write_record(path / Source.NAME, Source(url=url, task=here.task))
            yield
    except OSError as error:
        raise unwritable(here.cache, error) from None


def _wanted(here: Fetching, url: str, name: str, place: Path, headers: Mapping[str, str] = {}) -> _Wanted:
    source = _mirrored(url)
    split = urllib.parse.urlsplit(url)
    plain = source != url or split.scheme != "https"
    if source == url and plain and split.hostname not in LOOPBACK and Expected.of(name, here.checksums, None).published is None:
        raise TaskError(f"{url} is not encrypted and no checksum of it is published; name an https URL, or its checksum in task.toml")
    return _Wanted(url, lambda: source, name, place, headers, plain)


def _mirrored(url: str) -> str:
    """Return the URL from which a file is fetched: the mirror's if there is one, or else the same."""
    mirror = os.environ.get(MIRROR_VARIABLE, "").rstrip("/")
    return f"{mirror}/{url.partition('://')[2]}" if mirror else url


def _fetch(wanted: _Wanted, here: Fetching) -> Path:
    """Return a file's path in the cache, after downloading it if it is missing or has the wrong checksum."""
    place = wanted.place
    record_path = place.with_name(f".{place.name}{RECORD_SUFFIX}")
    place.parent.mkdir(parents=True, exist_ok=True)
    record = read_record(record_path, DownloadRecord)
    expected = Expected.of(wanted.name, here.checksums, record.sha256 if record else None)
    if not expected.holds_for(place, record.size if record and record.published == expected.published else None):
        _transfer(wanted, expected, here)
        _check(place, expected, wanted.url, record_path)
    if record is None or record.published != expected.published:
        record = DownloadRecord(url=wanted.url, sha256=digest(place), size=place.stat().st_size, published=expected.published)
        write_record(record_path, record)
        if record.published is None:
            here.unpublished.append(record)
            if here not in _active:
                _warn_unpublished(here)
    _remember(here, {place: record.sha256})
    return place


def _remember(here: Fetching, checked: Mapping[Path, str]) -> None:
    """Give files the time of change that says that they were checked, and store their digests by inode."""
    for path, sha256 in checked.items():
        os.utime(path, (MOMENT, MOMENT))
        found = path.stat()
        here.digests[found.st_dev, found.st_ino] = sha256


def _check(path: Path, expected: Expected, url: str, record: Path) -> None:
    """Remove a downloaded file and raise TaskError if it does not have the expected checksum."""
    if wrong := expected.wrong(path):
        path.unlink()
        raise TaskError(f"{url} is not the file it should be: {wrong}{expected.advice(record)}; nothing of it is kept")


def _transfer(wanted: _Wanted, expected: Expected, here: Fetching) -> None:
    """Download a file to its place. If it was resumed, and its checksum is wrong, download it once more from the start."""
    part = PartialDownload.of(wanted.place)
    source, resumed = "", False

    def say(text: str) -> None:
        here.display.say(f"{wanted.name}: {text}")

    def attempt() -> None:
        nonlocal source, resumed
        source = wanted.find()
        resumed = resumed or part.validator(source) is not None
        transfer(source, part, headers=wanted.headers, plain=wanted.plain, advance=advance)

    try:
        with here.display.transfer(wanted.name) as advance:
            persist(attempt, part.size, say)
            if resumed and expected.wrong(part.content):
                say("the pieces that came do not fit together; downloading it anew")
                part.remove()
                persist(attempt, part.size, say)
    except Interrupted as error:
        kept = f"what has come is kept ({decimal(part.size())}), so try again later"
        raise TaskError(f"cannot download {wanted.url}: {error}; {kept}") from None
    if PurePosixPath(urllib.parse.urlsplit(source).path).name == f"{wanted.place.name}.zip":
        archives.unpack(part.content, wanted.place.parent, keep=[wanted.place.name])  # Kaggle sends some files compressed
    else:
        part.content.rename(wanted.place)
    part.remove()
