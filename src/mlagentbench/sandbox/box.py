"""Run an agent of another framework in one sandbox that lasts as long as its run, and carry out commands beside it.

A server in the sandbox (`standalone/exec_server.py`) carries out the requests of this module. They go over a socket that the server
inherits as a descriptor, and that no other process of the sandbox can open. Still, its replies are treated as data: a reply that is too
large, has an unknown id or cannot be read ends the sandbox.

Only bubblewrap can give such a sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self

from mlagentbench.errors import BoxEnded, SandboxUnavailable
from mlagentbench.sandbox import process
from mlagentbench.sandbox.base import WORKSPACE, EndReason, Sandbox, SandboxSpec

SERVER = Path(__file__).parent / "standalone" / "exec_server.py"
ALWAYS = 1e9
"""Seconds. A box lasts as long as its run, which has a time limit of its own."""
START = 120.0
"""Seconds that the server may take to start."""
END = 10.0
"""Seconds that the box's processes may take to end when its server has ended."""
LONGEST_HEADER = 1 << 16
LOWEST_DESCRIPTOR = 20
"""The server inherits a descriptor above those that shells and launchers use for themselves."""
_ERRORS = {kind.__name__: kind for kind in (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, OSError)}


class Executed(NamedTuple):
    """The result of a command in a box."""

    code: int
    """As in a shell: 128 + the signal for a killed process, 127 for a command that does not exist."""
    output: bytes
    """The end of its standard output."""
    errors: bytes
    """The end of its standard error."""


class TooLarge(OSError):
    """A file is larger than its reader allows."""


@dataclass
class _Pending:
    """A request that was sent, and the most bytes that the body of its reply may have."""

    reply: asyncio.Future[tuple[dict[str, Any], bytes]]
    most: int


