"""Prepare the data of tasks: once per task and variant, stored in the cache and shared by all runs.

A task's `prepare.py` has `full(public, private)`, which fetches the real data, and `mini(public, private, seed)`, which generates small
data with the same names and schema. Where the answers are generated, it has `full(public, private, seed)`: each preparation draws a secret
seed for it. The agent sees the files in `public`, read-only; only the grader sees those in `private`. A task
without `prepare.py` has no data, and its variants differ only in what its grader does.

The folder's name contains a digest of the code and the seed that made the data (sources.py). It appears whole or not at all, with
`prepared.json` beside the data.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.filesize import decimal

from mlagentbench.data import sources
from mlagentbench.data.cache import FULL, cache_directory, locked, read_record, unwritable, write_record
from mlagentbench.data.checksums import digest
from mlagentbench.data.download.display import Display
from mlagentbench.data.extras import require_extras
from mlagentbench.data.fetch import fetching
from mlagentbench.data.inventory import downloaded
from mlagentbench.data.metadata import level
from mlagentbench.errors import TaskError, UsageError
from mlagentbench.records import Record, Variant
from mlagentbench.task.catalogue import Task
from mlagentbench.task.seeds import mini_data_seed
from mlagentbench.util.machine import versions

RECORD = "prepared.json"
NO_DATA = "no-data"
"""The folder of the cache that stands for the data of tasks without data."""
PACKAGES = ("mlagentbench", "numpy", "polars")
"""The packages whose versions are recorded, since another numpy may draw other numbers from the same seed."""
SEED_BITS = 62
MEGABYTE = 1_000_000


class Prepared(NamedTuple):
    """The folders of a task's data, which are empty for a task without data."""

    public: Path
    private: Path

    @classmethod
    def empty(cls, folder: Path) -> Prepared:
        """Return the data of a task without any: two empty folders in a folder, made where they do not exist."""
        data = cls(folder / "public", folder / "private")
        for each in data:
            each.mkdir(parents=True, exist_ok=True)
        return data


class FileFacts(Record):
    """A file of prepared data."""

    size: int
    """Bytes."""
    sha256: str


