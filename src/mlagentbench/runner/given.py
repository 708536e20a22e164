"""Give a run something to read beside its task: earlier work, solved examples, or documents to search.

- Experience (`--experience`) is read-only in the workspace's folder `experience`: notes, examples or logs of other runs.
- Examples (`--examples`) stand in the task's description, so that every agent's prompt holds them.
- Documents (`--documents`) are searched by an action (`actions/documents.py`), and need not be in the workspace.

Each run has a copy of its own, made before its first step. So a resumed run finds what it began with even if the user's folder has changed,
and the files that its scripts open are known from those that other runs' scripts open.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mlagentbench.actions.fences import fenced
from mlagentbench.agents.summaries import action_line, thought
from mlagentbench.data.cache import cache_directory
from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.run_spec import Example, GivenFolder, RunInfo
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import storage
from mlagentbench.task.catalogue import Task
from mlagentbench.util.text import shortened

EXPERIENCE = "experience"
"""The folder's name in a workspace."""
OWN = "task:"
"""How the name of a folder of the task's own data begins, where documents are named."""
OPEN = Path(__file__).parents[1] / "experiments" / "studies"
"""The part of this package that holds nothing of tasks."""
MOST_MB = {EXPERIENCE: 2048, "documents": 64}
"""The most that a folder may hold, in megabytes (2^20 bytes): each run has a copy, and documents are indexed in memory."""
MOST_EXAMPLE = 100_000
"""The most characters of an example, which stands in every prompt."""
LONGEST_OBSERVATION = 2000
"""The most characters of each observation of a run that serves as an example."""
NOTICE = """
The folder {name} of the working directory holds what was learned in earlier work: notes, examples, or the logs of other experiments, in
{files}. It is read-only. Read what may help; it may be wrong, or about something else. What counts is what you run here.
"""
EXAMPLES_NOTICE = """
Here {are} of how other tasks were done. They show how to work; their numbers and files are not those of this task.
"""
DOCUMENTS_NOTICE = """
There are documents that may help. Search Documents finds passages in them by their words; they may be wrong, or about something else.
"""


class Given(NamedTuple):
    """What a run is given to read, checked."""

    experience: GivenFolder | None = None
    examples: tuple[Example, ...] = ()
    texts: tuple[str, ...] = ()
    """The texts of the examples."""
    documents: GivenFolder | None = None
    searches: bool = False
    """Whether there are documents, of the run's own or of its task."""


def describe(problem: str, given: Given) -> str:
    """Return the task description for an agent, with a paragraph on everything that the run is given."""
    parts = [problem.rstrip("\n") + "\n"] if given != Given() else [problem]
    if given.experience is not None:
        count = given.experience.files
        parts.append(NOTICE.format(name=EXPERIENCE, files="1 file" if count == 1 else f"{count:,} files"))
    if given.searches:
        parts.append(DOCUMENTS_NOTICE)
    if given.texts:
        count = len(given.texts)
        parts.append(EXAMPLES_NOTICE.format(are="is an example" if count == 1 else f"are {count} examples"))
        parts += [f"\nExample {number}:\n{fenced(text)}\n" for number, text in enumerate(given.texts, start=1)]
    return "".join(parts)


