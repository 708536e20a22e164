"""Make an interactive session: turn a person's files and a sentence into a task, and the agent's changes into a patch.

The person's folder is never written to. Its files are copied into a task's folder: those that the agent may change as the starter, all
others as data, which is read-only to the agent and its scripts. Hidden files are left out, since they may hold keys and histories; so are
caches, links and the log directory.

The patch holds only names that the session may change, and nothing hidden. `git apply` refuses it whole where somebody has changed the same
lines meanwhile, and never writes through a link.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from mlagentbench.errors import StorageFailed, UsageError
from mlagentbench.records import Record
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import Task, load_task
from mlagentbench.task.spec import UNGRADED
from mlagentbench.workspace.paths import CACHES
from mlagentbench.workspace.snapshots.snapshots import Manifest, ManifestEntry, SnapshotStore

SESSIONS, RECORD = "sessions", "session.json"
EVERYTHING = "all"
HIDDEN = ".*"
PATCH_LIMIT = 64 << 20
"""Bytes of a file above which it is not in a patch; `git apply` takes a gigabyte at most."""
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

from mlagentbench import GradingError


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

    @property
    def may_add(self) -> bool:
        """Whether the agent may add top-level files: where it may change every name that there is."""
        return not (self.task.folder / "files").exists()


class Patch(NamedTuple):
    """What a session's run changed, for `git apply`."""

    path: Path | None
    """The patch's file; None if nothing that may be changed has changed."""
    summary: str
    """The changed files, each with how many lines were added and removed."""
    left_out: tuple[str, ...]
    """Changed or added files that are not in the patch: they are not allowed, hidden, no regular files, or larger than `PATCH_LIMIT`."""