class PreparedRecord(Record):
    """The record `prepared.json`: what was prepared, and from what."""

    schema_version: int = 1
    task: str
    variant: Variant
    seed: int | None
    """What generated data was drawn from, a secret for the full variant; None for the real data."""
    mini_seed: int | None = None
    """The number that the seed of mini data was made from; None for the usual data."""
    key: str
    """The digest of what made the data (`sources.key`)."""
    versions: Mapping[str, str]
    seconds: float
    """How long the preparation took."""
    public: Mapping[str, FileFacts]
    """By path."""
    private: Mapping[str, FileFacts]

    @property
    def public_size(self) -> int:
        """The bytes of the public files."""
        return sum(file.size for file in self.public.values())

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of the checksums of all files. Two preparations with one key can differ in it, as after a fresh download."""
        files = [{path: file.sha256 for path, file in each.items()} for each in (self.public, self.private)]
        return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


class Preparation(NamedTuple):
    """The outcome of `prepare`."""

    data: Prepared
    place: Path | None
    """The folder that holds public/, private/ and prepared.json; None for a task without data."""
    record: PreparedRecord | None
    made: bool
    """Whether the data was made now; False if it was in the cache."""


def prepared(task: Task, variant: Variant, cache: Path | None = None, *, mini_seed: int | None = None) -> Prepared:
    """Return a task's data, preparing it first if needed, without showing progress.

    Raises:
        TaskError, UsageError: as for `prepare`.
    """
    return prepare(task, variant, cache, mini_seed=mini_seed).data


def prepare(
    task: Task,
    variant: Variant,
    cache: Path | None = None,
    *,
    console: Console | None = None,
    force: bool = False,
    key: str | None = None,
    digest: str | None = None,
    mini_seed: int | None = None,
) -> Preparation:
    """Prepare a task's data, unless the cache has it. Several processes may call this at once: one prepares, the others wait.

    Args:
        task: the task.
        variant: the variant to prepare.
        cache: the cache's folder; None for `cache_directory()`.
        console: where to show progress; None to show nothing.
        force: prepare the data again even if the cache has it.
        key: the key of the data that a run was started on (`PreparedRecord.key`); data with another key is not accepted.
        digest: the digest of that data (`PreparedRecord.digest`); data with another one is not accepted.
        mini_seed: a number from which the mini data is drawn anew; None for the usual data.

    Raises:
        UsageError: `mini_seed` is given for another variant than mini.
        TaskError: the task's `prepare.py` lacks the variant or fails; a package, a file, consent or space is missing; or the data of `key`
            and `digest` is gone.
    """
    cache = cache or cache_directory()
    found = _prepare(task, variant, cache, console=console, force=force, key=key, mini_seed=mini_seed)
    if digest is not None and found.record is not None and found.record.digest != digest:
        raise TaskError(
            f"the data of {task.id} in {cache} is not what the run began with, since it was prepared anew, with other answers: bring back"
            " what was there, or begin a new run"
        )
    return found


def _prepare(
    task: Task, variant: Variant, cache: Path, *, console: Console | None, force: bool, key: str | None, mini_seed: int | None
) -> Preparation:
    if task.preparer is None:
        try:
            return Preparation(Prepared.empty(cache / "prepared" / NO_DATA), None, None, made=False)
        except OSError as error:
            raise unwritable(cache, error) from None
    place = place_of(task, variant, cache, mini_seed)
    if key is not None and (of_run := place.with_name(f"{variant}-{key}")) != place:
        return _made_before(task, of_run, cache)
    if not force and (found := _found(place)):
        return found
    display = Display(console)
    with locked(cache, f"prepare-{task.id}-{variant}", lambda: display.say(f"{task.id}: another process is preparing it")):
        if not force and (found := _found(place)):
            return found
        function = _function(task, variant)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            for leftover in place.parent.glob(f".{variant}-*"):
                shutil.rmtree(leftover)  # left by a killed process, since a live one would hold the lock
            if variant == "full":
                _announce(task, cache, display)
            record = _make(task, variant, function, place, cache, console, mini_seed)
        except OSError as error:
            raise unwritable(cache, error) from None
    return Preparation(Prepared(place / "public", place / "private"), place, record, made=True)


def place_of(task: Task, variant: Variant, cache: Path, mini_seed: int | None = None) -> Path:
    """Return the folder of a task's data in the cache, whether it exists or not.

    Raises:
        TaskError: a module that prepares it cannot be read as Python.
        UsageError: `mini_seed` is given for another variant than mini.
    """
    return cache / "prepared" / task.id / f"{variant}-{sources.key(task, variant, _seed(variant, mini_seed))}"


def digest_in(place: Path) -> str | None:
    """Return the digest of the prepared data in a folder (`PreparedRecord.digest`); None if there is none."""
    record = read_record(place / RECORD, PreparedRecord)
    return record.digest if record else None


def _seed(variant: Variant, mini_seed: int | None) -> int | None:
    """Return the seed that a variant's data is drawn from; None for real data."""
    if variant == "mini":
        return mini_data_seed(mini_seed)
    if mini_seed is not None:
        raise UsageError(f"the {variant} data is not drawn from a seed; leave --mini-seed out, or choose --variant mini")
    return None


def _found(place: Path) -> Preparation | None:
    """Return the prepared data in a folder; None if it is not prepared yet."""
    record = read_record(place / RECORD, PreparedRecord)
    return None if record is None else Preparation(Prepared(place / "public", place / "private"), place, record, made=False)


def _made_before(task: Task, place: Path, cache: Path) -> Preparation:
    """Return the data that a run began with.

    Raises:
        TaskError: it is gone.
    """
    if found := _found(place):
        return found
    raise TaskError(
        f"the code that makes the data of {task.id} has changed since the run began, and what it made then is no longer in {cache}: "
        "bring back either, or begin a new run"
    )