def check_given(experience: Path | None, examples: Sequence[Path], documents: str | None, task: Task, log_directory: Path) -> Given:
    """Check what a run is to be given, and return it.

    Raises:
        UsageError: something is missing, empty or too large, or holds what an agent must not see.
    """
    texts = tuple(example_text(path, task) for path in examples)
    own = documents is None or documents.startswith(OWN)
    return Given(
        experience=check_experience(experience, task, log_directory) if experience else None,
        examples=tuple(
            Example(path=str(path.resolve()), digest=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
            for path, text in zip(examples, texts, strict=True)
        ),
        texts=texts,
        documents=None if own else check_folder(Path(documents or ""), "documents", task, log_directory),
        searches=documents is not None,
    )


def check_experience(folder: Path, task: Task, log_directory: Path) -> GivenFolder:
    """Check that a folder can be given as experience, and return its size and digest.

    Raises:
        UsageError: as in `check_folder`; or the starter has a folder `experience`.
    """
    if (task.starter / EXPERIENCE).exists():
        raise UsageError(f"the starter of {task.id} has a folder {EXPERIENCE} of its own, so that no experience can be given")
    return check_folder(folder, EXPERIENCE, task, log_directory)


def check_folder(folder: Path, what: str, task: Task, log_directory: Path) -> GivenFolder:
    """Check that a folder can be given to a run as `experience` or `documents`, and return its size and digest.

    Raises:
        UsageError: it is no folder, is empty or too large, or holds what an agent must not see.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder} to take {what} from")
    _check_hides_nothing(folder, what, task)
    if log_directory.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{folder} cannot be {what}: this run would be in it; name runs in it, or another --log-dir")
    try:
        return _facts(folder, what)
    except OSError as error:
        raise UsageError(f"{folder} cannot be {what}: {error.filename or folder}: {error.strerror}") from None


def example_text(path: Path, task: Task) -> str:
    """Return an example as it stands in prompts: a text file's content, or the steps of a run.

    Raises:
        UsageError: there is no such file or run, it is empty, too long or no text, or it holds what an agent must not see.
    """
    _check_hides_nothing(path, "an example", task)
    try:
        text = _steps_text(RunDirectory(path)) if path.is_dir() else path.read_text(encoding="utf-8")
    except (OSError, RunNotFound, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is neither a text file nor the directory of a run"
        raise UsageError(f"{path} cannot be an example: {reason}") from None
    if not text.strip():
        raise UsageError(f"{path} cannot be an example: it is empty")
    if len(text) > MOST_EXAMPLE:
        raise UsageError(f"{path} has {len(text):,} characters, and an example at most {MOST_EXAMPLE:,}; give a part of it")
    return text


def own_documents(documents: str | None, public: Mapping[str, Path], task: Task) -> Path | None:
    """Return the folder of the task's own data that `documents` names; None if it names none.

    Raises:
        UsageError: the task's data has no such folder.
    """
    if documents is None or not documents.startswith(OWN):
        return None
    folder = public.get(documents.removeprefix(OWN))
    if folder is None or not folder.is_dir():
        folders = ", ".join(f"{OWN}{name}" for name, path in public.items() if path.is_dir()) or "none"
        raise UsageError(f"the data of {task.id} has no folder for --documents {documents}; its folders are: {folders}")
    return folder


def copy_given(target: Path, given: GivenFolder) -> None:
    """Copy a folder into the run's directory, unless it is there. Links and special files are left out.

    Raises:
        UsageError: the folder has changed since the run was made.
        StorageFailed: the disk is full or read-only.
    """
    if target.exists():
        return
    folder, begun = Path(given.folder), target.with_name(f".{target.name}")
    with storage(target.parent):
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir()
        for path in _files(folder):
            copy = begun / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            # A file that has just been deleted is noticed below, where the copy's digest is compared.
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(folder / path, copy, follow_symlinks=False)
        if not folder.is_dir() or _facts(begun, target.name).digest != given.digest:
            shutil.rmtree(begun)
            raise UsageError(f"the {target.name} in {folder} has changed since the run was made; begin a new one")
        begun.rename(target)


def is_unchanged(copy: Path, given: GivenFolder) -> bool:
    """Return whether the copy of a folder in a run's directory is what the run was given."""
    try:
        return _facts(copy, copy.name).digest == given.digest
    except (OSError, UsageError):
        return False


def _check_hides_nothing(path: Path, what: str, task: Task) -> None:
    """Raise UsageError if a path holds, or lies in, what an agent must not see."""
    real = path.resolve()
    if real.is_relative_to(OPEN):
        return
    hidden = {
        "the task's own files": task.folder,
        "this package's own files": Path(__file__).parents[1],
        "the cache of prepared data": cache_directory(),
    }
    for holds, place in hidden.items():
        if real.is_relative_to(place.resolve()) or place.resolve().is_relative_to(real):
            raise UsageError(f"{path} cannot be {what}: it holds {holds}, and with them the answers")


def _steps_text(run: RunDirectory) -> str:
    """Return the steps of a run as an example: what was thought and done, and what came of it."""
    parts = [f"The task:\n{run.info.description.strip()}\n"]
    for step in run.steps():
        if step.counted:
            said, seen = thought(step), shortened(step.observation, LONGEST_OBSERVATION)
            parts.append(f"Thought: {said}\nAction: {action_line(step)}\nObservation:\n{seen}\n")
    return "\n".join(parts)


def _facts(folder: Path, what: str) -> GivenFolder:
    """Return the number, size and digest of a folder's files, and the tasks of the runs in it.

    Raises:
        UsageError: there are no files, or they are too large.
    """
    paths = list(_files(folder))
    size = sum((folder / path).lstat().st_size for path in paths)
    if not paths:
        raise UsageError(f"{folder} holds no files, so there is no {what} in it")
    if size > MOST_MB[what] << 20:
        raise UsageError(f"{folder} holds {size >> 20:,} MB, and {what} at most {MOST_MB[what]:,}; name a part of it")
    whole = hashlib.sha256()
    runs = []
    for path in paths:
        with open(os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{len(os.fsencode(path))} {content} ".encode() + os.fsencode(path))
        if path.name == "run.json" and len(path.parts) <= 2:  # a run, or a log directory's run
            with contextlib.suppress(ValueError):
                runs.append(RunInfo.model_validate(json.loads((folder / path).read_bytes())))
    return GivenFolder(
        folder=str(folder.resolve()),
        files=len(paths),
        bytes=size,
        digest=whole.hexdigest(),
        tasks=tuple(sorted({run.spec.task for run in runs})),
        domains=tuple(sorted({run.domain for run in runs if run.domain})),
    )


def _files(folder: Path) -> Iterator[Path]:
    """Yield the paths of the regular files below a folder, relative to it, sorted."""
    found: list[Path] = []
    for parent, _, names in os.walk(folder):
        found += (Path(parent, name) for name in names)
    return (path.relative_to(folder) for path in sorted(found) if path.is_file() and not path.is_symlink())
