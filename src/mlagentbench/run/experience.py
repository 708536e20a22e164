"""What a run is given of earlier work: notes, examples, logs of other runs, as read-only data in the folder `experience`.

Each run has a copy of its own, made before its first step, so that it goes on with what it began with, whatever becomes of the folder that
was named, and so that what its scripts open is told apart from what those of other runs do.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import mlagentbench
from mlagentbench.data.cache import cache_directory
from mlagentbench.errors import UsageError
from mlagentbench.records import Experience
from mlagentbench.store.files import storage
from mlagentbench.store.run_directory import RunDirectory
from mlagentbench.tasks.catalogue import Task

EXPERIENCE = "experience"
"""What the folder is called in a workspace."""
MOST_MB = 2048
"""The largest experience, in megabytes (of 2^20 bytes); each run has a copy."""
TOLD = """
The folder {name} of the working directory holds what was learned in earlier work: notes, examples, or the logs of other experiments, in
{files}. It is read-only. Read what may help; it may be wrong, or about something else. What counts is what you run here.
"""


def told(problem: str, experience: Experience | None) -> str:
    """What an agent is told to do, and of what it is given."""
    if experience is None:
        return problem
    files = "1 file" if experience.files == 1 else f"{experience.files:,} files"
    return problem.rstrip("\n") + "\n" + TOLD.format(name=EXPERIENCE, files=files)


def look(folder: Path, task: Task, log_directory: Path) -> Experience:
    """What a folder holds.

    Raises:
        UsageError: it cannot be an experience: it is none, is empty or too large, or holds what an agent must not see.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder} to take experience from")
    real = folder.resolve()
    hidden = {
        "the task's own files": task.folder,
        "this package's own files": Path(mlagentbench.__file__).parent,
        "the cache of prepared data": cache_directory(),
    }
    for what, place in hidden.items():
        if real.is_relative_to(place.resolve()) or place.resolve().is_relative_to(real):
            raise UsageError(f"{folder} cannot be experience: it holds {what}, and with them the answers")
    if log_directory.resolve().is_relative_to(real):
        raise UsageError(f"{folder} cannot be experience: this run would be in it; name runs in it, or another --log-dir")
    if (task.starter / EXPERIENCE).exists():
        raise UsageError(f"the starter of {task.id} has a folder {EXPERIENCE} of its own, so that no experience can be given")
    try:
        return _facts(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be experience: {error.filename or folder}: {error.strerror}") from None


def bring(directory: RunDirectory, experience: Experience) -> None:
    """Give a run its copy, unless it has it. Links and special files are left out.

    Raises:
        UsageError: the folder is not as it was when the run was made.
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
            # What has gone meanwhile is missed when the copy is compared as a whole.
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(folder / path, copy, follow_symlinks=False)
        if not folder.is_dir() or _facts(begun, str(folder)) != experience:
            shutil.rmtree(begun)
            raise UsageError(f"the experience in {folder} has changed since the run was made; begin a new one")
        begun.rename(directory.experience)


def _facts(folder: Path, name: str | None = None) -> Experience:
    """A folder's files, counted, weighed and digested.

    Raises:
        UsageError: there are none, or they are too large.
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
    """The regular files below a folder, relative to it, sorted."""
    found: list[Path] = []
    for place, _, names in os.walk(folder):
        found += (Path(place, name) for name in names)
    return (path.relative_to(folder) for path in sorted(found) if path.is_file() and not path.is_symlink())
