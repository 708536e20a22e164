"""A file that is changed is imported as it is, however soon after its last change."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mlagentbench.agents.base import find_agent
from mlagentbench.task.catalogue import load_task
from tests.tiny_task import tiny_task

ANSWERS = ("first", "again")


@pytest.fixture(autouse=True)
def keep_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def change(path: Path, text: str) -> None:
    """Change a file within the second of its last change."""
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_a_tasks_modules_are_imported_as_they_are(tmp_path: Path) -> None:
    task = load_task(tiny_task(tmp_path / "guess"))
    for answer in ANSWERS:
        change(task.folder / "grade.py", f"from .helper import ANSWER\nOWN = {answer!r}\n")
        change(task.folder / "helper.py", f"ANSWER = {answer!r}\n")
        module = task.module("grade")
        assert module is not None and (answer, answer) == (module.OWN, module.ANSWER)
    assert not (task.folder / "__pycache__").exists()


def test_an_agents_file_is_imported_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for answer in ANSWERS:
        change(file, f"class Mine:\n    OWN = {answer!r}\n")
        assert vars(find_agent(f"{file}:Mine"))["OWN"] == answer
