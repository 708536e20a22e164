"""The Python session: its state lasts, its process is frozen between commands, and gone with the run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mlagentbench.environment import Environment
from mlagentbench.limits import ScriptLimits
from mlagentbench.records import Action, Step
from tests.support import MakeEnvironment, finish


@pytest.fixture(params=[False, True], ids=["plain", "sandboxed"])
def environment(request: pytest.FixtureRequest, make_environment: MakeEnvironment) -> Iterator[Environment]:
    """An environment with and without a sandbox."""
    made = make_environment(sandboxed=request.param, box_limits=ScriptLimits(seconds=2))
    yield made
    made.close()


async def say(environment: Environment, command: str) -> Step:
    return await environment.execute(Action(name="Python REPL", arguments={"command": command}))


def test_variables_last_and_the_last_value_is_shown(environment: Environment) -> None:
    async def story() -> None:
        await environment.start()
        assert (await say(environment, "x = 20\nprint('set')")).observation == "set"
        assert (await say(environment, "x + 1")).observation == "21"
        assert (await say(environment, "x = 3")).observation == "(It printed nothing.)"
        assert (await say(environment, "open('made.txt', 'w').write('hello')")).observation == "5"
        assert environment.workspace.read_text("made.txt") == "hello"

    finish(story())


def test_an_error_is_told_and_the_session_goes_on(environment: Environment) -> None:
    async def story() -> None:
        await environment.start()
        await say(environment, "x = 1")
        for command, told in [
            ("x / 0", "ZeroDivisionError"),
            ("x = = 1", "SyntaxError"),
            ("exit(3)", "SystemExit: 3"),
            ("input()", "EOFError"),
        ]:
            step = await say(environment, command)
            assert told in step.observation
            assert "session_server" not in step.observation
        assert (await say(environment, "x")).observation == "1"

    finish(story())


def test_a_command_at_its_limit_ends_the_session_and_the_next_one_is_told(environment: Environment) -> None:
    async def story() -> None:
        await environment.start()
        await say(environment, "x = 1")
        step = await say(environment, "import time; time.sleep(600)")
        assert step.status == "limit_time"
        assert "variables are gone" in step.observation
        assert step.seconds < 300
        after = await say(environment, "x")
        assert after.observation.startswith("(This is a new Python session")
        assert "NameError" in after.observation

    finish(story())


def test_a_command_that_kills_the_process_is_told(environment: Environment) -> None:
    async def story() -> None:
        await environment.start()
        step = await say(environment, "import os; os._exit(7)")
        assert step.status == "error"
        assert "ended with exit code 7" in step.observation

    finish(story())


def test_nothing_runs_between_commands(environment: Environment, tmp_path: Path) -> None:
    count = """
import threading, time
count = [0]
def beat():
    while True:
        count[0] += 1
        time.sleep(0.01)
threading.Thread(target=beat, daemon=True).start()
"""

    async def story() -> None:
        await environment.start()
        await say(environment, count)
        before = int((await say(environment, "count[0]")).observation)
        time.sleep(1)
        assert int((await say(environment, "count[0]")).observation) - before < 30, "a second of beats would be about a hundred"

    finish(story())


def test_a_flood_is_kept_head_and_tail(environment: Environment) -> None:
    async def story() -> None:
        await environment.start()
        step = await say(environment, "print('first'); print('x' * 5_000_000); print('last')")
        assert step.observation.startswith("first")
        assert step.observation.endswith("last")
        assert len(step.observation) < 400_000

    finish(story())


def test_the_session_ends_with_the_run(environment: Environment) -> None:
    async def story() -> None:
        await environment.start()
        await say(environment, "import subprocess; p = subprocess.Popen(['sleep', '4321.25'])")
        deadline = time.monotonic() + 10
        while not sleepers():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        environment.close()
        assert not sleepers()

    finish(story())


def sleepers() -> list[int]:
    return [process.pid for process in psutil.process_iter(["cmdline"]) if "4321.25" in (process.info["cmdline"] or [])]
