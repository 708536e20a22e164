"""A process from which graders are forked, so that each of many runs has a process of its own without waiting for Python to start.

The server imports what every grader needs, and nothing of a task or of a submission: it starts no thread, reads no file of an agent's, and
what is forked from it is as good as new. Linux only; elsewhere graders are started one by one.

    python -m mlagentbench.grading.fork_server      with one end of a socket as its standard input

It gets four descriptors a grader over that socket: its standard input, output and error, and where its process id and then its exit status
are written, a line each. When the socket closes it ends; a grader ends when its own standard input does (`worker.py`).
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

DESCRIPTORS = 4
"""What a grader is forked with."""
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
"""A grader computes little, and must not disturb what it times; and a process with threads cannot be forked."""


class Forked(NamedTuple):
    """A grader that was forked."""

    pid: int
    status: IO[bytes]
    """Where its exit status comes from, as a line."""

    def has_ended(self) -> bool:
        """Whether it has, by itself or not."""
        return bool(select.select([self.status], [], [], 0)[0])

    def wait(self) -> int:
        """Its exit status, negative for a signal; 0 where the server is gone and nobody knows. It blocks."""
        return int(self.status.readline() or 0)


class ForkServer:
    """The asker's side.

    Args:
        connection: the other end of the server's socket.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def fork(self, stdin: int, stdout: int, stderr: int) -> Forked:
        """Fork a grader. The descriptors stay the caller's. It blocks, for some milliseconds.

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
    """A fork server, for as long as the block lasts; None where this system should not fork."""
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
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,
            )
        try:
            yield ForkServer(ours)
        finally:
            ours.close()
            await process.wait()


def main() -> None:
    """Fork graders until nobody asks any more."""
    asked = socket.socket(fileno=os.dup(0))
    running: dict[int, int] = {}
    """The descriptor for its exit status, by process id."""

    def tell(number: int, frame: object) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            with suppress(OSError):
                os.write(running[pid], b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(running.pop(pid))

    signal.signal(signal.SIGCHLD, tell)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        _, descriptors, _, _ = socket.recv_fds(asked, 1, DESCRIPTORS)
        if not descriptors:
            return
        # Until it is known who was forked, nobody may be told of its end.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        *streams, status = descriptors
        pid = os.fork()
        if not pid:
            _become_grader(streams, [asked.fileno(), status, *running.values()])
        running[pid] = status
        with suppress(OSError):
            os.write(status, b"%d\n" % pid)
        for descriptor in streams:
            os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _become_grader(streams: list[int], others: list[int]) -> None:
    """Be what `python -m mlagentbench.grading.worker` is. Never returns."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        for descriptor in (*streams, *others):
            os.close(descriptor)
        worker.main()
    except BaseException:  # as the interpreter itself does with what nobody catches
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    main()
