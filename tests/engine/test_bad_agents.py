"""Agents of a user's own that do wrong what only a run can show: an outcome each, in one line, and the process goes on and ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.runner import run_once
from tests.engine.whole import carry_out, make_plan
from tests.runner.lives import make_task
from tests.support import HANGING

AGENTS = """
import asyncio

from mlagentbench.records import Action

LIST = Action(name="List Files", arguments={"dir_path": "."})


class Agent:
    needs_model = False


class Raises(Agent):
    async def __call__(self, environment):
        raise ValueError("one\\ntwo")


class Exits(Agent):
    async def __call__(self, environment):
        raise SystemExit(3)


class Closes(Agent):
    async def __call__(self, environment):
        raise GeneratorExit


class Cancels(Agent):
    async def __call__(self, environment):
        raise asyncio.CancelledError


class SaysNoAction(Agent):
    async def __call__(self, environment):
        await environment.execute("List Files")


class GivesNoJson(Agent):
    async def __call__(self, environment):
        await environment.execute(Action(name="List Files", arguments={"dir_path": object()}))


class Returns(Agent):
    async def __call__(self, environment):
        return 42


class Stops(Agent):
    async def __call__(self, environment):
        try:
            while True:
                await environment.execute(LIST)
        except Exception:
            return


class Translates(Agent):
    async def __call__(self, environment):
        try:
            while True:
                await environment.execute(LIST)
        except Exception as error:
            raise RuntimeError("something went wrong") from error


class Insists(Agent):
    async def __call__(self, environment):
        while True:
            try:
                await environment.execute(LIST)
            except Exception:
                pass


class AsksForMore(Agent):
    async def __call__(self, environment):
        await environment.execute(Action(name="No Such Action"))
        await environment.execute(Action(name="List Files", arguments={"folder": 1}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "done"}))
        await environment.execute(LIST)


class Stays(Agent):
    async def __call__(self, environment):
        while True:
            try:
                await asyncio.sleep(1000)
            except BaseException:
                pass
"""
LINES = {f"class {name}": number for number, line in enumerate(AGENTS.splitlines(), start=1) for name in [line[6:].split("(")[0]]}


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_once, "GRACE", 0.5)
    (tmp_path / "agents.py").write_text(AGENTS)
    return tmp_path / "agents.py"


@pytest.mark.parametrize(
    ("name", "ended", "reason"),
    [
        ("Raises", "agent_error", f"ValueError: one two (line {LINES['class Raises'] + 2})"),
        ("Exits", "agent_error", f"SystemExit: 3 (line {LINES['class Exits'] + 2})"),
        ("Closes", "agent_error", "GeneratorExit: "),
        ("Cancels", "agent_error", "the agent gave itself up"),
        ("SaysNoAction", "agent_error", "AttributeError: 'str' object has no attribute 'name'"),
        ("GivesNoJson", "agent_error", "ValidationError: 1 validation error for Action"),
        ("Returns", "agent_error", "the agent returned without a final answer"),
        ("Stops", "limit_steps", "the run's 3 steps are used up"),
        ("Translates", "limit_steps", "the run's 3 steps are used up"),
        ("Insists", "limit_steps", "the run's 3 steps are used up"),
        ("AsksForMore", "final_answer", "nothing was submitted"),
    ],
)
def test_what_an_agent_does_wrong_is_its_runs_outcome(agents: Path, tmp_path: Path, name: str, ended: str, reason: str) -> None:
    run = carry_out(make_plan(tmp_path, f"{agents}:{name}", steps=3), "none/none")
    assert run.result.outcome.ended == ended
    assert run.result.outcome.reason is not None
    assert run.result.outcome.reason.startswith(reason) and "\n" not in run.result.outcome.reason


@pytest.mark.slow
def test_an_agent_that_never_leaves_is_left_behind(agents: Path, tmp_path: Path) -> None:
    make_task(tmp_path / "guess")
    options = ["--variant", "mini", "--sandbox", "none", "--baseline", "none", "--time", "1s", "--json"]
    command = ["run", "guess", "--task-path", "guess", "--agent", f"{agents}:Stays", *options]
    program = f"from mlagentbench.runner import run_once; run_once.GRACE = 0.5\nfrom mlagentbench.cli.main import main; main({command!r})"
    finished = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=HANGING)
    assert finished.returncode == 0, finished.stderr
    told = json.loads(finished.stdout)
    assert (told["ended"], told["reason"]) == ("limit_time", "the agent did nothing until the time limit")
