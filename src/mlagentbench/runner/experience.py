"""Give a run earlier work to read (`--experience`): notes, examples or logs of other runs, read-only in the folder `experience`.

Each run has a copy of its own, made before its first step. So a resumed run finds what it began with even if the user's folder has changed,
and the files that its scripts open are known from those that other runs' scripts open.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from mlagentbench.data.cache import cache_directory
from mlagentbench.errors import UsageError
from mlagentbench.records import Experience
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import storage
from mlagentbench.task.catalogue import Task

EXPERIENCE = "experience"
"""The folder's name in a workspace."""
MOST_MB = 2048
"""The most that an experience may hold, in megabytes (2^20 bytes); each run has a copy."""
NOTICE = """
The folder {name} of the working directory holds what was learned in earlier work: notes, examples, or the logs of other experiments, in
{files}. It is read-only. Read what may help; it may be wrong, or about something else. What counts is what you run here.
"""


def describe(problem: str, experience: Experience | None) -> str:
    """Return the task description for an agent, with a paragraph on its experience if it has any."""
    if experience is None:
        return problem
    files = "1 file" if experience.files == 1 else f"{experience.files:,} files"
    return problem.rstrip("\n") + "\n" + NOTICE.format(name=EXPERIENCE, files=files)


def check_experience(folder: Path, task: Task, log_directory: Path) -> Experience:
    """Check that a folder can be given as experience, and return its size and digest.

    Raises:
        UsageError: it is no folder, is empty or too large, or holds what an agent must not see; or the starter has a folder `experience`.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder} to take experience from")
    real = folder.resolve()
    hidden = {
        "the task's own files": task.folder,
        "this package's own files": Path(__file__).parents[1],
        "the cache of prepared data": cache_directory(),
    }
    for what, path in hidden.items():
        if real.is_relative_to(path.resolve()) or path.resolve().is_relative_to(real):
            raise UsageError(f"{folder} cannot be experience: it holds {what}, and with them the answers")
    if log_directory.resolve().is_relative_to(real):
        raise UsageError(f"{folder} cannot be experience: this run would be in it; name runs in it, or another --log-dir")
    if (task.starter / EXPERIENCE).exists():
        raise UsageError(f"the starter of {task.id} has a folder {EXPERIENCE} of its own, so that no experience can be given")
    try:
        return _facts(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be experience: {error.filename or folder}: {error.strerror}") from None


def copy_experience(directory: RunDirectory, experience: Experience) -> None:
    """Copy the experience into the run's directory, unless it is there. Links and special files are left out.

    Raises:
        UsageError: the folder has changed since the run was made.
        StorageFailed: the disk is full or read-only.
    """
    if directory.experience.exists():
        return
    folder, begun = Path(experience.folder), directory.path / f".{EXPERIENCE}"
    with storage(directory.path):
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir()
        for path in _files(folder):
            copy = begun / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            # A file that has just been deleted is noticed below, where the copy's digest is compared.
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(folder / path, copy, follow_symlinks=False)
        if not folder.is_dir() or _facts(begun, str(folder)) != experience:
            shutil.rmtree(begun)
            raise UsageError(f"the experience in {folder} has changed since the run was made; begin a new one")
        begun.rename(directory.experience)


def is_unchanged(directory: RunDirectory, experience: Experience) -> bool:
    """Return whether the copy of the experience in a run's directory is the experience that the run was given."""
    try:
        return _facts(directory.experience, experience.folder) == experience
    except (OSError, UsageError):
        return False


def _facts(folder: Path, name: str | None = None) -> Experience:
    """Return the number, size and digest of a folder's files.

    Raises:
        UsageError: there are no files, or they are too large.
    """
    paths = list(_files(folder))
    size = sum((folder / path).lstat().st_size for path in paths)
    if not paths:
        raise UsageError(f"{folder} holds no files, so there is no experience in it")
    if size > MOST_MB << 20:
        raise UsageError(f"{folder} holds {size >> 20:,} MB, and an experience at most {MOST_MB:,}; name a part of it")
    whole = hashlib.sha256()
    for path in paths:
        with open(os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{len(os.fsencode(path))} {content} ".encode() + os.fsencode(path))
    return Experience(folder=name or str(folder.resolve()), files=len(paths), bytes=size, digest=whole.hexdigest())


def _files(folder: Path) -> Iterator[Path]:
    """Yield the paths of the regular files below a folder, relative to it, sorted."""
    found: list[Path] = []
    for parent, _, names in os.walk(folder):
        found += (Path(parent, name) for name in names)
    return (path.relative_to(folder) for path in sorted(found) if path.is_file() and not path.is_symlink())