def top_level(folder: Path, besides: Path | None = None) -> list[str]:
    """Return the top-level names in a folder that a session copies, sorted, without `besides`.

    Raises:
        UsageError: `folder` is no folder, or cannot be read.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not _is_left_out(Path(entry.path), besides))
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
    task_folder = _new_task_folder(sentence, log_directory / SESSIONS)
    try:
        _copy(folder, task_folder, allowed, log_directory)
        title = re.sub(r"[^\x20-\x7e]", "?", sentence.splitlines()[0])[:100].replace("\\", "\\\\").replace('"', '\\"')
        text = TASK.format(id=task_folder.name, title=f'"{title}"', date=time.strftime("%Y-%m-%d"), metric=UNGRADED)
        (task_folder / "task.toml").write_text(text, encoding="utf-8")
        (task_folder / "problem.md").write_text(f"{sentence}\n", encoding="utf-8", errors="replace")
        (task_folder / "grade.py").write_text(GRADE, encoding="utf-8")
        if (task_folder / "files").exists():
            (task_folder / "prepare.py").write_text(PREPARE, encoding="utf-8")
        record = SessionRecord(folder=str(folder.resolve()) if folder else None, allowed=tuple(allowed))
        (task_folder / RECORD).write_text(record.model_dump_json(), encoding="utf-8")
    except (OSError, shutil.Error) as error:
        shutil.rmtree(task_folder, ignore_errors=True)
        fault = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        raise UsageError(f"the session cannot be made: {fault}") from None
    except BaseException:
        shutil.rmtree(task_folder, ignore_errors=True)
        raise
    return session_of(load_task(task_folder))


def session_of(task: Task) -> InteractiveSession:
    """Return the session that a task was made in; for any other task a session without a folder."""
    try:
        record = SessionRecord.model_validate_json((task.folder / RECORD).read_bytes())
    except (OSError, ValidationError):
        record = SessionRecord(folder=None, allowed=())
    return InteractiveSession(task, Path(record.folder) if record.folder else None, record.allowed)


def write_patch(session: InteractiveSession, directory: RunDirectory) -> Patch:
    """Write the changes of a session's run as a patch into its directory.

    Raises:
        UsageError: git is not installed, or fails.
        StorageFailed: the disk is full, or a snapshot is damaged.
    """
    before, after = (Manifest.load(directory.manifest(step)).entries for step in (0, len(directory.steps())))
    sides = [{path: _content(entry) for path, entry in entries.items() if entry.kind != "folder"} for entries in (before, after)]
    changed = sorted(path for path, _ in sides[0].items() ^ sides[1].items() if not _has_part(path, CACHES))
    allowed = {path for path in changed if all(_is_allowed(session, path, side.get(path)) for side in (before, after))}
    left_out = tuple(dict.fromkeys(path for path in changed if path not in allowed))
    if session.folder is None or not allowed:
        return Patch(None, "", left_out)
    try:
        # git takes the paths in a patch from the top of a repository, even where it runs in a folder below.
        prefix = subprocess.run(["git", "rev-parse", "--show-prefix"], cwd=session.folder, capture_output=True, text=True).stdout.strip(
            "\n"
        )
        with tempfile.TemporaryDirectory(prefix="mlab-patch-") as folder:
            for name, entries in (("a", before), ("b", after)):
                root = Path(folder, name, prefix)
                root.mkdir(parents=True)
                kept = {path: entries[path]._replace(mode=entries[path].mode | 0o600) for path in allowed & entries.keys()}
                SnapshotStore(directory.objects).restore(Manifest(kept), root)
            patch = _git(folder, "diff", "--no-index", "--no-prefix", "--no-renames", "--binary", "a", "b")
            directory.patch.write_bytes(patch)
            return Patch(directory.patch, _git(folder, "apply", "--stat", str(directory.patch)).decode(errors="replace").rstrip(), left_out)
    except FileNotFoundError:
        raise UsageError("git is not installed, which writes the changes as a patch; install it") from None
    except OSError as error:
        raise StorageFailed(f"the patch {directory.patch} cannot be written: {error.strerror}") from error


def _git(folder: str, *arguments: str) -> bytes:
    """Run git without a person's settings, which could change how it writes a patch, and return its output."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}
    done = subprocess.run(["git", *arguments], cwd=folder, env=variables, capture_output=True)
    if done.returncode > 1:  # `git diff --no-index` returns 1 where files differ
        raise UsageError(f"git cannot write the patch: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _content(entry: ManifestEntry) -> tuple[object, ...]:
    """Return what a patch can change of an entry: its kind, its content, and whether it is executable."""
    return entry.kind, entry.digest, entry.target, bool(entry.mode & 0o100)


def _is_allowed(session: InteractiveSession, path: str, entry: ManifestEntry | None) -> bool:
    """Return whether a patch may hold an entry as it was before or after the run."""
    if entry is not None and (entry.kind != "file" or entry.digest is None or entry.size > PATCH_LIMIT):
        return False
    name = path.split("/")[0]
    # A name that is in the folder and was not copied, such as a link, is not the agent's to replace.
    is_new = session.may_add and session.folder is not None and not os.path.lexists(session.folder / name)
    return not _has_part(path, (HIDDEN, *CACHES)) and (name in session.allowed or is_new)


def _has_part(path: str, patterns: Iterable[str]) -> bool:
    """Return whether any name in a path matches a pattern."""
    return any(fnmatch(part, pattern) for part in path.split("/") for pattern in patterns)


def _is_left_out(path: Path, besides: Path | None) -> bool:
    """Return whether a path is left out when a folder is copied."""
    return (
        _has_part(path.name, (HIDDEN, *CACHES))
        or path.is_symlink()
        or not (path.is_dir() or path.is_file())
        or (besides is not None and path.resolve() == besides.resolve())
    )


def _copy(folder: Path | None, task_folder: Path, allowed: Sequence[str], besides: Path) -> None:
    """Copy what the agent may change into `starter`, and all else into `files`."""
    (task_folder / "starter").mkdir()
    if folder is None:
        return

    def ignored(parent: str, names: list[str]) -> list[str]:
        return [name for name in names if _is_left_out(Path(parent, name), besides)]

    for name in top_level(folder, besides):
        target = task_folder / ("starter" if name in allowed else "files") / name
        target.parent.mkdir(exist_ok=True)
        if (folder / name).is_dir():
            shutil.copytree(folder / name, target, ignore=ignored)
        else:
            shutil.copy2(folder / name, target)


def _new_task_folder(sentence: str, sessions: Path) -> Path:
    """Make a new folder for a session, named by the first words of its sentence."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", sentence.casefold()) if not unicodedata.combining(letter))
    words = re.findall(r"[a-z0-9]+", plain)[:WORDS]
    name = "-".join(["session", *words])[:LONGEST].rstrip("-")
    number = 1
    while True:
        task_folder = sessions / (name if number == 1 else f"{name}-{number}")
        try:
            task_folder.mkdir(parents=True)
            return task_folder
        except FileExistsError:
            number += 1
        except OSError as error:
            raise UsageError(f"no session can be kept in {sessions}: {error.strerror}") from None
