"""What the cache holds, and how some of it is removed without harm to who works in it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from mlagentbench.data.cache import Source, is_record, locked_if_free, read_record, unwritable
from mlagentbench.records import Variant


class Entry(NamedTuple):
    """A thing in the cache."""

    kind: Literal["prepared", "unfinished", "download"]
    """Prepared data; a preparation that goes on or was killed; files as they were published, whole or not."""
    name: str
    """The key of prepared data, or where a download comes from."""
    task: str | None
    """Whose data it is, or for whom it was downloaded; None for nobody in particular."""
    variant: Variant | None
    """None for a download."""
    path: Path
    size: int
    """Bytes."""
    lock: str
    """Of who works in it."""

    def in_use(self, cache: Path) -> bool:
        """Whether it is being made."""
        with locked_if_free(cache, self.lock) as held:
            return not held


def entries(cache: Path) -> Iterator[Entry]:
    """All that the cache holds: prepared data by task, then downloads."""
    for path in sorted(cache.glob("prepared/*/*")):
        task, name = path.parent.name, path.name
        variant, _, key = name.removeprefix(".").partition("-")
        if variant in get_args(Variant) and path.is_dir():
            unfinished = name.startswith(".")
            kind: Literal["unfinished", "prepared"] = "unfinished" if unfinished else "prepared"
            known: Variant = "mini" if variant == "mini" else "full"
            yield Entry(kind, key, task, known, path, _size(path, own=True), f"prepare-{task}-{variant}")
    for path in sorted(cache.glob("downloads/*")):
        source = read_record(path / Source.NAME, Source)
        size = _size(path)
        if source is not None and size:
            yield Entry("download", source.url, source.task, None, path, size, f"download-{path.name}")


def downloaded(cache: Path, task: str) -> int:
    """The bytes that were downloaded for a task, unfinished downloads among them."""
    return sum(entry.size for entry in entries(cache) if entry.kind == "download" and entry.task == task)


def remove(entry: Entry, cache: Path) -> bool:
    """Remove a thing from the cache. Of a download its checksums stay, by which the next is known.

    Returns:
        Whether it is gone; False where somebody makes it now, and it is left as it is.

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
                # Out of its place first: what is half removed would be taken for whole.
                gone = Path(tempfile.mkdtemp(prefix=f".{entry.variant}-", dir=entry.path.parent))
                entry.path.rename(gone / "gone")
                shutil.rmtree(gone)
        except OSError as error:
            raise unwritable(cache, error) from None
    return True


def _size(folder: Path, *, own: bool = False) -> int:
    """The bytes of all files in a folder but its records of downloads.

    Args:
        folder: the folder.
        own: leave out files that are links to others, such as to downloads; removing them makes no room.
    """
    paths = (path for path in folder.rglob("*") if path.is_file() and not is_record(path))
    total = 0
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # of a preparation that goes on
        if not own or status.st_nlink == 1:
            total += status.st_size
    return total
