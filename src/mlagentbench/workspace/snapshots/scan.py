"""Scan a workspace: list what is there, find what changed since the last scan, and store the contents of changed files.

A file counts as unchanged while its times of modification and change, size, inode and mode are those of the last scan. A file that changed
so shortly before a scan that it could change again within the same tick of the clock is read again in the next one (as git's index does).
No link is followed, and only regular files and folders are opened. Those that their owner may not read are made readable first (see
sandbox/access.py).

Not covered: changes by a live process through a memory map that it opened before the last scan: the kernel may update the times late.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping

from mlagentbench.errors import LimitReached
from mlagentbench.sandbox.access import FOLDER, is_usable, make_usable, open_folder
from mlagentbench.workspace.files import READ
from mlagentbench.workspace.snapshots.content import BLOCK, CHANGED, Unread
from mlagentbench.workspace.snapshots.manifest import EntryKind, ManifestEntry, Signature
from mlagentbench.workspace.snapshots.objects import IN_MEMORY, Content, Objects

DEEPEST = 100
"""Levels of folders that are scanned at most; the folder of each level stays open meanwhile."""
_ATTEMPTS = 3
_TICK_NS = 100_000_000
"""The longest tick of a file system's clock, with a margin. `_read` recognizes clocks that count whole seconds."""
_SPECIAL: Mapping[int, EntryKind] = {
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class Scan:
    """One scan of a workspace.

    Args:
        objects: the store of contents.
        skip: top-level names to leave out: those of read-only data.
        entries: the entries of the last scan.
        signatures: the files' signatures in the last scan.
        most: the limit of names; None for none.
    """

    def __init__(
        self,
        objects: Objects,
        skip: Collection[str],
        entries: Mapping[str, ManifestEntry],
        signatures: Mapping[str, Signature],
        most: int | None = None,
    ) -> None:
        self.entries: dict[str, ManifestEntry] = {}
        self.signatures: dict[str, Signature] = {}
        self.changed = 0
        """The number of names that are new or changed."""
        self._objects = objects
        self._skip = skip
        self._old_entries = entries
        self._old_signatures = signatures
        self._linked: dict[tuple[int, int], list[str]] = {}
        self._began = objects.now_ns()
        self._most = most

    def look(self, root: int) -> None:
        """Scan everything below an open folder.

        Raises:
            LimitReached: there are more than `most` names.
            StorageFailed: a content could not be written.
        """
        self._folder(root, "", 0)
        for paths in self._linked.values():
            self._hard_links(root, sorted(paths))

    def _folder(self, folder: int, prefix: str, depth: int) -> None:
        # A workspace can have tens of thousands of files, so that the loop does little for an unchanged one.
        old_signatures, entries, signatures = self._old_signatures, self.entries, self.signatures
        with os.scandir(folder) as found:
            for item in found:
                path = prefix + item.name
                if self._most is not None and len(entries) >= self._most:
                    raise LimitReached("limit_storage", f"the workspace holds more than {self._most:,} files")
                if not depth and item.name in self._skip:
                    continue
                try:
                    status = item.stat(follow_symlinks=False)
                except OSError:
                    continue
                mode = status.st_mode
                if stat.S_ISREG(mode) and status.st_nlink == 1:
                    if not is_usable(mode):
                        status = _made_usable(folder, item.name, status)
                        mode = status.st_mode
                    signature = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, mode)
                    if old_signatures.get(path) == signature:
                        entries[path] = self._old_entries[path]
                        signatures[path] = signature
                    else:
                        self._file(folder, item.name, path)
                elif stat.S_ISDIR(mode):
                    self._subfolder(folder, item.name, path, status, depth + 1)
                else:
                    self._other(folder, item.name, path, status)

    def _subfolder(self, folder: int, name: str, path: str, status: os.stat_result, depth: int) -> None:
        note = None
        if depth > DEEPEST:
            note = f"not looked into: more than {DEEPEST} folders deep"
        else:
            try:
                inside = open_folder(name, folder)
                try:
                    status = os.fstat(inside)
                    self._folder(inside, path + "/", depth)
                finally:
                    os.close(inside)
            except OSError as error:
                note = f"unreadable: {error.strerror}"
        self._record(path, ManifestEntry("folder", stat.S_IMODE(status.st_mode), note=note))

    def _other(self, folder: int, name: str, path: str, status: os.stat_result) -> None:
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISREG(status.st_mode):
            self._linked.setdefault((status.st_dev, status.st_ino), []).append(path)
        elif stat.S_ISLNK(status.st_mode):
            try:
                self._record(path, ManifestEntry("link", mode, target=os.readlink(name, dir_fd=folder)))
            except OSError as error:
                self._record(path, ManifestEntry("link", mode, note=f"unreadable: {error.strerror}"))
        else:
            kind = _SPECIAL.get(stat.S_IFMT(status.st_mode), "device")
            number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if kind == "device" else None
            self._record(path, ManifestEntry(kind, mode, note=number))

    def _hard_links(self, root: int, paths: list[str]) -> None:
        """Record a file with several names. If one of them lies outside the workspace, do not read it: it may not be the agent's file."""
        first = paths[0]
        held = [os.dup(root)]
        try:
            *folders, name = first.split("/")
            for part in folders:
                held.append(os.open(part, FOLDER, dir_fd=held[-1]))
            status = os.stat(name, dir_fd=held[-1], follow_symlinks=False)
            if status.st_nlink != len(paths):
                for path in paths:
                    self._record(path, _entry(status, None, "not read: it has another name (a hard link) outside the workspace"))
                return
            if not is_usable(status.st_mode):
                status = _made_usable(held[-1], name, status)
            signature = _signature(status)
            if self._old_signatures.get(first) == signature:
                self.entries[first], self.signatures[first] = self._old_entries[first], signature
            else:
                self._file(held[-1], name, first, links=len(paths))
        except OSError:
            return
        finally:
            for descriptor in held:
                os.close(descriptor)
        if first in self.entries:
            for path in paths[1:]:
                self._record(path, self.entries[first]._replace(target=first))

    def _file(self, folder: int, name: str, path: str, links: int = 1) -> None:
        """Read a file that is new or changed."""
        try:
            descriptor = os.open(name, READ, dir_fd=folder)
        except OSError as error:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError:
                return
            self._record(path, _entry(status, None, f"unreadable: {error.strerror}"))
            return
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == links:
                self._read(descriptor, status, path)
            else:
                # The name was replaced by something else since it was listed.
                self._record(path, _entry(status, None, CHANGED))
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int, status: os.stat_result, path: str) -> None:
        """Read an open file, again if it changes meanwhile."""
        old = self._old_entries.get(path)
        expected = old.digest if old is not None and path not in self._old_signatures else None
        content, note = None, None
        for _ in range(_ATTEMPTS):
            try:
                content, note = self._content(descriptor, status, expected), None
            except Unread as unread:
                note = str(unread)
            before, status = status, os.fstat(descriptor)
            if _signature(before) == _signature(status):
                break
            note = CHANGED
        self._record(path, _entry(status, content, note))
        # A time of whole seconds suggests a clock that counts no finer.
        window = _TICK_NS if status.st_ctime_ns % 10**9 else 21 * _TICK_NS
        if note is None and status.st_ctime_ns < self._began - window:
            self.signatures[path] = _signature(status)

    def _content(self, descriptor: int, status: os.stat_result, expected: str | None) -> Content:
        size = status.st_size
        sparse = status.st_blocks * 512 < size
        if size > IN_MEMORY or (sparse and size > BLOCK):
            return self._objects.put_large(descriptor, size, expected)
        pieces, offset = [], 0
        try:
            # Read up to one byte more than the size, to notice a file that grows.
            while offset <= size and (piece := os.pread(descriptor, size + 1 - offset, offset)):
                pieces.append(piece)
                offset += len(piece)
        except OSError as error:
            raise Unread(f"unreadable: {error.strerror}") from None
        return self._objects.put(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _record(self, path: str, entry: ManifestEntry) -> None:
        self.entries[path] = entry
        if self._old_entries.get(path) != entry:
            self.changed += 1


def _made_usable(folder: int, name: str, status: os.stat_result) -> os.stat_result:
    """Make a file readable for its owner, and return its new status; the old one where it was removed meanwhile."""
    make_usable(name, folder)
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return status


def _signature(status: os.stat_result) -> Signature:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)


def _entry(status: os.stat_result, content: Content | None, note: str | None) -> ManifestEntry:
    size = status.st_size if content is None else content.size
    return ManifestEntry("file", stat.S_IMODE(status.st_mode), size, status.st_mtime_ns, content and content.digest, None, note)
