"""What a script may do to a run that an ordinary user began: nothing that keeps the run from going on.

    python -m tests.runner.test_ordinary_user FOLDER SANDBOX

is the part of each test that runs as such a user.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlagentbench import Result, RunLimits
from mlagentbench.limits import SandboxChoice
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import find_runs
from mlagentbench.sandbox.isolation import probe
from mlagentbench.task.catalogue import load_task
from tests.plans import Plan, make_plan, resumed
from tests.runner.lives import make_task
from tests.sandbox.processes import become, nobodys_id

NOBODY = nobodys_id()
PYTHON = Path("/usr/bin/python3")
"""One that an ordinary user can run, wherever this one is installed."""
PATH = os.pathsep.join(filter(None, sys.path))
pytestmark = pytest.mark.skipif(
    not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import pydantic"], env={"PYTHONPATH": PATH}, capture_output=True).returncode != 0,
    reason="the system's Python, which ordinary users can run, is of another version than this one",
)
AVAILABLE = [capability.name for capability in probe() if capability.available and capability.name != "docker"]

CLOSING = """
import contextlib, os
open("submission.txt", "w").write("12.5")
os.makedirs("a/b", exist_ok=True)
open("a/b/c", "w").write("kept")
os.umask(0o777)
os.makedirs("made closed", exist_ok=True)
with contextlib.suppress(OSError):
    os.setxattr(".", "system.posix_acl_default", bytes.fromhex("02000000 0100 0000 ffffffff 0400 0000 ffffffff 2000 0000 ffffffff"))
for path in ("a/b/c", "a/b", "a", "submission.txt", "."):
    os.chmod(path, 0)
print("closed")
"""
AGENT = """
from mlagentbench import Action

class Closing:
    needs_model = False

    async def __call__(self, environment):
        for number in range(2):
            await environment.execute(Action(name="Execute Script", arguments={"script_name": "train.py"}))
            await environment.execute(Action(name="Copy File", arguments={"source": "a/b/c", "destination": f"{number}/copy"}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "done"}))
"""


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mlagentbench-nobody-", dir="/tmp"))
    try:
        os.chown(folder, NOBODY, NOBODY)
        yield folder
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)


def as_nobody(folder: Path, sandbox: str) -> str:
    """What the story of a folder prints when an ordinary user tells it."""
    words = become(NOBODY) if os.getuid() == 0 else []
    environment = {**os.environ, "HOME": str(folder), "MLAB_CACHE": str(folder / "cache"), "TMPDIR": "/tmp", "PYTHONPATH": PATH}
    words += [str(PYTHON), "-m", "tests.runner.test_ordinary_user", str(folder), sandbox]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("sandbox", [*AVAILABLE, "none"])
def test_a_script_that_closes_its_folder_ends_neither_the_run_nor_its_going_on(sandbox: str) -> None:
    with folder_of_nobody() as folder:
        assert as_nobody(folder, sandbox).splitlines() == [
            "1: Execute Script ok",
            "2: Copy File ok",
            "limit_steps success",
            "1: Execute Script ok",
            "2: Copy File ok",
            "3: Execute Script ok",
            "4: Copy File ok",
            "limit_steps success",
        ]


def main(folder: Path, sandbox: SandboxChoice) -> None:
    """Carry out two steps of a run, close its folder once more, and go on with two more."""
    task = make_task(folder / "guess")
    (task / "starter" / "train.py").write_text(CLOSING)
    (folder / "agent.py").write_text(AGENT)
    plan = make_plan(
        load_task(task),
        folder / "runs",
        agent=f"{folder / 'agent.py'}:Closing",
        sandbox=sandbox,
        python=PYTHON,
        limits=RunLimits(steps=2),
        score_steps=True,
    )
    _tell(plan, asyncio.run(plan.conduct(Models.scripted(Script([])))))
    sys.stdout.flush()
    (directory,) = find_runs(plan.log_directory)
    (directory.workspace / "a").chmod(0)
    directory.workspace.chmod(0)
    with resumed(directory.path, steps=4) as more:
        _tell(more, asyncio.run(more.conduct(Models.scripted(Script([])))))


def _tell(plan: Plan, result: Result) -> None:
    (directory,) = find_runs(plan.log_directory)
    for step in directory.steps():
        print(f"{step.number}: {step.action.name} {step.status}" + step.observation * (step.status != "ok"))
    print(result.outcome.ended, result.outcome.verdict)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])  # type: ignore[arg-type]
