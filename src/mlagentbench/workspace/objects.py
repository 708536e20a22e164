"""Contents by their digests: where the bytes of snapshots lie, once each, for all runs of a log directory.

    objects/ab/cdef...        a content, as it is
    objects/ab/cdef....zst    a content, compressed where that pays
    objects/tmp/<process>/    what a process has written and not yet flushed

A content is written under a name of its own, flushed to disk, and only then renamed to its digest: whoever finds a digest finds all of its
bytes, whichever process wrote them and whatever ended it. Two processes that write one content write the same bytes, so either may win.

A content of at most one block is named by its SHA-256. A longer one is named by `t` and the SHA-256 over the digests of its blocks, which
several cores take at once; runs of zero blocks are counted, not read, so that a sparse file costs what it holds.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import secrets
import shutil
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import zstandard

from mlagentbench.errors import StorageFailed
from mlagentbench.workspace.files import clone, extents, write_all

BLOCK = 256 << 10
"""Bytes of a block. Part of the format."""
IN_MEMORY = 16 << 20
"""Up to here a file is read whole and compressed where that pays. What is larger is mostly checkpoints, which do not compress and must be
taken at the speed of a copy."""
CHANGED = "changed while it was read"
_ZERO_BLOCK = bytes(BLOCK)
_WORKERS = min(4, len(os.sched_getaffinity(0)))
_FLUSH_SINGLY = 16
"""Up to so many new files are flushed one by one; for more, the whole file system is flushed once."""
_libc = ctypes.CDLL(None, use_errno=True)


class Unread(Exception):
    """A file could not be read to its end; the message says why."""


class Content(NamedTuple):
    """What was stored."""

    digest: str
    size: int


class Objects:
    """The store's folder of contents. Any number of threads and processes may use one.

    Args:
        root: the folder; it is made where there is none.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._pending: dict[str, Path] = {}
        self._scratch: Path | None = None
        self._lock = threading.RLock()

    def scratch(self) -> Path:
        """This process's own folder below the root, which goes with the process.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with self._lock, self._storing():
            if self._scratch is None:
                (self.root / "tmp").mkdir(parents=True, exist_ok=True)
                _sweep(self.root / "tmp")
                self._scratch, descriptor = _own_folder(self.root / "tmp")
                weakref.finalize(self, _give_up, self._scratch, descriptor)
            return self._scratch

    def put(self, content: bytes) -> Content:
        """Keep some bytes.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        digest = digest_of(content)
        if self.find(digest) is None:
            packed = _packed(content)
            with self._storing(), self._new(digest + ".zst" if packed is not None else digest) as descriptor:
                write_all(descriptor, content if packed is None else packed)
        return Content(digest, len(content))

    def put_large(self, source: int, size: int, expected: str | None = None) -> Content:
        """Keep the content of an open file, reading it once; holes stay holes.

        Args:
            source: a descriptor.
            size: the file's bytes.
            expected: a digest it probably has: it is read against that first, and written only where it differs.

        Raises:
            Unread: the file has become shorter, or cannot be read.
            StorageFailed: the disk is full or read-only.
        """
        stretches = list(extents(source, size))
        if expected is not None and self.find(expected) is not None and _tree(source, None, size, stretches) == expected:
            return Content(expected, size)
        temporary = self.scratch() / secrets.token_hex(8)
        with self._storing(), _created(temporary) as target:
            if clone(source, target):
                source = target
            else:
                os.ftruncate(target, size)
            digest = _tree(source, None if source == target else target, size, stretches)
            self._keep(temporary, digest)
        return Content(digest, size)

    def now_ns(self) -> int:
        """The time by the clock of the store's file system, which is the workspace's as a rule."""
        os.utime(self.scratch())
        return self.scratch().stat().st_ctime_ns

    def find(self, digest: str) -> Path | None:
        """Where a content lies; None where it does not."""
        final = self.root / digest[:2] / digest[2:]
        for path in (final, final.with_name(final.name + ".zst")):
            if path.exists():
                return path
        return self._pending.get(digest) or self._pending.get(digest + ".zst")

    def settle(self) -> None:
        """Flush all that was put, and give it its names.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with self._lock, self._storing():
            if not self._pending:
                return
            _flush(list(self._pending.values()), self.root)
            folders = set()
            for name, temporary in self._pending.items():
                final = self.root / name[:2] / name[2:]
                if final.parent not in folders:
                    final.parent.mkdir(exist_ok=True)
                    folders.add(final.parent)
                os.rename(temporary, final)
            _flush([*folders, self.root], self.root)
            self._pending = {}

    @contextmanager
    def _new(self, name: str) -> Iterator[int]:
        temporary = self.scratch() / secrets.token_hex(8)
        with _created(temporary) as descriptor:
            yield descriptor
            self._keep(temporary, name)

    def _keep(self, temporary: Path, name: str) -> None:
        with self._lock:
            if name in self._pending or self.find(name.removesuffix(".zst")) is not None:
                temporary.unlink()
            else:
                self._pending[name] = temporary

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageFailed(f"cannot write to {self.root}: {error.strerror}; make room, then continue the run") from error


def digest_of(content: bytes) -> str:
    """The name of a content.

    A file's name does not depend on how it was read: `Objects.put_large` gives the same.
    """
    if len(content) <= BLOCK:
        return hashlib.sha256(content).hexdigest()
    view = memoryview(content)
    leaves = {index: _leaf(view[start : start + BLOCK]) for index, start in enumerate(range(0, len(content), BLOCK))}
    return _root(leaves, len(content))


def digest_of_file(descriptor: int) -> str:
    """The name of an open file's content, its holes not read."""
    size = os.fstat(descriptor).st_size
    if size <= BLOCK:
        return hashlib.sha256(os.pread(descriptor, size, 0)).hexdigest()
    return _tree(descriptor, None, size, list(extents(descriptor, size)))