def _function(task: Task, variant: Variant) -> Callable[..., object]:
    """Return the function of `prepare.py` that makes a variant.

    For the real data, missing packages are reported here, and not after hours of downloading.

    Raises:
        TaskError: the function or a package is missing.
    """
    if variant == "full":
        require_extras(task, without=())
    module = task.module("prepare")
    function = getattr(module, variant, None)
    if not callable(function):
        raise TaskError(f"{task.preparer} has no function {variant!r}; choose the other variant with --variant")
    return function  # type: ignore[no-any-return]


def _announce(task: Task, cache: Path, display: Display) -> None:
    """Print the size and the licence of the real data, and raise TaskError if the disk lacks the space."""
    data = task.spec.data
    if data is None:
        return
    display.say(
        f"{task.id}: {decimal(data.download_mb * MEGABYTE)} to download, {decimal(data.disk_mb * MEGABYTE)} of disk in {cache}; {data.url}"
    )
    display.say(f"{task.id}: licence: {data.licence}")
    if data.caveat:
        display.say(f"{task.id}: note: {data.caveat}")
    if data.consent:
        display.say(f"{task.id}: its terms must be accepted first, by you: {data.consent}")
    needed = data.disk_mb * MEGABYTE - downloaded(cache, task.id)
    free = shutil.disk_usage(cache).free
    if needed > free:
        raise TaskError(
            f"{task.id} needs {decimal(needed)} of disk, and {cache} has {decimal(free)} left; "
            "free some, use another place with --cache-dir, or choose --variant mini"
        )


def _make(
    task: Task,
    variant: Variant,
    function: Callable[..., object],
    place: Path,
    cache: Path,
    console: Console | None,
    mini_seed: int | None,
) -> PreparedRecord:
    """Make the data in a temporary folder, move it to its place when it is complete, and return its record."""
    started, seed = time.monotonic(), _seed(variant, mini_seed)
    if variant == "full" and "seed" in inspect.signature(function).parameters:
        seed = secrets.randbits(SEED_BITS)
    temporary = Path(tempfile.mkdtemp(prefix=f".{variant}-", dir=place.parent))
    try:
        new = temporary / "new"
        public, private = new / "public", new / "private"
        private.mkdir(parents=True)
        public.mkdir()
        with fetching(task.spec, cache, console) as known:
            _call(task, function, (public, private) if seed is None else (public, private, seed))
        record = PreparedRecord(
            task=task.id,
            variant=variant,
            seed=seed,
            mini_seed=mini_seed,
            key=place.name.rpartition("-")[2],
            versions=versions(PACKAGES),
            seconds=round(time.monotonic() - started, 3),
            public=_facts(public, known),
            private=_facts(private, known),
        )
        write_record(new / RECORD, record)
        level(new)
        if variant == "full":
            os.sync()  # real data takes hours to make, which is worth a wait for the disk
        if place.exists():
            place.rename(temporary / "old")
        new.rename(place)
        return record
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _call(task: Task, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    try:
        function(*arguments)
    except TaskError:
        raise
    except ModuleNotFoundError as error:
        require_extras(task)
        raise TaskError(f"{task.id} cannot be prepared: {error.msg}") from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        # A task's `prepare.py` may be third-party code: whatever it raises becomes a one-line error, and other tasks are still prepared.
        raise TaskError(f"{task.id} cannot be prepared: prepare.py raised {type(error).__name__}: {error}") from error


def _facts(folder: Path, known: Mapping[tuple[int, int], str]) -> dict[str, FileFacts]:
    """Return the facts of all files of a folder, without reading those that are links to downloads, whose digests are known."""
    facts = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found = path.stat()
        sha256 = known.get((found.st_dev, found.st_ino)) if found.st_nlink > 1 else None
        facts[str(path.relative_to(folder))] = FileFacts(size=found.st_size, sha256=sha256 or digest(path))
    return facts
