"""Runs an agent's scripts, and its Python session, in the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlagentbench.actions.base import SessionAnswer
from mlagentbench.sandbox import process
from mlagentbench.sandbox.base import Execution, Sandbox, SandboxSpec
from mlagentbench.sandbox.session import PythonSession


class ScriptRunner:
    """Runs the scripts of one run.

    Args:
        sandbox: the sandbox that they run in.
        spec: what they may see and use in it.
    """

    def __init__(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        self.spec = spec
        self._sandbox = sandbox
        self._session: PythonSession | None = None

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
        """End the session, if there is one."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _bounded(self, seconds: float) -> float:
        return max(0.1, min(self.spec.limits.seconds, seconds))
