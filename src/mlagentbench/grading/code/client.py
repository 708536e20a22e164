"""Ask code in a sandbox questions, with a deadline for each answer.

The clock is here, outside the sandbox. It starts before the first byte of a question is written and stops when the last byte of the answer
has been read, so that the timed work can neither be done before nor be put off until later.
"""

from __future__ import annotations

import contextlib
import fcntl
import threading
import time
from typing import NamedTuple

from mlagentbench.errors import MLAgentBenchError
from mlagentbench.grading.code.protocol import FAILED, Array, Frame, FrameError, receive, send
from mlagentbench.sandbox.process import SandboxProcess

PIPE_BYTES = 2**20
"""The pipe size that any user may set; the default is 2**16 (pipe(7))."""
POLL = 0.01
PATIENCE = 10.0
"""Seconds to wait for a process whose pipe has closed to end, counted in polls: while this process itself has no core, none pass."""


class Answer(NamedTuple):
    """The answer to a question, and the time it took."""

    text: str
    arrays: tuple[Array, ...]
    seconds: float
    """From the first byte of the question to the last of the answer."""


class CodeClient:
    """Sends questions to a process, one at a time, and reads its answers.

    Args:
        process: the started process.
        blame: the error to raise when it answers wrongly, late or not at all: `InvalidSubmission` for the agent's code, `GradingError`
            for the task's own.
    """

    def __init__(self, process: SandboxProcess, blame: type[MLAgentBenchError]) -> None:
        self.process = process
        self.blame = blame
        self._number = 0
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError, AttributeError):  # a larger pipe passes an array in fewer pieces, and so faster
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def ask(self, kind: int, arrays: tuple[Array, ...] = (), *, doing: str, seconds: float, count: int = 0, max_values: int = 0) -> Answer:
        """Ask a question and wait for the answer.

        Args:
            kind: the kind of question; not `FAILED`.
            arrays: the question's arrays.
            doing: what the process does meanwhile, for messages: "importing train.py".
            seconds: the deadline, at which the process is killed.
            count: how many arrays the answer must have.
            max_values: how many numbers these may hold together.

        Raises:
            MLAgentBenchError: of the class `blame`: the answer is late or malformed, or says that the question failed.
        """
        self._number += 1
        late = threading.Event()

        def end() -> None:
            late.set()
            self.process.kill()

        deadline = threading.Timer(seconds, end)
        deadline.start()
        try:
            started = time.perf_counter()
            send(self.process.stdin.fileno(), Frame(kind, self._number, "", arrays))
            frame = receive(self.process.stdout.fileno(), max_values)
            ended = time.perf_counter()
        except FrameError as error:
            raise self.blame(f"{doing}: {error}") from None
        except (EOFError, BrokenPipeError):
            if late.is_set():
                raise self.blame(f"{doing} took longer than {seconds:g} seconds") from None
            raise self.blame(f"{doing}: {self._why_it_ended()}") from None
        finally:
            deadline.cancel()
        if frame.number == self._number and frame.kind == FAILED:
            raise self.blame(f"{doing} failed: {frame.text}")
        if (frame.number, frame.kind, len(frame.arrays)) != (self._number, kind, count):
            raise self.blame(f"{doing}: an answer came to a question that was not asked; only the grader's own code may write to its pipe")
        return Answer(frame.text, frame.arrays, ended - started)

    def _why_it_ended(self) -> str:
        polls = 0
        while self.process.reason is None and polls * POLL < PATIENCE:
            time.sleep(POLL)
            polls += 1
        if self.process.reason is None:
            return "the pipe to the grader was closed"
        if self.process.reason != "exit":
            return f"the process was ended at its limit of {self.process.reason}"
        lines = self.process.stderr_tail().strip().splitlines()
        wrote = f"; it last wrote: {lines[-1].strip()}" if lines else ""
        return f"the process ended without an answer (exit status {self.process.exit_code}{wrote})"
