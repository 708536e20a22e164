"""Asks and shows things at the terminal, while runs go on.

Lines are awaited in the event loop and not in a thread, so that a run that is stopped, or whose time is up, does not wait for the person.
Control characters in shown text are escaped, since agents and their scripts write it. Everything is written to standard error: standard
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
from mlagentbench.workspace.folder_files import printable

MARKER = "EOF"
"""The line that ends a text of several lines."""
BLOCK = 1 << 16


class Terminal:
    """A person's terminal, by the file descriptors to read from and to write to."""

    def __init__(self, source: int = 0, sink: int = 2) -> None:
        self._source = source
        self._sink = sink
        self._read = b""

    def say(self, text: str, end: str = "\n") -> None:
        """Write a text to the terminal.

        Raises:
            RunStopped: the terminal is gone.
        """
        rest = (visible(text) + end).encode("utf-8", "replace")
        try:
            while rest:
                rest = rest[os.write(self._sink, rest) :]
        except OSError:
            raise RunStopped("the terminal is gone") from None

    async def line(self, prompt: str) -> str:
        """Show a prompt and return the next line that the person writes.

        Raises:
            RunStopped: the person has ended the input (Ctrl-D), or the terminal is gone.
        """
        self.say(prompt, end="")
        while b"\n" not in self._read:
            try:
                await self._readable()
                block = os.read(self._source, BLOCK)
            except OSError:
                block = b""  # the terminal hung up, which ends the input
            if not block:
                self._read = b""
                self.say("")
                raise RunStopped("the person ended the input")
            self._read += block
        line, self._read = self._read.split(b"\n", 1)
        return line.decode("utf-8", "replace").removesuffix("\r")

    async def text(self, prompt: str) -> str:
        """Show a prompt and return the lines that the person writes, up to a line that holds only `MARKER`.

        Raises:
            RunStopped: the input ended before that line.
        """
        self.say(f"{prompt} (end it by a line {MARKER})")
        lines = []
        while (line := await self.line("")) != MARKER:
            lines.append(line)
        return "".join(f"{line}\n" for line in lines)

    async def edited(self, text: str, name: str) -> str | None:
        """Open a text in the person's editor and return it as saved; None if there is no editor, or it failed.

        Args:
            text: the text to edit.
            name: a file name; its suffix chooses the editor's syntax highlighting.
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
        """The command of the person's editor; None if VISUAL and EDITOR are unset, or the input is not a terminal."""
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        return command if command and os.isatty(self._source) else None

    async def _readable(self) -> None:
        """Wait until there is something to read."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._source, ready.set)
        except PermissionError:
            return  # epoll(7) refuses regular files, which are always readable
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._source)


@cache
def own_terminal() -> Terminal:
    """Return the terminal of this process. It is one object, since input that was read ahead belongs to whoever asks next."""
    sys.stderr.flush()
    return Terminal()


def visible(text: str) -> str:
    """Return a text with every control character but line feeds and tabs replaced by an escape."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join("\t".join(printable(piece) for piece in line.split("\t")) for line in plain.split("\n"))
