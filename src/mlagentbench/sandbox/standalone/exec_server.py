"""Carry out requests in a sandbox: execute commands, read and write files. `sandbox/box.py` starts this program. Standard library only.

    python -I -S exec_server.py DESCRIPTOR

Requests and replies are frames on the socket with the number DESCRIPTOR: the lengths of a header and of a body (4 bytes each, big-endian),
the header as JSON, and the body. A reply has the `id` of its request. Each request has a thread of its own.

Commands run as the same user as this server, and must not reach its socket. No process that they can open holds it but this one, which
PR_SET_DUMPABLE keeps them from opening, and they do not inherit it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from typing import IO, Any

PR_SET_DUMPABLE = 4
CHUNK = 1 << 16
FULLEST = 1 << 20
"""Bytes that a pipe holds at most, unless root enlarges it."""
LINGER = 0.5
"""Seconds after a command's end in which its output is still read, if a process that it left behind holds the pipe."""
LOOKS = 100
"""How often that time is divided: it is counted in looks, since a clock would run on while the sandbox is frozen."""
STARTED = 'echo 500 >/proc/self/oom_score_adj 2>/dev/null; exec "$@"'
"""When memory is short, the kernel kills a command rather than this server."""
_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


class Server:
    """Carries out the requests that come over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._requests, self._replies = connection.makefile("rb"), connection.makefile("wb")
        self._lock = threading.Lock()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        """The commands by the ids of their requests."""
        self._killed: set[int] = set()
        """The ids of those to kill, which their own threads may not have started yet."""

    def serve(self) -> None:
        """Carry out requests until the socket is closed."""
        self._reply({"id": 0})
        while len(lengths := self._requests.read(8)) == 8:
            header, body = (self._requests.read(length) for length in struct.unpack(">II", lengths))
            threading.Thread(target=self._carry_out, args=(json.loads(header), body), daemon=True).start()

    def _carry_out(self, request: dict[str, Any], body: bytes) -> None:
        try:
            match request["do"]:
                case "execute":
                    header, content = self._execute(request, body)
                case "kill":
                    header, content = self._kill(request["which"]), b""
                case "write":
                    header, content = _write(request["path"], body), b""
                case "read":
                    header, content = _read(request["path"], request["most"])
        except OSError as error:
            kind = next((kind.__name__ for kind in _ERRORS if isinstance(error, kind)), "OSError")
            header, content = {"error": kind, "message": str(error)[:1000]}, b""
        except Exception as error:
            header, content = {"error": "OSError", "message": repr(error)[:1000]}, b""
        self._reply({"id": request["id"], **header}, content)

    def _execute(self, request: dict[str, Any], given: bytes) -> tuple[dict[str, Any], bytes]:
        process = subprocess.Popen(
            ("/bin/sh", "-c", STARTED, "sh", *request["command"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=request["directory"],
            env={**os.environ, **request["environment"]},
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._running[request["id"]] = process
        if request["id"] in self._killed:
            self._kill(request["id"])
        ends = [Tail(process.stdout, request["most"]), Tail(process.stderr, request["most"])]
        threading.Thread(target=_feed, args=(process.stdin, given), daemon=True).start()
        timed_out = False
        try:
            code = process.wait(request["seconds"])
        except subprocess.TimeoutExpired:
            self._kill(request["id"])
            code, timed_out = process.wait(), True
        finally:
            del self._running[request["id"]]
        output, errors = (end.content() for end in ends)
        return {"code": code if code >= 0 else 128 - code, "timed_out": timed_out, "output": len(output)}, output + errors

    def _kill(self, which: int) -> dict[str, Any]:
        self._killed.add(which)
        process = self._running.get(which)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return {}

    def _reply(self, header: dict[str, Any], body: bytes = b"") -> None:
        text = json.dumps(header).encode()
        with self._lock:
            self._replies.write(struct.pack(">II", len(text), len(body)) + text + body)
            self._replies.flush()


class Tail:
    """Reads a pipe to its end in a thread, and keeps the last `most` bytes.

    What a command had written when it ended is returned even if the thread had no chance to read it.
    """

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        self._pipe = pipe
        self._most = most
        self._kept = bytearray()
        self._lock = threading.Lock()
        self._open = True
        os.set_blocking(pipe.fileno(), False)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def content(self) -> bytes:
        """Return what was read, after waiting for the end of the pipe, but not for long."""
        for _ in range(LOOKS):
            self._thread.join(LINGER / LOOKS)
        for _ in range(FULLEST // CHUNK):
            if not self._read():
                break
        return bytes(self._kept[-self._most :])

    def _follow(self) -> None:
        waiting = select.poll()
        waiting.register(self._pipe, select.POLLIN)
        with self._pipe:
            while self._open:
                waiting.poll()
                self._read()

    def _read(self) -> bool:
        """Read what the pipe holds now, one chunk at most. Returns whether there was any."""
        with self._lock:
            try:
                data = os.read(self._pipe.fileno(), CHUNK) if self._open else b""
            except BlockingIOError:
                return False
            self._open = bool(data)
            self._kept += data
            if len(self._kept) > 2 * self._most + CHUNK:
                del self._kept[: -self._most]
            return self._open


def _feed(pipe: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(OSError), pipe:  # the command need not read its input
        pipe.write(given)


def _write(path: str, content: bytes) -> dict[str, Any]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    return {}


def _read(path: str, most: int) -> tuple[dict[str, Any], bytes]:
    with open(path, "rb") as file:
        content = file.read(most + 1)
    return ({"too_large": True}, b"") if len(content) > most else ({}, content)


def main() -> None:
    """Serve on the socket that the argument names."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE")
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    Server(socket.socket(fileno=descriptor)).serve()


if __name__ == "__main__":
    main()
