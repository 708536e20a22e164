"""What tests of several rooms share."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlagentbench import Action, Environment, RunSpec, Step
from mlagentbench.run_spec import ModelSpec, RunInfo
from mlagentbench.util import lock

HANGING = 600.0
"""Seconds after which what a test waits for counts as hanging: longer than any busy machine takes."""
MakeEnvironment = Callable[..., Environment]
"""What the fixture `make_environment` gives."""


def run_info(run: str) -> RunInfo:
    """What a test's run was asked to do."""
    return RunInfo(
        run=run,
        spec=RunSpec(task="a-task", variant="mini", models={"agent": ModelSpec(name="scripted/script")}),
        description="Make train.py better.",
        metric="accuracy",
        unit="",
        direction="maximize",
        isolation="none",
        started=0.0,
        versions={},
        hardware={},
    )


def reply(action: str, arguments: str, thought: str = "Go on.") -> str:
    """A reply in the research agent's form."""
    return (
        "Reflection: The observation is clear.\n\nResearch Plan and Status: 1. Look. 2. Improve.\n\nFact Check: Nothing is claimed.\n\n"
        f"Thought: {thought}\n\nAction: {action}\n\nAction Input: {arguments}\n"
    )


def do(name: str, **arguments: Any) -> Action:
    """An action with its arguments."""
    return Action(name=name, arguments=arguments)


def perform(environment: Environment, *actions: Action) -> list[Step]:
    """Start an environment and execute actions in it: their steps, published."""

    async def story() -> list[Step]:
        await environment.start()
        steps = [await environment.execute(action) for action in actions]
        await environment.settle()
        return steps

    return asyncio.run(story())


def set_at(event: asyncio.Event, logs: Path, name: str) -> None:
    """Set an event once the workspace of a run has a file."""
    if list(logs.glob(f"*/workspace/{name}")):
        event.set()
    else:
        asyncio.get_running_loop().call_later(0.02, set_at, event, logs, name)


def wait_until(happened: Callable[[], object], seconds: float = HANGING) -> None:
    """Wait until something has happened."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "what the test waits for does not happen"
        time.sleep(0.02)


def free_port() -> int:
    """A port of this machine for a server that sets SO_REUSEADDR, as most do.

    Neither the kernel nor this function gives it to anybody else while this process lives, which holds it without listening.
    """
    while True:
        held = socket.socket()
        try:
            held.bind(("127.0.0.1", random.randrange(15_000, 32_000)))
        except OSError:
            held.close()
            continue
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = int(held.getsockname()[1])
        held.detach()
        return port


def finish(coroutine: Any) -> Any:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that is made once for all workers of this run of the tests: one takes over tests of a module that another began."""
    base = factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()
    folder, made = base / name, base / f"{name}.made"
    with (base / f"{name}.lock").open("wb") as file:
        lock.acquire(file)  # until it is closed
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # what a failure has left
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
