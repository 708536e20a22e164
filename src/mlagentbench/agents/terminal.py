"""Talking with the person at the terminal, while runs go on.

Lines are waited for in the event loop and not in a thread, so that a run that is stopped, or whose time is up, waits for nobody. Text is
shown with what would steer the terminal made visible, since agents and their scripts write it. All talk goes to standard error: standard
output is for results.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
from functools import cache
from pathlib import Path

from mlagentbench.errors import RunStopped
from mlagentbench.workspace.places import printable

MARKER = "EOF"
"""The line that ends a text of several lines."""
BLOCK = 1 << 16


class Terminal:
    """A person's terminal.

    Args:
        source: the descriptor that is read.
        sink: the descriptor that is written to.
    """

    def __init__(self, source: int = 0, sink: int = 2) -> None:
        self._source = source
        self._sink = sink
        self._read = b""

    def say(self, text: str, end: str = "\n") -> None:
        """Show a text."""
        rest = (visible(text) + end).encode("utf-8", "replace")
        try:
            while rest:
                rest = rest[os.write(self._sink, rest) :]
        except OSError:
            raise RunStopped("the terminal is gone") from None

    async def line(self, prompt: str) -> str:
        """The next line that the person writes.

        Raises:
            RunStopped: there is none: the person has ended the input (Ctrl-D), or the terminal is gone.
        """
        self.say(prompt, end="")
        while b"\n" not in self._read:
            try:
                await self._readable()
                block = os.read(self._source, BLOCK)
            except OSError:
                block = b""  # a terminal that hung up
            if not block:
                self._read = b""
                self.say("")
                raise RunStopped("the person ended the input")
            self._read += block
        line, self._read = self._read.split(b"\n", 1)
        return line.decode("utf-8", "replace").removesuffix("\r")

    async def text(self, prompt: str) -> str:
        """A text of several lines, up to a line that holds only the marker.

        Raises:
            RunStopped: the input ended before.
        """
        self.say(f"{prompt} (end it by a line {MARKER})")
        lines = []
        while (line := await self.line("")) != MARKER:
            lines.append(line)
        return "".join(f"{line}\n" for line in lines)

    async def edited(self, text: str, name: str) -> str | None:
        """A text as the person's editor leaves it; None where there is no editor, or it failed.

        Args:
            text: what the editor begins with.
            name: what the text is called; its ending tells an editor how to colour it.
        """
        command = self.editor
        if command is None:
            return None
        with tempfile.TemporaryDirectory(prefix="mlab-edit-") as folder:
            path = Path(folder) / f"text{Path(name).suffix}"
            path.write_text(text, encoding="utf-8")
            try:
                editor = await asyncio.create_subprocess_exec(*shlex.split(command), str(path), stdin=self._source, stdout=self._sink)
            except (OSError, ValueError) as error:
                self.say(f"The editor {command} cannot be started: {error}")
                return None
            try:
                status = await editor.wait()
            finally:
                if editor.returncode is None:
                    editor.terminate()
                    await editor.wait()
            if status:
                self.say(f"The editor {command} failed with exit code {status}; nothing is taken from it.")
                return None
            return path.read_text(encoding="utf-8", errors="replace")

    @property
    def editor(self) -> str | None:
        """The person's editor, where it can be used; None where none is named, or nobody sits at a terminal."""
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        return command if command and os.isatty(self._source) else None

    async def _readable(self) -> None:
        """Wait until there is something to be read."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._source, ready.set)
        except PermissionError:
            return  # a regular file, which never lets anybody wait
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._source)


@cache
def own_terminal() -> Terminal:
    """The terminal of this process: one object, since what was read ahead belongs to whoever asks next."""
    sys.stderr.flush()
    return Terminal()


def visible(text: str) -> str:
    """A text with everything in it that would steer a terminal written as an escape; it keeps its lines and tabs."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join("\t".join(printable(piece) for piece in line.split("\t")) for line in plain.split("\n"))
