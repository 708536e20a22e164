"""Run Python commands one after the other in a process that keeps its state, in a sandbox of its own, and is frozen between commands."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from dataclasses import replace
from pathlib import Path

from mlagentbench.sandbox import process
from mlagentbench.sandbox.base import EndReason, Execution, Sandbox, SandboxSpec
from mlagentbench.sandbox.output import Transcript

SERVER = Path(__file__).parent / "standalone" / "session_server.py"
ALWAYS = 1e9
"""Seconds. A session lives as long as its run; each command has a time limit of its own."""


class PythonSession:
    """A running Python process. `close` kills it and all the processes that it started.

    Args:
        sandbox: where it runs.
        spec: what it may see and use. Its time limit is not used: `run` takes one for each command.

    Raises:
        SandboxUnavailable: this machine cannot provide what `spec` asks for.
    """

    def __init__(self, sandbox: Sandbox, spec: SandboxSpec) -> None:
        self._spec = spec
        command = ("python", "-u", "-c", SERVER.read_text(encoding="utf-8"), str(spec.limits.output_kb << 10))
        self._process = process.start(sandbox, command, replace(spec, limits=replace(spec.limits, seconds=ALWAYS)))
        self._process.freeze()

    @property
    def alive(self) -> bool:
        """Whether it can take another command."""
        return self._process.running

    async def run(self, source: str, seconds: float) -> Execution:
        """Run Python source for so many seconds at most, print the value of a last expression, and freeze the process again.

        The session ends when a command reaches a limit or ends the process.
        """
        started = time.monotonic()
        self._process.thaw()
        reason: EndReason = "exit"
        transcript = Transcript(self._spec.limits.output_kb << 10)
        try:
            async with asyncio.timeout(seconds):
                size, kept = await asyncio.to_thread(self._ask, source.encode("utf-8", "replace"))
            transcript.feed(kept)
            transcript.total = size
            self._process.freeze()
        except (TimeoutError, asyncio.CancelledError) as stop:
            self._process.kill()
            reason = "time"
            if isinstance(stop, asyncio.CancelledError):
                raise
        except (EOFError, BrokenPipeError):
            self._process.kill()
            reason = self._process.reason or "exit"
        ended = not self.alive
        return Execution(
            output=transcript.text() or (self._process.stderr_tail() if ended else ""),
            exit_code=(self._process.exit_code or 0) if ended else 0,
            reason=reason,
            seconds=time.monotonic() - started,
            output_bytes=transcript.total,
        )

    def close(self) -> None:
        """Kill the process and all the processes that it started."""
        self._process.close()

    def _ask(self, order: bytes) -> tuple[int, bytes]:
        """Send a command and wait for its output.

        Returns:
            The bytes that the command printed, and their head and tail.

        Raises:
            EOFError: the process ended meanwhile.
        """
        self._process.stdin.write(struct.pack(">Q", len(order)) + order)
        self._process.stdin.flush()
        size, length = struct.unpack(">QQ", self._read(16))
        # The command can write to this pipe too. It can spoil its own output so, and nothing else.
        return size, self._read(min(length, self._spec.limits.output_kb << 10))

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = os.read(self._process.stdout.fileno(), count - len(data))
            if not part:
                raise EOFError
            data += part
        return data
