"""Unpack untrusted archives safely: no path outside the folder, no links, and no more bytes than the archive declares."""

from __future__ import annotations

import bz2
import fnmatch
import functools
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from rich.filesize import decimal

from mlagentbench.data.download.transfer import Advance
from mlagentbench.errors import TaskError

BLOCK = 1 << 20
LARGEST_RATIO = 2000
"""How many times its own size an archive may hold. Deflate reaches 1,032, and repetitive text comes near it; a zip bomb holds more."""
SMALL = 1 << 30
"""Bytes that every archive may hold, whatever its ratio."""
_ENDINGS = (".gz", ".bz2", ".xz")
"""The suffixes of a single compressed file."""
_ZIP = b"PK\x03\x04"
"""The first bytes of a zip. `zipfile.is_zipfile` checks the end instead, and takes a tar that contains a zip for one."""
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile, NotImplementedError, RuntimeError)


class _Member(NamedTuple):
    """A file in an archive."""

    name: str
    size: int
    """Bytes, as the archive declares them; -1 where it does not."""
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, into: Path, *, keep: Sequence[str] | None = None, advance: Advance | None = None) -> list[str]:
    """Unpack an archive: zip, tar (also .gz, .bz2, .xz), or a single compressed file (.gz, .bz2, .xz).

    Args:
        archive: the file; its type is detected from its content, but for a single compressed file.
        into: the folder, created if missing; existing files are overwritten.
        keep: globs of the members to unpack, matched against the whole path (`*` matches `/` too); None for all.
        advance: called after each unpacked member with the bytes unpacked so far.

    Returns:
        The paths of the unpacked files in the folder.

    Raises:
        TaskError: the archive is damaged, a member is a link or lies outside the folder, it holds more than it declares, the disk lacks the
            space, or a glob matches nothing.
    """
    into.mkdir(parents=True, exist_ok=True)
    unmatched = set(keep or ())
    bound = max(SMALL, archive.stat().st_size * LARGEST_RATIO)
    total = done = 0
    names = []
    try:
        for member in _members(archive):
            matching = [glob for glob in keep or () if fnmatch.fnmatchcase(member.name, glob)]
            if keep is not None and not matching:
                continue
            unmatched -= set(matching)
            total += member.size
            free = shutil.disk_usage(into).free
            if total > bound:
                raise TaskError(f"{archive} holds more than {LARGEST_RATIO:,} times its size; it is not unpacked")
            if member.size > free:
                raise TaskError(f"{member.name} of {archive.name} needs {decimal(member.size)}, and {into} has {decimal(free)} left")
            done += _write(member, _inside(into, member.name, archive), archive, bound)
            names.append(member.name)
            if advance:
                advance(done, None)
    except _DAMAGED as error:
        raise TaskError(f"{archive} is damaged: {error}; remove it, and it is downloaded again") from None
    if unmatched:
        raise TaskError(f"{archive} holds nothing called {', '.join(sorted(unmatched))}")
    return names


def _members(archive: Path) -> Iterator[_Member]:
    """Yield the files of an archive, in its order. Read each before asking for the next."""
    with archive.open("rb") as file:
        start = file.read(len(_ZIP))
    if start == _ZIP:
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise TaskError(f"{archive} holds a link, {entry.filename}; it is not unpacked")
                if not entry.is_dir():
                    yield _Member(entry.filename, entry.file_size, functools.partial(zipped.open, entry))
    elif _is_tar(archive):
        with tarfile.open(archive) as tar:
            for info in tar:
                if info.isdir():
                    continue
                if not info.isreg():
                    raise TaskError(f"{archive} holds {info.name}, which is no plain file; it is not unpacked")
                yield _Member(info.name.removeprefix("./"), info.size, functools.partial(_of_tar, tar, info))
    elif archive.suffix in _ENDINGS:
        yield _Member(archive.stem, -1, functools.partial(_decompressed, archive))
    else:
        raise TaskError(f"{archive} is no archive that can be unpacked: neither zip nor tar nor .gz, .bz2 or .xz")


def _is_tar(archive: Path) -> bool:
    if not tarfile.is_tarfile(archive):
        return False
    # `is_tarfile` takes any compressed file that begins with zeros for an empty tar.
    with tarfile.open(archive) as tar:
        return archive.suffix not in _ENDINGS or tar.next() is not None


def _decompressed(archive: Path) -> IO[bytes]:
    if archive.suffix == ".gz":
        return cast(IO[bytes], gzip.open(archive))
    return cast(IO[bytes], bz2.open(archive) if archive.suffix == ".bz2" else lzma.open(archive))


def _of_tar(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(info)
    assert file is not None, "a plain file has content"
    return file


def _inside(into: Path, name: str, archive: Path) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
        raise TaskError(f"{archive} holds {name!r}, which lies outside it; it is not unpacked")
    return into / path


def _write(member: _Member, place: Path, archive: Path, bound: int) -> int:
    """Write a member to a file, at most as many bytes as it declares, and return how many it has."""
    place.parent.mkdir(parents=True, exist_ok=True)
    limit = member.size if member.size >= 0 else bound
    written = 0
    with member.open() as source, place.open("wb") as target:
        while block := source.read(BLOCK):
            written += len(block)
            if written > limit:
                raise TaskError(f"{archive} holds more in {member.name} than it may, {decimal(limit)}; it is not unpacked")
            target.write(block)
    if 0 <= member.size != written:
        raise TaskError(f"{archive} is damaged: {member.name} ends early; remove it, and it is downloaded again")
    return written
