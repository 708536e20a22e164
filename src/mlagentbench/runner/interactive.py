"""Make an interactive session: turn a person's files and a sentence into a task, and write the allowed changes back.

The person's folder is not touched while the agent works. Its files are copied into a task's folder: those that the agent may change as the
starter, all others as data, which is read-only to the agent and its scripts. Hidden files are left out, since they may hold keys and
histories; so are caches, links and the log directory.

Only files that the session may change, or has added, are written back, unless somebody has changed them meanwhile. Nothing is written
through a link or under a hidden name.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from mlagentbench.errors import ActionError, UsageError
from mlagentbench.records import Record
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import Task, load_task
from mlagentbench.task.spec import UNGRADED
from mlagentbench.workspace.paths import CACHES, Workspace
from mlagentbench.workspace.snapshots.snapshots import FileChange, Manifest, SnapshotStore

SESSIONS, RECORD = "sessions", "session.json"
EVERYTHING = "all"
WORDS, LONGEST = 5, 40
"""The most words of the sentence in a session's name, and the most characters of the name."""

TASK = """\
id = "{id}"
title = {title}
category = "interactive session"
modality = "files"
published = {date}

# Nothing is submitted and nothing is graded. To change that, name a metric and the files here, and write grade.py (docs/adding-a-task.md).
[metric]
name = "{metric}"
direction = "maximize"

[submission]
mode = "file"
files = []
required = []
"""
GRADE = '''\
"""A session is not graded."""

from mlagentbench.errors import GradingError


def grade(context):
    raise GradingError("a session is not graded; its folder's grade.py can be written")
'''
PREPARE = '''\
"""What the agent may read and not change."""

import shutil
from pathlib import Path

FILES = Path(__file__).parent / "files"


def full(public, private):
    shutil.copytree(FILES, public, dirs_exist_ok=True)


def mini(public, private, seed):
    full(public, private)
'''


class SessionRecord(Record):
    """The record `session.json`: the folder that a session was made from."""

    folder: str | None
    """The person's folder; None for a session without files."""
    allowed: tuple[str, ...]
    """The top-level names that the agent may change."""


class InteractiveSession(NamedTuple):
    """A session: its task, the person's folder (None without files), and the top-level names that may be changed."""

    task: Task
    folder: Path | None
    allowed: tuple[str, ...]


class WrittenBack(NamedTuple):
    """The paths that were written back, and the changes that were not."""

    written: tuple[str, ...]
    refused: tuple[str, ...]
    """The changes that were not written: a line each, with the reason."""


def top_level(folder: Path, besides: Path | None = None) -> list[str]:
    """Return the top-level names in a folder that a session copies, sorted.

    Args:
        folder: the person's folder.
        besides: a folder to leave out, such as the log directory.

    Raises:
        UsageError: `folder` is no folder, or cannot be read.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not _stays(Path(entry.path), besides))
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be read: {error.strerror}") from None
    return names


def allowed_names(folder: Path | None, asked: Sequence[str], besides: Path | None = None) -> tuple[str, ...]:
    """Return the top-level names that the agent may change.

    Args:
        folder: the person's folder; None for none.
        asked: the names as the person wrote them, or `all`.
        besides: a folder to leave out, such as the log directory.

    Raises:
        UsageError: there is no such name, or it is no top-level one.
    """
    there = top_level(folder, besides) if folder else []
    wanted = [name.rstrip("/").removeprefix("./") for name in asked]
    if EVERYTHING in wanted and EVERYTHING not in there:
        return tuple(there)
    for name in wanted:
        first = name.split("/")[0]
        if first != name and first in there:
            raise UsageError(f"{name} lies in {first}, which is changed as a whole or not at all; allow {first}")
        if name not in there:
            raise UsageError(f"there is no {name!r} in {folder or 'a session without a folder'} that could be allowed")
    return tuple(name for name in there if name in wanted)


def make_session(sentence: str, folder: Path | None, allowed: Sequence[str], log_directory: Path) -> InteractiveSession:
    """Make a task's folder from a sentence and a person's files.

    Args:
        sentence: what the agent is to do.
        folder: the person's folder; None for no files.
        allowed: the top-level names that the agent may change, as `allowed_names` returns them.
        log_directory: where runs are stored; the session is made in its folder `sessions`.

    Raises:
        UsageError: the sentence is empty, or a file cannot be read.
    """
    sentence = sentence.strip()
    if not sentence:
        raise UsageError("a session needs a task: say in a sentence what is to be done, with --say or when asked")
    place = _new_place(sentence, log_directory / SESSIONS)
    try:
        _copy(folder, place, allowed, log_directory)
        title = re.sub(r"[^\x20-\x7e]", "?", sentence.splitlines()[0])[:100].replace("\\", "\\\\").replace('"', '\\"')
        text = TASK.format(id=place.name, title=f'"{title}"', date=time.strftime("%Y-%m-%d"), metric=UNGRADED)
        (place / "task.toml").write_text(text, encoding="utf-8")
        (place / "problem.md").write_text(f"{sentence}\n", encoding="utf-8", errors="replace")
        (place / "grade.py").write_text(GRADE, encoding="utf-8")
        if (place / "files").exists():
            (place / "prepare.py").write_text(PREPARE, encoding="utf-8")
        record = SessionRecord(folder=str(folder.resolve()) if folder else None, allowed=tuple(allowed))
        (place / RECORD).write_text(record.model_dump_json(), encoding="utf-8")
    except (OSError, shutil.Error) as error:
        shutil.rmtree(place, ignore_errors=True)
        fault = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        raise UsageError(f"the session cannot be made: {fault}") from None
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return session_of(load_task(place))


def session_of(task: Task) -> InteractiveSession:
    """Return the session that a task was made in; for any other task a session without a folder, so that nothing is written back."""
    try:
        record = SessionRecord.model_validate_json((task.folder / RECORD).read_bytes())
    except (OSError, ValidationError):
        record = SessionRecord(folder=None, allowed=())
    return InteractiveSession(task, Path(record.folder) if record.folder else None, record.allowed)


def changes(session: InteractiveSession, directory: RunDirectory) -> list[FileChange]:
    """Return the changes of a session's run that may be written back: to allowed files, and files that the run added."""
    if session.folder is None or not session.allowed:
        return []
    before, after = _ends(directory)
    found = SnapshotStore(directory.objects).diff(before, after)
    return [change for change in found if _is_offered(session, change.path, before, after)]


