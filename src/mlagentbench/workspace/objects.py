"""Contents by their digests: where the bytes of snapshots lie, once each, for all runs of a log directory.

    objects/ab/cdef...        a content, as it is
    objects/ab/cdef....zst    a content, compressed where that pays
    objects/ab/cdef....gone   the sign of a content that was dropped on purpose
    objects/tmp/<process>/    what a process has written and not yet flushed
    objects/lock              held while names are given or taken away

A content is written under a name of its own, flushed to disk, and only then renamed to its digest: whoever finds a digest finds all of its
bytes, whichever process wrote them and whatever ended it. Two processes that write one content write the same bytes, so either may win.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
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
from mlagentbench.workspace.content import BLOCK, copy_named, digest_of, prepare
from mlagentbench.workspace.files import clone, write_all

IN_MEMORY = 16 << 20
"""Up to here a file is read whole and compressed where that pays. What is larger is mostly checkpoints, which do not compress and must be
taken at the speed of a copy."""
PACKED = ".zst"
GONE = ".gone"
_FLUSH_SINGLY = 16
"""Up to so many new files are flushed one by one; for more, the whole file system is flushed once."""
_libc = ctypes.CDLL(None, use_errno=True)


class Content(NamedTuple):
    """What was stored."""

    digest: str
    size: int


class _Found(NamedTuple):
    path: str
    packed: bool


class Objects:
    """The store's folder of contents. Any number of threads and processes may use one.

    Args:
        root: the folder; it is made where there is none.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._pending: dict[str, str] = {}
        self._scratch: Path | None = None
        self._lock = threading.RLock()

    def scratch(self) -> Path:
        """This process's own folder below the root, which goes with the process.

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
        """Keep some bytes.

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
        """Keep the content of an open file, reading it once; holes stay holes.

        Args:
            source: a descriptor.
            size: the file's bytes, more than a block.
            expected: a digest it probably has: it is read against that first, and written only where it differs.

        Raises:
            Unread: the file has become shorter, or cannot be read.
            StorageFailed: the disk is full or read-only.
        """
        if expected is not None and self._hold(expected) and copy_named(source, None, size) == expected:
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
        """A descriptor of a content, and whether that is compressed.

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
                # Another thread has just given it its name.
                continue
        raise FileNotFoundError(digest)

    def stored_bytes(self, digest: str) -> int:
        """What a content takes on disk; 0 where the store has none of that name."""
        found = self._find(digest)
        try:
            return os.stat(found.path).st_blocks * 512 if found else 0
        except FileNotFoundError:
            return 0

    def now_ns(self) -> int:
        """The time by the clock of the store's file system, which is the workspace's as a rule."""
        os.utime(self.scratch())
        return self.scratch().stat().st_ctime_ns

    @contextmanager
    def settling(self) -> Iterator[None]:
        """Flush all that was put, give it its names, and keep other processes from giving or taking names inside.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with self._lock, self.storing():
            _flush(list(self._pending.values()), self.root)
            with self.exclusive():
                folders = {str(self.root)} if self._pending else set()
                while self._pending:
                    name, temporary = next(iter(self._pending.items()))
                    final = self._place(name)
                    if os.path.dirname(final) not in folders:
                        os.makedirs(os.path.dirname(final), exist_ok=True)
                        folders.add(os.path.dirname(final))
                    if os.path.exists(final):
                        os.unlink(temporary)
                    else:
                        os.rename(temporary, final)
                    del self._pending[name]
                _flush(list(folders), self.root)
                yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other processes from giving names or taking them away."""
        self.scratch()
        with open(self.root / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def link(self, digest: str, path: Path) -> None:
        """Give a content another name outside the store, which holds it: what has one is not dropped.

        Raises:
            OSError: there is no such content, or the file system has no links.
        """
        os.link(self._place(digest), path)

    def drop(self, digest: str) -> None:
        """Remove a content that has no other name, and leave a sign. Call it inside `exclusive`."""
        final = self._place(digest)
        with contextlib.suppress(FileNotFoundError):
            if os.stat(final).st_nlink == 1:
                Path(final + GONE).touch(0o444)
                os.unlink(final)

    def is_dropped(self, digest: str) -> bool:
        """Whether a content was dropped, and not put again since."""
        return self._find(digest) is None and os.path.exists(self._place(digest) + GONE)

    def _place(self, name: str) -> str:
        return f"{self.root}/{name[:2]}/{name[2:]}"

    def _find(self, digest: str) -> _Found | None:
        for name in (digest, digest + PACKED):
            packed = name != digest
            pending = self._pending.get(name)
            if pending is not None:
                return _Found(pending, packed)
            if os.path.exists(self._place(name)):
                return _Found(self._place(name), packed)
        return None

    @contextmanager
    def _created(self) -> Iterator[tuple[int, str]]:
        """A new file, open, and its path; it is gone again where its writing fails."""
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
            if self._hold(name):
                os.unlink(temporary)
            else:
                self._pending[name] = temporary

    def _hold(self, name: str) -> bool:
        """Whether the store has a content. If so it is held until it is settled, so that no other process drops it meanwhile."""
        with self._lock:
            if name in self._pending:
                return True
            held = f"{self.scratch()}/{secrets.token_hex(8)}"
            try:
                os.link(self._place(name), held)
            except FileNotFoundError:
                return False
            except OSError:
                # Without links nothing is ever dropped either.
                return os.path.exists(self._place(name))
            self._pending[name] = held
            return True

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Turn what a disk refuses into an error of storage.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        try:
            yield
        except OSError as error:
            raise StorageFailed(f"cannot write to {self.root}: {error.strerror}; make room, then continue the run") from error


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


def _flush(paths: list[str], root: Path) -> None:
    """Have files or folders on disk when this returns."""
    at_once = len(paths) > _FLUSH_SINGLY
    for path in [str(root)] if at_once else paths:
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
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # another run or process swept it away before it could be locked
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():
            return path, descriptor
        # The same, while this one waited for the lock.
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


def _give_up(scratch: Path, descriptor: int, owner: int) -> None:
    # A forked child ends with the same duties, and the folder is not its own.
    if os.getpid() == owner:
        shutil.rmtree(scratch, ignore_errors=True)
    os.close(descriptor)