def _leaf(block: memoryview) -> bytes | None:
    """The digest of a block; None for a whole block of zeros."""
    if len(block) == BLOCK and block[0] == 0 and block == _ZERO_BLOCK:
        return None
    return hashlib.sha256(block).digest()


def _root(leaves: dict[int, bytes | None], size: int) -> str:
    """The digest over blocks by index; those that are missing or None are zeros, which stand as counts."""
    state = hashlib.sha256(b"%d\n" % size)
    following = 0
    for index in sorted(index for index, leaf in leaves.items() if leaf is not None):
        if index > following:
            state.update(b"Z" + (index - following).to_bytes(8, "big"))
        state.update(b"D" + (leaves[index] or b""))
        following = index + 1
    return "t" + state.hexdigest()


def _tree(source: int, target: int | None, size: int, stretches: list[tuple[int, int]]) -> str:
    """Read a file's stretches of data once: name its content, and write it to the target, if any, as it is read."""
    if size <= BLOCK:
        raise ValueError("a content of one block has no tree")
    pieces: dict[int, list[tuple[int, int]]] = {}
    for start, end in stretches:
        while start < end:
            index = start // BLOCK
            stop = min(end, (index + 1) * BLOCK)
            pieces.setdefault(index, []).append((start, stop))
            start = stop
    # A last block that is not whole has a digest even where it is a hole.
    if size % BLOCK:
        pieces.setdefault(size // BLOCK, [])
    here = threading.local()

    def block(index: int) -> bytes | None:
        if not hasattr(here, "buffer"):
            here.buffer = bytearray(BLOCK)
        offset = index * BLOCK
        wanted = min(BLOCK, size - offset)
        view = memoryview(here.buffer)[:wanted]
        try:
            count = os.preadv(source, [view], offset)
        except OSError as error:
            raise Unread(f"unreadable: {error.strerror}") from None
        if count != wanted:
            raise Unread(CHANGED)
        if target is not None:
            for start, stop in pieces[index]:
                _pwrite_all(target, view[start - offset : stop - offset], start)
        return _leaf(view)

    if len(pieces) < 32:
        return _root({index: block(index) for index in pieces}, size)
    with ThreadPoolExecutor(_WORKERS) as pool:
        return _root(dict(zip(pieces, pool.map(block, pieces), strict=True)), size)


def _pwrite_all(descriptor: int, view: memoryview, offset: int) -> None:
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _packed(content: bytes) -> bytes | None:
    """The content compressed, where that saves a tenth; of a long one, samples are tried first."""
    if len(content) < 256:
        return None
    compressor = zstandard.ZstdCompressor(level=1)
    if len(content) > BLOCK:
        middle = len(content) // 2
        sample = content[: 32 << 10] + content[middle : middle + (32 << 10)]
        if len(compressor.compress(sample)) > 0.9 * len(sample):
            return None
    packed = compressor.compress(content)
    return packed if len(packed) <= 0.9 * len(content) else None


@contextmanager
def _created(path: Path) -> Iterator[int]:
    """A new file, which is gone again where its writing fails."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    try:
        yield descriptor
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _flush(paths: list[Path], root: Path) -> None:
    """Have files or folders on disk when this returns."""
    at_once = len(paths) > _FLUSH_SINGLY
    for path in [root] if at_once else paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if at_once:
                _flush_file_system(descriptor)
            else:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _flush_file_system(descriptor: int) -> None:
    if _libc.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _own_folder(parent: Path) -> tuple[Path, int]:
    """A new folder, locked for as long as this process lives."""
    while True:
        path = parent / f"{os.getpid()}-{secrets.token_hex(4)}"
        path.mkdir()
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():
            return path, descriptor
        # Another process swept it away between its making and its locking.
        os.close(descriptor)


def _sweep(parent: Path) -> None:
    """Remove what processes left that were killed; their locks went with them."""
    for path in parent.iterdir():
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)


def _give_up(scratch: Path, descriptor: int) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    os.close(descriptor)