def write_back(session: InteractiveSession, directory: RunDirectory, offered: Sequence[FileChange]) -> WrittenBack:
    """Write changes into the person's folder, but for files that have been changed there meanwhile.

    Raises:
        StorageFailed: the disk is full or read-only.
    """
    assert session.folder is not None
    before, after = _ends(directory)
    store, own = SnapshotStore(directory.objects), Workspace(session.folder)
    written, refused = [], []
    for change in offered:
        path = change.path
        try:
            kind = own.kind(path)
            expected = store.read_bytes(before, path) if path in before.entries else None
            if (own.read_bytes(path) if kind == "file" else None) != expected or kind not in ("file", None):
                refused.append(f"{path} has been changed in {session.folder} meanwhile")
                continue
            if change.change == "removed":
                own.remove(path)
            else:
                own.write_bytes(path, store.read_bytes(after, path))
            written.append(path)
        except (ActionError, UsageError) as error:
            refused.append(str(error))
    return WrittenBack(tuple(written), tuple(refused))


def _ends(directory: RunDirectory) -> tuple[Manifest, Manifest]:
    last = len(directory.steps())
    return Manifest.load(directory.manifest(0)), Manifest.load(directory.manifest(last))


def _is_offered(session: InteractiveSession, path: str, before: Manifest, after: Manifest) -> bool:
    assert session.folder is not None
    parts = path.split("/")
    if any(_is_left_behind(part) for part in parts):
        return False
    entries = [manifest.entries[path] for manifest in (before, after) if path in manifest.entries]
    if any(entry.kind != "file" or entry.digest is None for entry in entries):
        return False
    # A name that is in the folder and was not copied, such as a link, must not be overwritten.
    return parts[0] in session.allowed or not os.path.lexists(session.folder / parts[0])


def _is_left_behind(name: str) -> bool:
    return name.startswith(".") or any(fnmatch(name, pattern) for pattern in CACHES)


def _stays(path: Path, besides: Path | None) -> bool:
    """Return whether a path is left out when a folder is copied."""
    return (
        _is_left_behind(path.name)
        or path.is_symlink()
        or not (path.is_dir() or path.is_file())
        or (besides is not None and path.resolve() == besides.resolve())
    )


def _copy(folder: Path | None, place: Path, allowed: Sequence[str], besides: Path) -> None:
    """Copy what the agent may change into `starter`, and all else into `files`."""
    (place / "starter").mkdir()
    if folder is None:
        return

    def ignored(parent: str, names: list[str]) -> list[str]:
        return [name for name in names if _stays(Path(parent, name), besides)]

    for name in top_level(folder, besides):
        target = place / ("starter" if name in allowed else "files") / name
        target.parent.mkdir(exist_ok=True)
        if (folder / name).is_dir():
            shutil.copytree(folder / name, target, ignore=ignored)
        else:
            shutil.copy2(folder / name, target)


def _new_place(sentence: str, sessions: Path) -> Path:
    """Make a new folder for a session, named by the first words of its sentence."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", sentence.casefold()) if not unicodedata.combining(letter))
    words = re.findall(r"[a-z0-9]+", plain)[:WORDS]
    name = "-".join(["session", *words])[:LONGEST].rstrip("-")
    number = 1
    while True:
        place = sessions / (name if number == 1 else f"{name}-{number}")
        try:
            place.mkdir(parents=True)
            return place
        except FileExistsError:
            number += 1
        except OSError as error:
            raise UsageError(f"no session can be kept in {sessions}: {error.strerror}") from None
