"""Check from its snapshot whether a submission can be graded, before its files are restored.

A snapshot has no content for pipes, sockets, devices and unreadable files. They would be missing once restored, and the run would seem to
have submitted nothing. `grading/reader.py` checks the files that a grader then reads.
"""

from __future__ import annotations

from mlagentbench.grading.reader import MAX_FILES
from mlagentbench.task.spec import TaskSpec
from mlagentbench.util.text import one_line
from mlagentbench.workspace.snapshots.snapshots import Manifest, ManifestEntry

LARGEST = 8 * 2**30
"""The most bytes of a submission's files together, holes included; a larger submission is not restored. No task reads as much as 1 GB."""

_KINDS = {"fifo": "a named pipe", "socket": "a socket", "device": "a device", "link": "a link", "folder": "a folder"}


def unusable(spec: TaskSpec, submission: Manifest) -> str | None:
    """Return why a submission cannot be graded, for a person to act on.

    None for all others, including those that lack a required file: they are no submission at all.
    """
    entries = submission.entries
    for name in spec.submission.required:
        parts = name.split("/")
        for count in range(1, len(parts) + 1):
            path = "/".join(parts[:count])
            entry = entries.get(path)
            if entry is not None and (reason := _wrong(entry, folder=count < len(parts))):
                return f"{path} {reason}"
    files = {path: entry for path, entry in entries.items() if entry.kind == "file"}
    if len(entries) > MAX_FILES:
        return f"there are {len(entries):,} files and folders; leave no more than {MAX_FILES:,}"
    if sum(entry.size for entry in files.values()) > LARGEST:
        path, entry = max(files.items(), key=lambda item: item[1].size)
        return one_line(f"its files are larger than {LARGEST >> 20:,} MB together, {path} has {entry.size >> 20:,} MB; leave less")
    return None


def _wrong(entry: ManifestEntry, *, folder: bool) -> str:
    """Return what is wrong with a path that should be a folder or a regular file; empty for nothing."""
    wanted = "a folder" if folder else "a regular file"
    if entry.kind != ("folder" if folder else "file"):
        return f"is {_KINDS.get(entry.kind, 'a file')}; leave {wanted}"
    if entry.note:
        why = entry.note.removeprefix("unreadable: ").removeprefix("not read: ")
        return f"cannot be read ({why}); leave {wanted} of your own that can be"
    return ""
