"""A task whose grader counts lines, and the file of a scripted model: what benchmarks of the framework itself run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

TOML = """\
id = "{id}"
title = "Nothing to do"
category = "none"
modality = "none"
published = 2026-01-01
[metric]
name = "lines"
direction = "maximize"
[submission]
mode = "file"
files = ["notes.txt"]
required = ["notes.txt"]
"""
GRADE = """\
from mlagentbench import Score


def grade(context):
    return Score(value=float(len(context.submission.read_text("notes.txt").splitlines())))
"""
THOUGHTS = "".join(f"{name}: It is clear.\n\n" for name in ("Reflection", "Research Plan and Status", "Fact Check", "Thought"))


def write_task(folder: Path, script: str) -> None:
    """Write a task, whose id is the folder's name and whose train.py is the script."""
    (folder / "starter").mkdir(parents=True)
    (folder / "starter" / "train.py").write_text(script + "\n")
    (folder / "task.toml").write_text(TOML.format(id=folder.name))
    (folder / "problem.md").write_text("Write lines into notes.txt.")
    (folder / "grade.py").write_text(GRADE)


def write_replies(path: Path, actions: Iterable[tuple[str, Mapping[str, object]]]) -> None:
    """Write the replies of a scripted model that does the actions one after another, and then ends."""
    every = [*actions, ("Final Answer", {"final_answer": "done"})]
    replies = (f"{THOUGHTS}Action: {name}\nAction Input: {json.dumps(arguments)}\n" for name, arguments in every)
    path.write_text("".join(json.dumps({"reply": reply}) + "\n" for reply in replies))
