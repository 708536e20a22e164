"""Find what changed between two snapshots."""

from __future__ import annotations

import difflib
from typing import Literal, NamedTuple

from mlagentbench.workspace.folder_files import printable
from mlagentbench.workspace.snapshots.manifest import Manifest, ManifestEntry
from mlagentbench.workspace.snapshots.objects import Objects
from mlagentbench.workspace.snapshots.restore import read_content

TEXT_LIMIT = 256 << 10
"""Bytes of a file whose change is shown as a text diff; a larger one is only listed. `LINES_LIMIT` does the same by lines."""
LINES_LIMIT = 5000


class FileChange(NamedTuple):
    """One name that was added, removed or changed."""

    path: str
    change: Literal["added", "removed", "changed"]
    text: str | None
    """A unified diff; None where a file is not text or too long."""
    size_before: int | None
    """Bytes; None where there was no file."""
    size_after: int | None


def diff(objects: Objects, before: Manifest, after: Manifest) -> list[FileChange]:
    """Return the changes from one snapshot to another, sorted by path. A change of times alone is left out."""
    changes = []
    for path in sorted(before.entries.keys() | after.entries.keys()):
        old, new = before.entries.get(path), after.entries.get(path)
        if old is not None and new is not None and old._replace(mtime_ns=0) == new._replace(mtime_ns=0):
            continue
        change: Literal["added", "removed", "changed"] = "added" if old is None else "removed" if new is None else "changed"
        changes.append(FileChange(path, change, _text(objects, path, old, new), _size(old), _size(new)))
    return changes


def _size(entry: ManifestEntry | None) -> int | None:
    return entry.size if entry is not None and entry.kind == "file" else None


def _text(objects: Objects, path: str, old: ManifestEntry | None, new: ManifestEntry | None) -> str | None:
    before, after = _lines(objects, old), _lines(objects, new)
    if before is None or after is None:
        return None
    names = ("/dev/null" if old is None else f"a/{printable(path)}", "/dev/null" if new is None else f"b/{printable(path)}")
    head = f"mode {old.mode:o} -> {new.mode:o}\n" if old is not None and new is not None and old.mode != new.mode else ""
    lines = difflib.unified_diff(before, after, *names)
    return head + "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(objects: Objects, entry: ManifestEntry | None) -> list[str] | None:
    """Return the lines to compare: those of a text, or one line that describes anything else; None for a file that is not shown."""
    if entry is None:
        return []
    if entry.kind != "file":
        return [f"{entry.kind} {entry.target or entry.note or ''}".rstrip() + "\n"]
    if entry.digest is None or entry.size > TEXT_LIMIT:
        return None
    content = read_content(objects, entry)
    if b"\0" in content:
        return None
    try:
        lines = content.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None
    return lines if len(lines) <= LINES_LIMIT else None
