"""A server that forks graders, so that each of many runs has a process of its own without waiting for Python to start.

The server imports what every grader needs, and nothing of a task or of a submission. It starts no thread and reads no file of an agent's,
so that a process forked from it is as clean as a new one. Linux only; elsewhere graders are started one by one.

    python -m mlagentbench.grading.fork_server      with one end of a socket as its standard input

For each grader it receives four descriptors over that socket: the grader's standard input, output and error, and one to which the server
writes the process id and later the exit status, a line each. The server ends when the socket closes; a grader ends when its own standard
input closes (`worker.py`).
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import IO, NamedTuple

from mlagentbench.grading import worker
from mlagentbench.util.machine import ONE_THREAD

DESCRIPTORS = 4
"""The number of descriptors sent for each grader."""


class Forked(NamedTuple):
    """A forked grader."""

    pid: int
    status: IO[bytes]
    """Gives the grader's exit status, as a line."""

    def has_ended(self) -> bool:
        """Return whether the grader has ended, by itself or not."""
        poll = select.poll()
        poll.register(self.status, select.POLLIN)
        return bool(poll.poll(0))

    def wait(self) -> int:
        """Wait for the grader's exit status, negative for a signal; 0 where the server is gone and it is unknown. Blocks."""
        return int(self.status.readline() or 0)


class ForkServer:
    """The client of a fork server."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def fork(self, stdin: int, stdout: int, stderr: int) -> Forked:
        """Fork a grader. The caller still owns the descriptors. Blocks for some milliseconds.

        Raises:
            OSError: the server is gone.
        """
        reading, writing = os.pipe()
        status = os.fdopen(reading, "rb")
        try:
            socket.send_fds(self._connection, [b"\0"], [stdin, stdout, stderr, writing])
        except BaseException:
            status.close()
            raise
        finally:
            os.close(writing)
        line = status.readline()
        if not line:
            status.close()
            raise ConnectionResetError("the fork server is gone")
        return Forked(int(line), status)


@asynccontextmanager
async def fork_server() -> AsyncIterator[ForkServer | None]:
    """Run a fork server while the block lasts; yield None on systems other than Linux."""
    if sys.platform != "linux":
        yield None
        return
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "mlagentbench.grading.fork_server"),
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD},  # a process with threads cannot be forked safely
                start_new_session=True,
            )
        try:
            yield ForkServer(ours)
        finally:
            ours.close()
            await process.wait()


def main() -> None:
    """Fork graders until the socket closes."""
    asked = socket.socket(fileno=os.dup(0))
    running: dict[int, int] = {}
    """The descriptors for exit statuses, by process id."""
    # A signal that comes just before a call that waits does not interrupt it; what its handler writes ends the wait all the same.
    ended, woken = socket.socketpair()
    for end in (ended, woken):
        end.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        readable, _, _ = select.select([asked, ended], [], [])
        if ended in readable:
            ended.recv(1 << 16)
            _report_exits(running)
        if asked not in readable:
            continue
        _, descriptors, _, _ = socket.recv_fds(asked, 1, DESCRIPTORS)
        if not descriptors:
            return
        *streams, status = descriptors
        pid = os.fork()
        if not pid:
            _become_grader(streams, [each.fileno() for each in (asked, ended, woken)] + [status, *running.values()])
        running[pid] = status
        with suppress(OSError):
            os.write(status, b"%d\n" % pid)
        for descriptor in streams:
            os.close(descriptor)


def _report_exits(running: dict[int, int]) -> None:
    """Write the exit status of each process that has ended to its descriptor, and forget it."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with suppress(OSError):
            os.write(running[pid], b"%d\n" % os.waitstatus_to_exitcode(status))
        os.close(running.pop(pid))


def _become_grader(streams: list[int], others: list[int]) -> None:
    """Turn this process into what `python -m mlagentbench.grading.worker` starts. Never returns."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        for descriptor in (*streams, *others):
            os.close(descriptor)
        worker.main()
    except BaseException:  # as the interpreter does with an exception that nobody catches
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    main()
