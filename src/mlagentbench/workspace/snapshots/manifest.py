"""The manifest of a snapshot: an entry for each name in the workspace, and its format on disk.

A manifest is JSON compressed with zstandard: all entries, or their differences from an earlier manifest in the same folder, so that a step
that changed one file of twenty thousand takes a few hundred bytes. Names that are not UTF-8 are stored as `os.fsdecode` decodes them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import zstandard

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.util.atomic import publish, replace
from mlagentbench.workspace.files import bytes_of

EntryKind = Literal["file", "folder", "link", "fifo", "socket", "device"]
_FORMAT = 1
_LARGEST = 1 << 30
"""Bytes of a decompressed manifest at most; a damaged file may claim any number."""
_MOST_DELTA = 0.25
"""The fraction of entries that may differ for a manifest to be stored as a difference, which needs a second file to be read."""

Signature = tuple[int, ...]
"""Numbers that show without reading it that a file has not changed: times of modification and change, size, inode, mode."""


class ManifestEntry(NamedTuple):
    """What one name of a workspace is."""

    kind: EntryKind
    mode: int
    """Permission bits, as of `stat.S_IMODE`."""
    size: int = 0
    """Bytes of a file; 0 for anything else."""
    mtime_ns: int = 0
    """A file's time of modification, in nanoseconds since 1970. Not part of a manifest's digest."""
    digest: str | None = None
    """The digest of a file's content in the store; None where the content was not stored, for the reason in `note`."""
    target: str | None = None
    """A symbolic link's target, or for a hard link the path of the file's first name."""
    note: str | None = None
    """What is unusual: why it could not be read, that it changed meanwhile, or a device's numbers."""


class _Base:
    """The last full manifest of a run's snapshots. Later ones are stored as differences from it."""

    path: Path | None = None
    check: str = ""
    """The SHA-256 of its bytes."""
    entries: Mapping[str, ManifestEntry] = {}

    def serves(self, path: Path) -> bool:
        """Return whether a manifest at a path can be stored as a difference from it."""
        return self.path is not None and self.path != path and self.path.parent == path.parent and self.path.exists()


@dataclass(frozen=True)
class Manifest:
    """A workspace at one moment: entries by path, relative to the workspace. Two are equal when their entries are."""

    entries: Mapping[str, ManifestEntry]
    _signatures: Mapping[str, Signature] = field(default_factory=dict, repr=False, compare=False)
    _flush: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Flushes the contents to disk; None for a manifest from disk, whose contents are there."""
    _base: _Base = field(default_factory=_Base, repr=False, compare=False)

    @functools.cached_property
    def digest(self) -> str:
        """The digest of the whole workspace: equal for equal names, kinds, modes and contents, whatever the times."""
        state = hashlib.sha256()
        for path in sorted(self.entries):
            kind, mode, size, _, digest, target, note = self.entries[path]
            state.update(json.dumps([path, kind, mode, size, digest, target, note]).encode() + b"\n")
        return state.hexdigest()

    @property
    def digests(self) -> set[str]:
        """The digests of all contents that are stored."""
        return {entry.digest for entry in self.entries.values() if entry.digest is not None}

    @property
    def size(self) -> int:
        """Bytes of all files; a file with several names counts once per name."""
        return sum(entry.size for entry in self.entries.values())

    def select(self, globs: Sequence[str]) -> Manifest:
        """Return a manifest of the paths that match any of some globs, with all that is in matching folders.

        `*` and `?` match within one name, `**/` matches any number of folders, also none.

        Raises:
            UsageError: a glob cannot be read, such as `[z-a]`.
        """
        try:
            pattern = re.compile("|".join(_regex(glob) for glob in globs) or r"(?!)", re.DOTALL)
        except re.error:
            raise UsageError(f"one of these globs cannot be read: {', '.join(globs)}") from None
        return Manifest({path: entry for path, entry in self.entries.items() if pattern.fullmatch(path)}, _flush=self._flush)

    def save(self, path: Path, *, new: bool = False) -> None:
        """Write the manifest to a file, atomically and flushed to disk. The contents that it lists are flushed first.

        With `new`, a file that exists is not replaced.

        Raises:
            OSError: the disk is full or read-only.
            StorageFailed: the store's disk is.
        """
        if self._flush is not None:
            self._flush()
        base = self._base
        changed = {name: entry for name, entry in self.entries.items() if base.entries.get(name) != entry}
        if base.path is not None and base.serves(path) and len(changed) <= _MOST_DELTA * len(self.entries):
            gone = sorted(base.entries.keys() - self.entries.keys())
            _publish(path, {"base": base.path.name, "check": base.check, "set": _rows(changed), "gone": gone}, new)
        else:
            base.check = _publish(path, {"set": _rows(self.entries)}, new)
            base.path, base.entries = path, self.entries

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Read a manifest that was saved.

        Raises:
            RunNotFound: it does not exist, is damaged, or was written by another version of mlagentbench.
        """
        content, check = _read(path)
        base = _Base()
        try:
            entries = {name: ManifestEntry(*row) for name, row in content["set"].items()}
            if "base" not in content:
                base.path, base.check, base.entries = path, check, entries
            else:
                base.path = path.with_name(os.path.basename(content["base"]))
                full, base.check = _read(base.path)
                if base.check != content["check"]:
                    raise _damaged(base.path)
                base.entries = {name: ManifestEntry(*row) for name, row in full["set"].items()}
                entries = {**base.entries, **entries}
                for name in content["gone"]:
                    del entries[name]
        except (KeyError, TypeError, AttributeError):
            raise _damaged(path) from None
        # A scan never makes such entries, but whoever can write here could name files outside a workspace.
        if any(not _is_plain(name) or not _is_entry(entry) for name, entry in entries.items()):
            raise _damaged(path)
        return cls(entries, _base=base)


