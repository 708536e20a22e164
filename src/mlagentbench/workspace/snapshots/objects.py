"""Store the contents of snapshots by their digests, each once for all runs of a log directory.

    objects/ab/cdef...        a content, uncompressed
    objects/ab/cdef....zst    a content, compressed where that saves space
    objects/tmp/<process>/    what a process has written and not yet flushed

A content is written to a temporary file, flushed to disk, and only then renamed to its digest. A file named by a digest is thus complete,
even if a process was killed. Two processes that write one content write the same bytes, so either may win. No content is ever deleted.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import zstandard

from mlagentbench.errors import StorageFailed
from mlagentbench.util.lock import acquire
from mlagentbench.workspace.files import clone, write_all
from mlagentbench.workspace.snapshots.content import BLOCK, copy_named, digest_of, prepare

IN_MEMORY = 16 << 20
"""Bytes up to which a file is read whole, and compressed where that saves space. Larger files are mostly model checkpoints, which do not
compress, and are stored at the speed of a copy."""
PACKED = ".zst"
_FLUSH_SINGLY = 16
"""The number of new files up to which they are flushed one by one; for more, the whole file system is flushed once."""
_libc = ctypes.CDLL(None, use_errno=True)


class Content(NamedTuple):
    """The digest and the size in bytes of a content that was stored."""

    digest: str
    size: int


class _Found(NamedTuple):
    path: str
    packed: bool


class Objects:
    """The store's folder of contents, which is created if it does not exist. Any number of threads and processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._pending: dict[str, str] = {}
        self._scratch: Path | None = None
        self._lock = threading.RLock()

    def scratch(self) -> Path:
        """Return this process's temporary folder below the root, which is removed when the process ends.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with self._lock, self.storing():
            if self._scratch is None:
                (self.root / "tmp").mkdir(parents=True, exist_ok=True)
                _sweep(self.root / "tmp")
                self._scratch, descriptor = _own_folder(self.root / "tmp")
                weakref.finalize(self, _give_up, self._scratch, descriptor, os.getpid())
            return self._scratch

    def put(self, content: bytes) -> Content:
        """Store some bytes.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        digest = digest_of(content)
        if self._find(digest) is None:
            packed = _packed(content)
            with self.storing(), self._created() as (descriptor, temporary):
                write_all(descriptor, content if packed is None else packed)
                self._keep(temporary, digest if packed is None else digest + PACKED)
        return Content(digest, len(content))

    def put_large(self, source: int, size: int, expected: str | None = None) -> Content:
        """Store the content of an open file. Holes stay holes.

        Args:
            source: a descriptor.
            size: the file's bytes, more than a block.
            expected: the digest that it probably has. If the store has that, the file is hashed first, and written only if it differs.

        Raises:
            Unread: the file has become shorter, or cannot be read.
            StorageFailed: the disk is full or read-only.
        """
        if expected is not None and self._find(expected) and copy_named(source, None, size) == expected:
            return Content(expected, size)
        with self.storing(), self._created() as (target, temporary):
            if clone(source, target):
                os.ftruncate(target, size)
                digest = copy_named(target, None, size)
            else:
                prepare(target, source, size)
                digest = copy_named(source, target, size)
            self._keep(temporary, digest)
        return Content(digest, size)

    def open(self, digest: str) -> tuple[int, bool]:
        """Open a content. Returns a descriptor, and whether the content is compressed.

        Raises:
            FileNotFoundError: the store has no such content.
        """
        for _ in range(2):
            found = self._find(digest)
            if found is None:
                break
            try:
                return os.open(found.path, os.O_RDONLY | os.O_CLOEXEC), found.packed
            except FileNotFoundError:
                # Another thread has just renamed the temporary file to its digest.
                continue
        raise FileNotFoundError(digest)

    def stored_bytes(self, digest: str) -> int:
        """Return the bytes that a content takes on disk; 0 where the store has none of that digest."""
        found = self._find(digest)
        try:
            return os.stat(found.path).st_blocks * 512 if found else 0
        except FileNotFoundError:
            return 0

    def now_ns(self) -> int:
        """Return the time by the clock of the store's file system, in nanoseconds. It is usually the workspace's file system too."""
        os.utime(self.scratch())
        return self.scratch().stat().st_ctime_ns

    def flush(self) -> None:
        """Flush all new contents to disk and rename them to their digests.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with self._lock, self.storing():
            _sync(list(self._pending.values()), self.root)
            folders = {str(self.root)} if self._pending else set()
            while self._pending:
                name, temporary = next(iter(self._pending.items()))
                final = self._path(name)
                if os.path.dirname(final) not in folders:
                    os.makedirs(os.path.dirname(final), exist_ok=True)
                    folders.add(os.path.dirname(final))
                os.rename(temporary, final)
                del self._pending[name]
            _sync(list(folders), self.root)

    def _path(self, name: str) -> str:
        return f"{self.root}/{name[:2]}/{name[2:]}"

    def _find(self, digest: str) -> _Found | None:
        for name in (digest, digest + PACKED):
            packed = name != digest
            pending = self._pending.get(name)
            if pending is not None:
                return _Found(pending, packed)
            if os.path.exists(self._path(name)):
                return _Found(self._path(name), packed)
        return None

    @contextmanager
    def _created(self) -> Iterator[tuple[int, str]]:
        """Create a temporary file, and yield its descriptor and path. It is removed if the block raises."""
        path = f"{self.scratch()}/{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            yield descriptor, path
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)

    def _keep(self, temporary: str, name: str) -> None:
        with self._lock:
            if name in self._pending or os.path.exists(self._path(name)):
                os.unlink(temporary)
            else:
                self._pending[name] = temporary

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Raise errors of the operating system as StorageFailed.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        try:
            yield
        except OSError as error:
            raise StorageFailed(f"cannot write to {self.root}: {error.strerror}; make room, then continue the run") from error


def _packed(content: bytes) -> bytes | None:
    """Compress a content; None where that saves less than a tenth. Of a long content samples are tried first."""
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


def _sync(paths: list[str], root: Path) -> None:
    """Flush files or folders to disk."""
    at_once = len(paths) > _FLUSH_SINGLY
    for path in [str(root)] if at_once else paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not at_once:
                os.fsync(descriptor)
            elif _libc.syncfs(descriptor) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(descriptor)


def _own_folder(parent: Path) -> tuple[Path, int]:
    """Create a folder and lock it while its descriptor is open. Returns the path and the descriptor."""
    while True:
        path = parent / f"{os.getpid()}-{secrets.token_hex(4)}"
        path.mkdir()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # another run or process removed it in `_sweep` before it was locked
            continue
        acquire(descriptor)
        if path.exists():
            return path, descriptor
        # Another one removed it while this one waited for the lock.
        os.close(descriptor)


def _sweep(parent: Path) -> None:
    """Remove the folders of processes that were killed: the kernel has released their locks."""
    for path in parent.iterdir():
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        if acquire(descriptor, timeout=0):
            shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _give_up(scratch: Path, descriptor: int, owner: int) -> None:
    # A forked child inherits this finalizer, but must not remove its parent's folder.
    if os.getpid() == owner:
        shutil.rmtree(scratch, ignore_errors=True)
    os.close(descriptor)
