"""Mini data prepared and submissions graded in the test's own process, for tests that try many."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.grading.baseline import write_files
from mlagentbench.grading.context import GradingContext
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.records import Score
from mlagentbench.sandbox.plain import PlainSandbox
from mlagentbench.task.catalogue import Task
from mlagentbench.task.proofs import Files, table_text


def folders(root: Path) -> Prepared:
    """Two empty folders to prepare into."""
    return Prepared.empty(root)


def mini(task: Task, root: Path, seed: int = 0) -> Prepared:
    """A task's mini data, prepared below a folder."""
    data = folders(root)
    prepare = task.module("prepare")
    assert prepare is not None
    prepare.mini(data.public, data.private, seed)
    return data


def score(task: Task, data: Prepared, files: Files | pl.DataFrame, folder: Path) -> Score:
    """Grade files, or a table as `submission.csv`, that an agent would leave.

    Raises:
        InvalidSubmission: the grader refuses them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder, {"submission.csv": table_text(files)} if isinstance(files, pl.DataFrame) else files)
    grader = task.module("grade")
    assert grader is not None
    context = GradingContext(
        submission=SubmissionFiles(folder),
        starter=SubmissionFiles(task.starter),
        private=data.private,
        variant="mini",
        seed=0,
        isolation=PlainSandbox(),
        scratch=folder,
    )
    found = grader.grade(context)
    assert isinstance(found, Score)
    return found
