"""A person at a terminal, for tests: a real pseudo-terminal, whose other end is written to when what is awaited has been shown."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import commands

CTRL_C, CTRL_D = "\x03", "\x04"


class Person:
    """Sits at the terminal of a command.

    Args:
        arguments: of `mlab`.
        folder: where it runs.
        environment: what its variables are beside this process's own.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str] = {}) -> None:
        self.screen = ""
        self._position = 0
        self.end, inner = pty.openpty()
        variables = {name: value for name, value in os.environ.items() if name not in ("EDITOR", "VISUAL")}
        self.process = commands.Popen(
            [*commands.MLAB, *arguments],
            cwd=folder,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env={**variables, "TERM": "xterm", "COLUMNS": "120", **environment},
            start_new_session=True,
        )
        os.close(inner)

    def sees(self, text: str, seconds: float = 300.0) -> None:
        """Wait until something is shown, after what was seen before."""
        end = time.monotonic() + seconds
        while (found := self.screen.find(text, self._position)) < 0:
            if time.monotonic() > end or not self._look(1.0):
                if self.process.poll() is not None and self.screen.find(text, self._position) < 0:
                    raise AssertionError(f"{text!r} was never shown; the screen ends:\n{self.screen[-3000:]}")
                if time.monotonic() > end:
                    raise AssertionError(f"{text!r} was not shown in time; the screen ends:\n{self.screen[-3000:]}")
        self._position = found + len(text)

    def writes(self, *lines: str) -> None:
        """Write lines."""
        for line in lines:
            os.write(self.end, f"{line}\n".encode())

    def presses(self, key: str) -> None:
        """Press a key."""
        os.write(self.end, key.encode())

    def leaves(self, seconds: float = 300.0) -> int:
        """Wait until the command ends.

        Returns:
            Its exit status.
        """
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self._look(0.2)
        while self._look(0.0):
            pass
        try:
            return self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it did not end; the screen ends:\n{self.screen[-3000:]}") from None

    def _look(self, seconds: float) -> bool:
        """Take in what is shown; False where there is nothing."""
        ready, _, _ = select.select([self.end], [], [], seconds)
        if not ready:
            return False
        try:
            block = os.read(self.end, 1 << 16)
        except OSError:
            return False
        self.screen += block.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(block)