class Box:
    """A sandbox in which commands are executed until it is closed. Use `open`, in the event loop that uses the box."""

    def __init__(self, process: process.SandboxProcess, connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._ids = count(1)
        self._waiting: dict[int, _Pending] = {}
        self._closed = False
        self._disconnected = False
        self._broken: str | None = None
        self._reading: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, sandbox: Sandbox, spec: SandboxSpec) -> Self:
        """Start a box. Call it on a thread that outlives the box, such as the main one.

        Args:
            sandbox: where it runs.
            spec: what it may see and use. Its time limit is not used; at its memory limit only the largest process is killed.

        Raises:
            SandboxUnavailable: the sandbox is not bubblewrap, or this machine cannot provide what `spec` asks for.
            BoxEnded: the server did not start.
        """
        if sandbox.isolation != "bubblewrap":
            raise SandboxUnavailable(f"an agent of another framework runs in bubblewrap only, and this sandbox is {sandbox.isolation}")
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR)
            with socket.socket(fileno=descriptor):
                command = ("python", "-I", "-S", "-c", SERVER.read_text(encoding="utf-8"), str(descriptor))
                limits = replace(spec.limits, seconds=ALWAYS)
                started = process.start(sandbox, command, replace(spec, limits=limits), passed=(descriptor,), spare=True)
        box = cls(started, ours)
        try:
            reader, box._writer = await asyncio.open_connection(sock=ours)
            ready = box._expect(0, 0)
            box._reading = asyncio.create_task(box._read(reader))
            await asyncio.wait_for(ready, START)
        except TimeoutError:
            box.close()
            raise box._ended() from None
        except BaseException:
            box.close()
            raise
        return box

    @property
    def running(self) -> bool:
        """Whether it can take another request."""
        return not self._closed and not self._disconnected and self._broken is None and self._process.running

    @property
    def reason(self) -> EndReason | None:
        """Why its processes ended, once they have."""
        return self._process.reason

    async def execute(
        self,
        command: Sequence[str],
        *,
        given: bytes = b"",
        directory: str = "",
        environment: Mapping[str, str] = {},
        seconds: float | None = None,
        most: int = 1 << 20,
    ) -> Executed:
        """Execute a command, and wait for its end. Processes that it leaves behind go on until the box is closed.

        Args:
            command: its words.
            given: its standard input.
            directory: its working directory, absolute or relative to the workspace.
            environment: variables beside those of the box.
            seconds: the time after which its process group is killed.
            most: bytes that are returned at most of its output and of its errors each: their ends.

        Raises:
            TimeoutError: it took longer.
            OSError: it cannot be started.
            BoxEnded: the box has ended.
        """
        request = {"command": list(command), "directory": _path(directory), "environment": dict(environment), "seconds": seconds}
        header, body = await self._ask({"do": "execute", **request, "most": most}, given, 2 * most)
        code, size = header.get("code"), header.get("output")
        if not isinstance(code, int) or not isinstance(size, int) or not 0 <= size <= len(body):
            raise self._end("its server sent a result without an exit code")
        if header.get("timed_out"):
            raise TimeoutError(f"{command[0]} took longer than {seconds:g} s")
        return Executed(code, body[:size], body[size:])

    async def write(self, path: str, content: bytes) -> None:
        """Write a file, by a path that is absolute or relative to the workspace, and create its folders.

        Raises:
            OSError: it cannot be written.
            BoxEnded: the box has ended.
        """
        await self._ask({"do": "write", "path": _path(path)}, content, 0)

    async def read(self, path: str, most: int) -> bytes:
        """Return the content of a file of at most `most` bytes; its path is as for `write`.

        Raises:
            TooLarge: it has more.
            OSError: it cannot be read.
            BoxEnded: the box has ended.
        """
        header, content = await self._ask({"do": "read", "path": _path(path), "most": most}, b"", most)
        if header.get("too_large"):
            raise TooLarge(f"{path} is larger than {most:,} bytes")
        return content

    @contextlib.contextmanager
    def frozen(self) -> Any:
        """Pause all processes of the box, so that nothing changes its files meanwhile."""
        if not self.running:
            yield
            return
        self._process.freeze()
        try:
            yield
        finally:
            self._process.thaw()

    def close(self) -> None:
        """Kill all its processes. What waits for a reply gets BoxEnded."""
        if self._closed:
            return
        self._closed = True
        if self._reading is not None:
            self._reading.cancel()
            self._writer.close()
        else:
            self._connection.close()
        self._process.close()
        self._abandon()

    async def _ask(self, request: Mapping[str, Any], body: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        if not self.running:
            raise self._ended()
        number = next(self._ids)
        reply = self._expect(number, most)
        try:
            self._send({"id": number, **request}, body)
            await self._writer.drain()
            header, content = await reply
        except ConnectionError:
            raise self._ended() from None
        except asyncio.CancelledError:
            if request["do"] == "execute" and self.running:
                kill = next(self._ids)
                self._expect(kill, 0)
                self._send({"id": kill, "do": "kill", "which": number}, b"")
            raise
        if "error" in header:
            raise _ERRORS.get(header["error"], OSError)(str(header.get("message", "")))
        return header, content

    def _expect(self, number: int, most: int) -> asyncio.Future[tuple[dict[str, Any], bytes]]:
        self._waiting[number] = _Pending(asyncio.get_running_loop().create_future(), most)
        return self._waiting[number].reply

    def _send(self, header: Mapping[str, Any], body: bytes) -> None:
        text = json.dumps(header).encode()
        self._writer.write(struct.pack(">II", len(text), len(body)) + text + body)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Take replies until the socket is closed or a reply is malformed."""
        try:
            while True:
                length, size = struct.unpack(">II", await reader.readexactly(8))
                if length > LONGEST_HEADER:
                    raise ValueError(f"a header of {length:,} bytes")
                header = json.loads(await reader.readexactly(length))
                waiting = self._waiting.pop(header["id"], None) if isinstance(header, dict) and type(header.get("id")) is int else None
                if waiting is None:
                    raise ValueError("an answer to nothing that was asked")
                if size > waiting.most:
                    self._waiting[header["id"]] = waiting
                    raise ValueError(f"{size:,} bytes where at most {waiting.most:,} were asked for")
                content = await reader.readexactly(size)
                if not waiting.reply.done():
                    waiting.reply.set_result((header, content))
        except (asyncio.IncompleteReadError, ConnectionError):
            self._disconnected = True
            # Its reason is known once its processes have been waited for.
            await asyncio.to_thread(self._process.wait, END)
        except (ValueError, RecursionError) as error:
            self._end(f"its server sent {error}")
        self._abandon()

    def _end(self, why: str) -> BoxEnded:
        """Kill all processes because of a malformed reply, and return the error."""
        self._broken = self._broken or why
        self._process.kill()
        return self._ended()

    def _abandon(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if not each.reply.done():
                each.reply.set_exception(self._ended())
                each.reply.exception()  # it may be that nobody waits any more

    def _ended(self) -> BoxEnded:
        if self._broken:
            return BoxEnded(f"the agent's sandbox was ended: {self._broken}")
        if self._closed:
            return BoxEnded("the agent's sandbox was closed")
        last = self._process.stderr_tail().strip().splitlines()[-1:]
        return BoxEnded(": ".join([f"the agent's sandbox has ended ({self._process.reason or 'by itself'})", *last]))


def _path(path: str) -> str:
    return path if path.startswith("/") else f"{WORKSPACE}/{path}"
