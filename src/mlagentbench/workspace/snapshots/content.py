"""Compute the digests by which the store names the contents of files.

The digest of a content of at most one block is its SHA-256. That of a longer one is `t` and the SHA-256 over the digests of its blocks,
which several cores compute at once. Runs of zero blocks are only counted, and holes are not read, so that a sparse file takes little time.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import mmap
import os
from concurrent.futures import ThreadPoolExecutor

from mlagentbench.workspace.files import extents

BLOCK = 1 << 20
"""Bytes of a block. A change would change all digests."""
CHANGED = "changed while it was read"
_ZERO_BLOCK = bytes(BLOCK)
_WORKERS = min(4, len(os.sched_getaffinity(0))) + 4
"""Threads that read and hash: more than cores, since most wait for the disk."""
_ALIGNED = 4096
_libc = ctypes.CDLL(None, use_errno=True)


class Unread(Exception):
    """A file could not be read to its end; the message says why."""


def digest_of(content: bytes) -> str:
    """Return the digest of a content, the same as `copy_named` returns for a file."""
    if len(content) <= BLOCK:
        return hashlib.sha256(content).hexdigest()
    view = memoryview(content)
    leaves = {index: _leaf(view[start : start + BLOCK]) for index, start in enumerate(range(0, len(content), BLOCK))}
    return _root(leaves, len(content))


def digest_of_file(descriptor: int) -> str:
    """Return the digest of an open file's content."""
    size = os.fstat(descriptor).st_size
    if size <= BLOCK:
        return hashlib.sha256(os.pread(descriptor, size, 0)).hexdigest()
    return copy_named(descriptor, None, size)


def _leaf(block: memoryview) -> bytes | None:
    """Return the digest of a block; None for a whole block of zeros."""
    if len(block) == BLOCK and block[0] == 0 and block == _ZERO_BLOCK:
        return None
    return hashlib.sha256(block).digest()


def _root(leaves: dict[int, bytes | None], size: int) -> str:
    """Return the digest of a content from those of its blocks by index. Missing or None stands for zeros, of which the count is hashed."""
    state = hashlib.sha256(b"%d\n" % size)
    following = 0
    for index in sorted(index for index, leaf in leaves.items() if leaf is not None):
        if index > following:
            state.update(b"Z" + (index - following).to_bytes(8, "big"))
        state.update(b"D" + (leaves[index] or b""))
        following = index + 1
    return "t" + state.hexdigest()


def copy_named(source: int, target: int | None, size: int) -> str:
    """Read an open file once, write it to a target if there is one, and return the content's digest. Holes stay holes.

    Args:
        source: a descriptor of a file of more than a block.
        target: a descriptor of a file from `prepare`; None to compute the digest only.
        size: the bytes to read.

    Raises:
        Unread: the file has become shorter, or cannot be read.
        OSError: the target cannot be written.
    """
    pieces = _pieces(source, size)
    left = collections.deque(pieces)
    leaves: dict[int, bytes | None] = {}

    def work() -> None:
        buffer = memoryview(mmap.mmap(-1, BLOCK))  # page-aligned, as O_DIRECT requires
        try:
            while (index := _next(left)) is not None:
                leaves[index] = _block(source, target, index, size, buffer, pieces[index])
        except BaseException:
            left.clear()
            raise

    workers = min(_WORKERS, 1 + len(pieces) // 8)
    with ThreadPoolExecutor(workers) as pool:
        for working in [pool.submit(work) for _ in range(workers)]:
            working.result()
    return _root(leaves, size)


def _next(left: collections.deque[int]) -> int | None:
    try:
        return left.popleft()
    except IndexError:
        return None


def _block(source: int, target: int | None, index: int, size: int, buffer: memoryview, pieces: list[tuple[int, int]]) -> bytes | None:
    offset = index * BLOCK
    wanted = min(BLOCK, size - offset)
    try:
        count = os.preadv(source, [buffer[:wanted]], offset)
    except OSError as error:
        raise Unread(f"unreadable: {error.strerror}") from None
    if count != wanted:
        raise Unread(CHANGED)
    if target is not None:
        for start, stop in pieces:
            _write(target, buffer[start - offset : stop - offset], start)
    return _leaf(buffer[:wanted])


def _pieces(descriptor: int, size: int) -> dict[int, list[tuple[int, int]]]:
    """Return the stretches of data in each block of a file, as (start, end). Blocks that are all holes are left out."""
    pieces: dict[int, list[tuple[int, int]]] = {}
    for start, end in extents(descriptor, size):
        while start < end:
            index = start // BLOCK
            stop = min(end, (index + 1) * BLOCK)
            pieces.setdefault(index, []).append((start, stop))
            start = stop
    # A last block that is not whole is hashed even where it is a hole.
    if size % BLOCK:
        pieces.setdefault(size // BLOCK, [])
    return pieces


def prepare(target: int, source: int, size: int) -> None:
    """Prepare an empty file for a copy of another one.

    A content without holes is written with O_DIRECT: it has to be flushed to disk anyway before it is published, so it is there when the
    last block is hashed, and it displaces nothing from the page cache. Its space is reserved, so that blocks can be written in parallel.
    """
    if os.fstat(source).st_blocks * 512 >= size and _libc.fallocate(target, 0, ctypes.c_int64(0), ctypes.c_int64(size)) == 0:
        with contextlib.suppress(OSError):
            fcntl.fcntl(target, fcntl.F_SETFL, fcntl.fcntl(target, fcntl.F_GETFL) | os.O_DIRECT)
    else:
        os.ftruncate(target, size)


def _write(descriptor: int, view: memoryview, offset: int) -> None:
    """Write all bytes at an offset. Where O_DIRECT cannot be used, switch it off for this and later writes."""
    direct = bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT)
    if direct and len(view) % _ALIGNED:
        _through_cache(descriptor)
    while view:
        try:
            written = os.pwrite(descriptor, view, offset)
        except OSError as error:
            if error.errno != errno.EINVAL or not direct:
                raise
            _through_cache(descriptor)
            direct = False
            continue
        view, offset = view[written:], offset + written


def _through_cache(descriptor: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) & ~os.O_DIRECT)
