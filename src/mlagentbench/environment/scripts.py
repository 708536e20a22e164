"""Runs an agent's scripts, its Python session, and an agent of another framework itself, in the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mlagentbench.actions.base import SessionAnswer
from mlagentbench.sandbox import process
from mlagentbench.sandbox.base import Execution, Mount, Sandbox, SandboxSpec
from mlagentbench.sandbox.box import Box
from mlagentbench.sandbox.session import PythonSession

AGENT_MB = 1024
"""MB of memory for an agent that runs in a sandbox itself, beside those for its scripts."""


class BoxSetup(NamedTuple):
    """What an agent needs in the sandbox that it runs in itself."""

    mounts: Sequence[Mount] = ()
    """Files and folders that it can read."""
    path: Sequence[str] = ()
    """Folders in the sandbox to search for programs before the system's."""
    environment: Mapping[str, str] = {}
    """Variables of all its commands."""


class ScriptRunner:
    """Runs the scripts of one run."""

    def __init__(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        self.spec = spec
        self._sandbox = sandbox
        self._session: PythonSession | None = None
        self.box: Box | None = None
        """The sandbox that the agent itself runs in, once `open_box` has started it."""

    async def open_box(self, setup: BoxSetup, home: Path) -> Box:
        """Start the sandbox that the agent itself runs in, within the limits of scripts and with memory for the agent on top.

        It has no network, whatever the task allows, since the agent's models are on its loopback address.
        """
        spec = self.spec
        self.box = await Box.open(
            self._sandbox,
            replace(
                spec,
                home=home,
                network=False,
                path=tuple(setup.path),
                read_only=(*spec.read_only, *setup.mounts),
                environment={**spec.environment, **setup.environment},
                limits=replace(spec.limits, memory_mb=spec.limits.memory_mb + AGENT_MB),
            ),
        )
        return self.box

    async def run(self, command: Sequence[str], seconds: float, on_output: Callable[[str], None]) -> Execution:
        """Run a command for at most `seconds`, within the limits of scripts; `on_output` takes its output as it comes."""
        limits = replace(self.spec.limits, seconds=self._bounded(seconds))
        return await process.run(self._sandbox, tuple(command), replace(self.spec, limits=limits), on_output)

    async def run_in_session(self, source: str, seconds: float) -> SessionAnswer:
        """Run Python source in the session for at most `seconds`; start a session if there is none."""
        session, started = self._session, False
        if session is None or not session.alive:
            self.close()
            session, started = PythonSession(self._sandbox, self.spec), True
            self._session = session
        execution = await session.run(source, self._bounded(seconds))
        return SessionAnswer(execution, started, ended=not session.alive)

    def close(self) -> None:
        """End the session and the agent's own sandbox, if there are any."""
        if self.box is not None:
            self.box.close()
        if self._session is not None:
            self._session.close()
            self._session = None

    def _bounded(self, seconds: float) -> float:
        return max(0.1, min(self.spec.limits.seconds, seconds))
