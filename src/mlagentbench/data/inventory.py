"""List what the cache holds, and remove entries that no process is working on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from mlagentbench.data.cache import Source, is_record, locked_if_free, read_record, unwritable
from mlagentbench.records import Variant


class CacheEntry(NamedTuple):
    """An entry of the cache."""

    kind: Literal["prepared", "unfinished", "download"]
    """Prepared data; a preparation that is in progress or was killed; or downloads, complete or not."""
    name: str
    """The key of prepared data, or the URL of a download."""
    task: str | None
    """The task whose data it is, or for which it was first downloaded; None for no particular task."""
    variant: Variant | None
    """None for a download."""
    path: Path
    size: int
    """Bytes."""
    lock: str
    """The name of the lock that a process holds while it works on the entry."""

    def in_use(self, cache: Path) -> bool:
        """Return whether a process is preparing or downloading it now."""
        with locked_if_free(cache, self.lock) as held:
            return not held


def entries(cache: Path) -> Iterator[CacheEntry]:
    """Yield the entries of the cache: prepared data by task, then downloads."""
    for path in sorted(cache.glob("prepared/*/*")):
        task, name = path.parent.name, path.name
        variant, _, key = name.removeprefix(".").partition("-")
        if variant in get_args(Variant) and path.is_dir():
            unfinished = name.startswith(".")
            kind: Literal["unfinished", "prepared"] = "unfinished" if unfinished else "prepared"
            known: Variant = "mini" if variant == "mini" else "full"
            yield CacheEntry(kind, key, task, known, path, _size(path, own=True), f"prepare-{task}-{variant}")
    for path in sorted(cache.glob("downloads/*")):
        source = read_record(path / Source.NAME, Source)
        size = _size(path)
        if source is not None and size:
            yield CacheEntry("download", source.url, source.task, None, path, size, f"download-{path.name}")


def downloaded(cache: Path, task: str) -> int:
    """Return the bytes downloaded for a task, including unfinished downloads."""
    return sum(entry.size for entry in entries(cache) if entry.kind == "download" and entry.task == task)


def remove(entry: CacheEntry, cache: Path) -> bool:
    """Remove an entry from the cache. The records of a download stay, so that the next one is checked against them.

    Returns:
        Whether it was removed; False if a process is working on it, in which case nothing is changed.

    Raises:
        TaskError: the cache cannot be written.
    """
    with locked_if_free(cache, entry.lock) as held:
        if not held:
            return False
        try:
            if entry.kind == "download":
                for path in sorted(entry.path.rglob("*"), reverse=True):
                    if path.is_dir():
                        if not any(path.iterdir()):
                            path.rmdir()
                    elif not is_record(path):
                        path.unlink()
            elif entry.path.exists():
                # It is moved away first, since half-removed data would be taken for complete.
                gone = Path(tempfile.mkdtemp(prefix=f".{entry.variant}-", dir=entry.path.parent))
                entry.path.rename(gone / "gone")
                shutil.rmtree(gone)
        except OSError as error:
            raise unwritable(cache, error) from None
    return True


def _size(folder: Path, *, own: bool = False) -> int:
    """Return the bytes of all files in a folder, without records of downloads.

    Args:
        folder: the folder.
        own: leave out files with further hard links, such as to downloads, since removing them frees no space.
    """
    paths = (path for path in folder.rglob("*") if path.is_file() and not is_record(path))
    total = 0
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # removed by a preparation in progress
        if not own or status.st_nlink == 1:
            total += status.st_size
    return total
