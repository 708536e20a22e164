"""Listing, showing and grading need no ML library: whoever grades a thousand tables installs none, and waits for none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.data.extras import require_extras
from mlagentbench.data.prepare import prepared
from mlagentbench.errors import TaskError
from mlagentbench.grading.baseline import write_files
from mlagentbench.task.catalogue import Task, find_tasks

HEAVY = ("torch", "transformers", "tokenizers", "safetensors", "sklearn", "scipy", "pandas", "PIL", "kagglesdk", "inspect_ai")
WITHOUT = f"import sys\nfor name in {HEAVY}:\n    sys.modules[name] = None\n"
"""Python that finds none of them."""

GRADE = """
import json, tempfile
from pathlib import Path
from mlagentbench.grading.kept import KeptSandboxes
from mlagentbench.grading.worker import Request, answer

for asked in json.loads(sys.argv[1]):
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as kept:
        request = Request(**asked, scratch=scratch, kept=kept, variant="mini", seed=0, sandbox="auto", memory_mb=4096)
        found = answer(request, KeptSandboxes(request.kept))
    print(asked["task"], found.model_dump_json())
"""
COMMANDS = """
from mlagentbench.cli.main import run
for arguments in json.loads(sys.argv[1]):
    assert run(arguments) == 0, arguments
"""


def without_libraries(code: str, asked: object) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", WITHOUT + code, json.dumps(asked)], capture_output=True, text=True, timeout=900, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_every_task_is_listed_and_shown_without_them() -> None:
    shown = without_libraries("import json\n" + COMMANDS, [["tasks", "list"], *(["tasks", "show", task] for task in find_tasks())])
    assert all(task in shown for task in find_tasks())


def test_every_grader_is_imported_without_them() -> None:
    """What judges weights and code imports the libraries in its sandbox, so that the grader's own process does not wait for them."""
    code = """
import json
from pathlib import Path
from mlagentbench.task.catalogue import load_task

for path in json.loads(sys.argv[1]):
    assert load_task(Path(path)).module("grade") is not None
"""
    without_libraries(code, [str(task.path) for task in find_tasks().values()])


@pytest.mark.slow
def test_tables_are_graded_without_them(tmp_path: Path) -> None:
    tasks = [task for task in find_tasks().values() if task.spec.submission.mode == "file" and _installed(task)]
    assert tasks
    asked = []
    for task in tasks:
        data = prepared(task, "mini", tmp_path / "cache")
        proof = task.module("proof")
        assert proof is not None
        folder = tmp_path / task.id
        write_files(folder, next(iter(proof.oracle(data).values())))
        asked.append({"task": str(task.path), "submission": str(folder), "private": str(data.private)})
    answers = without_libraries(GRADE, asked).splitlines()
    assert len(answers) == len(asked)
    for line in answers:
        assert json.loads(line.partition(" ")[2])["score"] is not None, line


def _installed(task: Task) -> bool:
    try:
        require_extras(task)
    except TaskError:
        return False
    return True
