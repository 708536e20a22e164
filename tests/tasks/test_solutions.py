"""Through the whole loop: an agent that writes the solution of a task's proof succeeds, one that writes its ineffective change does not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Literal

import pytest

from mlagentbench.data.extras import require_extras
from mlagentbench.errors import TaskError
from mlagentbench.limits import SandboxChoice
from mlagentbench.model import Models, Script, ScriptedReply
from mlagentbench.records import Result
from mlagentbench.sandbox.isolation import probe
from mlagentbench.task.catalogue import find_task
from mlagentbench.task.proofs import Files
from tests.plans import make_plan
from tests.support import reply

pytestmark = pytest.mark.slow

TASKS = ("house-price", "ladder-3")
"""Examples; `mlab tasks check` proves the same of every task, without an agent."""
SANDBOX: SandboxChoice = "auto" if any(found.available for found in probe()) else "none"


@pytest.mark.parametrize("task_id", TASKS)
def test_a_solution_succeeds_and_an_ineffective_change_does_not(task_id: str, tmp_path: Path) -> None:
    solution = run(task_id, "solution", tmp_path)
    assert solution.success, solution.outcome
    assert solution.baseline is not None and solution.improvement is not None and solution.improvement > 0.1
    ineffective = run(task_id, "ineffective", tmp_path)
    assert ineffective.score is not None, ineffective.outcome
    assert ineffective.outcome.verdict == "no_improvement"


def run(task_id: str, solution: Literal["solution", "ineffective"], folder: Path) -> Result:
    task = find_task(task_id)
    try:
        require_extras(task)
    except TaskError as error:
        pytest.skip(str(error))
    files: Files = getattr(task.module("proof"), solution)()
    replies = [
        *(reply("Write File", json.dumps({"file_name": name, "content": text})) for name, text in files.items()),
        reply("Execute Script", json.dumps({"script_name": task.spec.starter.script})),
        reply("Final Answer", json.dumps({"final_answer": "Done."})),
    ]
    plan = make_plan(task, folder / solution, sandbox=SANDBOX, baseline="auto")
    models = Models.scripted(Script([ScriptedReply(reply=text) for text in replies]))
    result = asyncio.run(plan.conduct(models))
    assert result.outcome.ended == "final_answer", result.outcome
    return result
