"""The Python session: its state lasts, its process is frozen between commands, and gone with the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from mlagentbench import Action, Environment, ScriptLimits, Step
from tests.sandbox.processes import Trace
from tests.support import HANGING, MakeEnvironment, do, finish, perform


@pytest.fixture(params=[False, True], ids=["plain", "sandboxed"])
def environment(request: pytest.FixtureRequest, make_environment: MakeEnvironment) -> Iterator[Environment]:
    """An environment with and without a sandbox."""
    made = make_environment(sandboxed=request.param, box_limits=ScriptLimits(seconds=600))
    yield made
    made.close()


def say(command: str) -> Action:
    return do("Python REPL", command=command)


def test_variables_last_and_the_last_value_is_shown(environment: Environment) -> None:
    commands = ("x = 20\nprint('set')", "x + 1", "x = 3", "open('made.txt', 'w').write('hello')")

    steps = perform(environment, *map(say, commands))

    assert [step.observation for step in steps] == ["set", "21", "(It printed nothing.)", "5"]
    assert environment.workspace.read_text("made.txt") == "hello"


def test_an_error_is_told_and_the_session_goes_on(environment: Environment) -> None:
    errors = {"x / 0": "ZeroDivisionError", "x = = 1": "SyntaxError", "exit(3)": "SystemExit: 3", "input()": "EOFError"}

    _, *steps, last = perform(environment, *map(say, ("x = 1", *errors, "x")))

    for step, error in zip(steps, errors.values(), strict=True):
        assert error in step.observation and "session_server" not in step.observation
    assert last.observation == "1"


@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_command_at_its_limit_ends_the_session_and_the_next_one_is_told(make_environment: MakeEnvironment, sandboxed: bool) -> None:
    environment = make_environment(sandboxed=sandboxed, box_limits=ScriptLimits(seconds=1000))

    async def time_passes() -> None:
        """Put the loop's clock forward once the command sleeps."""
        async with asyncio.timeout(HANGING):
            while not (environment.workspace.root / "asleep").exists():
                await asyncio.sleep(0.02)
        loop = asyncio.get_running_loop()
        now = loop.time
        loop.time = lambda: now() + 2000  # type: ignore[method-assign]

    async def story() -> tuple[Step, Step]:
        await environment.start()
        await environment.execute(say("x = 1"))
        slow, _ = await asyncio.gather(environment.execute(say("import time; open('asleep', 'w'); time.sleep(600)")), time_passes())
        after = await environment.execute(say("x"))
        await environment.settle()
        return slow, after

    with closing(environment):
        slow, after = finish(story())

    assert slow.status == "limit_time"
    assert "variables are gone" in slow.observation
    assert after.observation.startswith("(This is a new Python session") and "NameError" in after.observation


def test_a_command_that_kills_the_process_is_told(environment: Environment) -> None:
    (step,) = perform(environment, say("import os; os._exit(7)"))

    assert step.status == "error" and "ended with exit code 7" in step.observation


def test_nothing_runs_between_commands(environment: Environment) -> None:
    count = """
import threading, time
longest, beats = 0.0, 0
def beat():
    global longest, beats
    last = time.monotonic()
    while True:
        time.sleep(0.01)
        now = time.monotonic()
        longest, last, beats = max(longest, now - last), now, beats + 1
def wait_for_beat():
    had = beats
    while beats == had:
        time.sleep(0.01)
threading.Thread(target=beat, daemon=True).start()
wait_for_beat()
"""

    async def story() -> None:
        await environment.start()
        await environment.execute(say(count))
        time.sleep(1)
        await environment.execute(say("wait_for_beat()"))
        assert float((await environment.execute(say("longest"))).observation) > 0.9, "it did not beat for a second"

    finish(story())


def test_a_flood_is_kept_head_and_tail(environment: Environment) -> None:
    (step,) = perform(environment, say("print('first'); print('x' * 5_000_000); print('last')"))

    assert step.observation.startswith("first") and step.observation.endswith("last")
    assert len(step.observation) < 400_000


def test_the_session_ends_with_the_run(environment: Environment) -> None:
    trace = Trace()
    perform(environment, say(f"import subprocess; p = subprocess.Popen(['sleep', '{trace.seconds}'])"))
    assert trace.becomes(True)

    environment.close()

    assert not trace.alive()
