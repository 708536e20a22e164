"""Gradings that were done before: a submission that was seen is not graded twice, whoever left it.

One file a distinct submission, in `gradings/` of the log directory, named by the submission's content and by everything else that its score
depends on: the task's files and its data. A grading that times something is never kept, nor one that failed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path

from pydantic import ValidationError

from mlagentbench.grading.grade import Graded
from mlagentbench.tasks.catalogue import Task


class Gradings:
    """The kept gradings of one task's variant.

    Args:
        folder: where they lie; it is made when one is kept.
        task: the task.
        private: the folder of its answers; None for a task without data.
        again: keep anew, and know of none that are there.
    """

    def __init__(self, folder: Path, task: Task, private: Path | None, *, again: bool = False) -> None:
        self._folder = folder
        self._again = again
        self._keeps = task.spec.submission.mode != "code"
        self._facts = [task_digest(task), str(private.parent.name) if private else None]

    def get(self, submission: str) -> Graded | None:
        """What a submission was worth, by its digest; None where that is not known."""
        if self._again or not self._keeps:
            return None
        try:
            return Graded.model_validate_json(self._path(submission).read_bytes())
        except (OSError, ValidationError):
            return None

    def put(self, submission: str, graded: Graded) -> None:
        """Keep what a submission is worth. A cache: where it is not written, or torn, only time is lost, so nothing waits for the disk."""
        if not self._keeps or graded.failed:
            return
        path = self._path(submission)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}")
        try:
            self._folder.mkdir(exist_ok=True)
            temporary.write_text(graded.model_dump_json())
            temporary.rename(path)
        except OSError:
            return

    def _path(self, submission: str) -> Path:
        return self._folder / f"{hashlib.sha256(json.dumps([submission, *self._facts]).encode()).hexdigest()[:32]}.json"


def task_digest(task: Task) -> str:
    """Of all files of a task's folder."""
    digest = hashlib.sha256()
    for path in sorted(task.folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(task.folder)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()
