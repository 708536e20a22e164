"""A small task of a number in a file, for tests that need some task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

GRADE = """
from mlagentbench import InvalidSubmission, Score

def grade(context):
    text = context.submission.read_text("{file}").strip()
    try:
        return Score(value=float(text))
    except ValueError:
        raise InvalidSubmission(f"{text!r} is no number") from None
"""
GRADE_TABLE = """
import polars as pl
from mlagentbench import Number, Score, align

def grade(context):
    answers, data = pl.read_csv(context.private / "answers.csv"), context.submission.read_bytes("{file}")
    found = align(data, "{file}", ids=answers["id"], id_column="id", columns={"value": Number()})
    return Score(value=float(abs(found["value"] - answers["value"].to_numpy()).mean()))
"""
"""A grader of a table: the mean distance of its values to those of `answers.csv`."""


def tiny_task(
    folder: Path,
    *,
    file: str = "submission.txt",
    submitted: Sequence[str] = (),
    mode: str = "file",
    direction: str = "maximize",
    keys: Mapping[str, str] = {},
    train: str = "print('hello')\n",
    grade: str = GRADE,
    proof: str = "",
    prepare: str = "",
) -> Path:
    """Write a task's folder, named as the task.

    Args:
        folder: where it goes; it may be there.
        file: what must be submitted.
        submitted: patterns of what else is.
        mode: of the submission.
        direction: of the metric.
        keys: further keys of task.toml, in TOML.
        train: the starter's script.
        grade: `grade.py`; by default the score is the number in the file.
        proof: `proof.py`, if there is one.
        prepare: `prepare.py`, if there is one.

    Returns:
        The folder.
    """
    more = {"paper": "{ baseline = 10.0 }", **keys}
    spec = f"""
id = "{folder.name}"
title = "Guess a number"
category = "a test"
modality = "text"
published = 2026-01-31
metric = {{ name = "points", direction = "{direction}" }}
submission = {{ mode = "{mode}", files = {json.dumps([file, *submitted])}, required = ["{file}"] }}
"""
    spec += "".join(f"{key} = {value}\n" for key, value in more.items())
    (folder / "starter").mkdir(parents=True, exist_ok=True)
    (folder / "starter" / "train.py").write_text(train)
    problem = f"Write a large number to {file}.\n"
    texts = {"task.toml": spec, "problem.md": problem, "grade.py": grade.replace("{file}", file), "proof.py": proof, "prepare.py": prepare}
    for name, text in texts.items():
        if text:
            (folder / name).write_text(text)
    return folder
