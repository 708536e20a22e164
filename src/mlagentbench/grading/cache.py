"""Cache gradings, so that equal submissions are graded once, whichever run they come from.

There is one file for each distinct submission, in `gradings/` of the log directory. Its name is a digest of the submission's content and of
everything else that the score depends on: the task's files and its data. Gradings that time something and gradings that failed are never
cached.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from mlagentbench.data.prepare import digest_in
from mlagentbench.grading.grade import Graded
from mlagentbench.task.catalogue import Task
from mlagentbench.util.atomic import replace


class Gradings:
    """The cached gradings of one task's variant.

    Args:
        folder: the cache; it is made when the first grading is stored.
        task: the task.
        private: the folder of its answers, in the folder that is named after the data.
        again: ignore what is cached, and replace it.
    """

    def __init__(self, folder: Path, task: Task, private: Path, *, again: bool = False) -> None:
        self._folder = folder
        self._again = again
        self._keeps = task.spec.submission.mode != "code"
        self._facts = [task_digest(task), private.parent.name, digest_in(private.parent)]

    def get(self, submission: str) -> Graded | None:
        """Return the cached grading of a submission, given its digest; None if there is none."""
        if self._again or not self._keeps:
            return None
        try:
            return Graded.model_validate_json(self._path(submission).read_bytes())
        except (OSError, ValidationError):
            return None

    def put(self, submission: str, graded: Graded) -> None:
        """Store a grading. A file that is lost or torn only costs a second grading, so nothing is synced to disk and errors are ignored."""
        if not self._keeps or graded.failed:
            return
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            replace(self._path(submission), graded.model_dump_json(), durable=False)

    def _path(self, submission: str) -> Path:
        return self._folder / f"{hashlib.sha256(json.dumps([submission, *self._facts]).encode()).hexdigest()[:32]}.json"


def task_digest(task: Task) -> str:
    """Return a SHA-256 digest, in hex, of all files in a task's folder but `__pycache__`, and of what is said of it elsewhere."""
    digest = hashlib.sha256()
    if task.path != task.folder:
        digest.update(f"{task.spec.model_dump_json()}\0{task.problem}\0".encode())
    for path in sorted(task.folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(task.folder)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()