def _rows(entries: Mapping[str, ManifestEntry]) -> dict[str, list[object]]:
    """Return entries as lists for JSON, without the fields at their ends that are None."""
    rows: dict[str, list[object]] = {}
    for name, entry in entries.items():
        row: list[object] = list(entry)
        while row[-1] is None:
            row.pop()
        rows[name] = row
    return rows


def _publish(path: Path, content: Mapping[str, object], new: bool) -> str:
    """Write a file atomically, flush it to disk, and return the SHA-256 of its bytes."""
    text = json.dumps({"format": _FORMAT, **content}, separators=(",", ":"))
    raw = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(text.encode())
    (publish if new else replace)(path, raw)
    return hashlib.sha256(raw).hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """Read a manifest's file. Returns its JSON, and the SHA-256 of its bytes."""
    try:
        raw = bytes_of(path, _LARGEST)
        if zstandard.frame_content_size(raw) > _LARGEST:
            raise _damaged(path)
        content = json.loads(zstandard.ZstdDecompressor().decompress(raw))
    except FileNotFoundError:
        raise RunNotFound(f"there is no snapshot {path}") from None
    except (zstandard.ZstdError, ValueError, OSError, RecursionError):
        raise _damaged(path) from None
    if not isinstance(content, dict):
        raise _damaged(path)
    if content.get("format") != _FORMAT:
        raise RunNotFound(f"the snapshot {path} was written by another version of mlagentbench")
    return content, hashlib.sha256(raw).hexdigest()


def _damaged(path: Path) -> RunNotFound:
    return RunNotFound(f"the snapshot {path} is damaged; restore it from a backup, or use another step")


def _is_entry(entry: ManifestEntry) -> bool:
    """Return whether the fields of an entry have the right types and ranges."""
    numbers, texts = (entry.mode, entry.size, entry.mtime_ns), (entry.digest, entry.target, entry.note)
    return (
        entry.kind in get_args(EntryKind)
        and all(type(number) is int for number in numbers)
        and 0 <= entry.mode <= 0o7777
        and 0 <= entry.size < 2**63
        and all(text is None or isinstance(text, str) for text in texts)
        and (entry.digest is None or re.fullmatch("t?[0-9a-f]{64}", entry.digest) is not None)
    )


def _is_plain(name: str) -> bool:
    """Return whether a path is relative and has no `..`, `.` or empty part."""
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def _regex(glob: str) -> str:
    """Translate a glob into a regular expression for whole paths."""
    pieces = []
    glob = glob.removeprefix("./").rstrip("/")
    for token in re.findall(r"\*\*/|\*\*|\[!?\]?[^\]]*\]|.", glob, re.DOTALL):
        match token:
            case "**/":
                pieces.append("(?:.*/)?")
            case "**":
                pieces.append(".*")
            case "*":
                pieces.append("[^/]*")
            case "?":
                pieces.append("[^/]")
            case _ if len(token) > 1:
                inner = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
                pieces.append(f"[{'^/' + inner[1:] if inner.startswith('!') else inner}]")
            case _:
                pieces.append(re.escape(token))
    return "".join(pieces) + "(?:/.*)?"
