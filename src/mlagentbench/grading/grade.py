"""Grade submissions: run a task's `grade.py`, which is trusted, in a process of its own with limits of time and memory.

Where the grader refuses a submission, the result has a `reason`. A grader that fails raises, and `grading/control.py` finds out whose fault
it is. A grading that times something first waits for the machine's lock, and holds it meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import GradingError, SandboxUnavailable
from mlagentbench.grading.fork_server import ForkServer
from mlagentbench.grading.lock import timing
from mlagentbench.grading.worker import GradingOutcome, Request
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import LARGEST, Record, Score, Variant
from mlagentbench.sandbox.standalone.supervise import end_descendants, send
from mlagentbench.task.catalogue import Task
from mlagentbench.task.spec import TaskSpec
from mlagentbench.util.machine import ONE_THREAD
from mlagentbench.util.temporary import temporary_folder
from mlagentbench.util.text import one_line
from mlagentbench.workspace.files import write_all

MAX_ANSWER = 64 * 2**20
"""Bytes of an answer."""
MAX_TRACEBACK = 20_000
"""Bytes of a failed grader's last output that its error carries."""


class Graded(Record):
    """The result of a grading: a score, or the reason why there is none."""

    score: Score | None = None
    reason: str | None = None
    """What is wrong with the submission, for a person to act on."""
    seconds: float
    """How long the grading took, without the wait for other timed gradings."""
    failed: bool = False
    """Set by callers that go on after a `GradingError` and keep its message as the reason: nothing is known of the submission."""


def missing(spec: TaskSpec, folder: Path) -> tuple[str, ...]:
    """Return the required paths that a submission's folder lacks; where there are any, nothing was submitted.

    A path that exists but is no file is not missing: grading then finds the submission invalid.
    """
    return tuple(name for name in spec.submission.required if not os.path.lexists(folder / name))


async def grade(
    task: Task,
    submission: Path,
    *,
    variant: Variant = "full",
    private: Path | None = None,
    sandbox: SandboxChoice = "auto",
    seed: int | None = None,
    forks: ForkServer | None = None,
) -> Graded:
    """Grade one submission.

    Args:
        task: the task.
        submission: a folder that holds what the task's `submission.files` match, and nothing else; it is only read.
        variant: the task's variant.
        private: the folder of the task's answers; None for a task without data.
        sandbox: how the agent's code is isolated where it must run, as in `isolation.choose`.
        seed: for a grading that can be repeated; None for fresh randomness.
        forks: the server that forks the grader's process; None starts a new Python.

    Raises:
        GradingError: the grader failed, or hit a limit.
        SandboxUnavailable: the grader needs a sandbox that this machine cannot give.
    """
    async with Grader(task, variant=variant, private=private, sandbox=sandbox, seed=seed, forks=forks) as grader:
        return await grader.grade(submission)


@dataclass
class Grader:
    """Grades submissions of one task one after another, in the order in which they are asked for. Use it as a context manager.

    Its process is started with the first submission and reused until a grading fails, so that many submissions from one source, such as a
    task's own proofs, cost little more than their grading. Use another `Grader` for another agent's submissions.

    The arguments are those of `grade`, and:

    Args:
        exclusive: whether a grading that times code waits until nobody else on this machine times any; False for a submission that is to
            be refused, whose seconds are not asked for.
    """

    task: Task
    variant: Variant = "full"
    private: Path | None = None
    sandbox: SandboxChoice = "auto"
    seed: int | None = None
    forks: ForkServer | None = None
    exclusive: bool = True
    _worker: _Worker | None = field(default=None, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self._stack.aclose()

    async def grade(self, submission: Path) -> Graded:
        """Grade one submission.

        Raises:
            GradingError: the grader failed, or hit a limit. The next submission gets a new process.
            SandboxUnavailable: the grader needs a sandbox that this machine cannot give.
        """
        timed = self.exclusive and self.task.spec.submission.mode == "code"
        async with self._turn, temporary_folder("mlab-grading-") as folder, timing() if timed else nullcontext():
            folder.chmod(0o755)  # a sandbox may run as another user
            started = time.monotonic()
            worker = await self._take_worker()
            request = Request(
                task=self.task.path,
                submission=submission.resolve(),
                private=self.private.resolve() if self.private else Prepared.empty(folder).private,
                scratch=folder / "scratch",
                kept=worker.kept,
                variant=self.variant,
                seed=self.seed,
                sandbox=self.sandbox,
                memory_mb=self.task.spec.limits.grading_memory_mb,
            )
            request.scratch.mkdir()
            answer = await self._ask(worker, request)
            seconds = time.monotonic() - started
        if answer.unavailable is not None:
            raise SandboxUnavailable(answer.unavailable)
        if answer.score is not None and not abs(answer.score.value) <= LARGEST:
            value = f"{answer.score.value:g}"
            raise GradingError(f"the grader of {self.task.id} gave {value} as a score; it must be a finite number of at most {LARGEST:g}")
        return Graded(score=answer.score, reason=answer.invalid, seconds=seconds)

    async def _take_worker(self) -> _Worker:
        worker, self._worker = self._worker, None
        if worker is None:
            worker = await self._stack.enter_async_context(_worker(self.task, self.forks))
        return worker

    async def _ask(self, worker: _Worker, request: Request) -> GradingOutcome:
        try:
            answer = await worker.ask(request, self.task.spec.limits.grading_time)
        except BaseException:
            await self._stack.aclose()
            raise
        self._worker = worker
        return answer


async def grade_all(grader: Grader, submissions: Iterable[Path]) -> list[Graded]:
    """Grade all of the submissions; where the grader fails, the message of its `GradingError` is the reason.

    Raises:
        SandboxUnavailable: the grader needs a sandbox that this machine cannot give.
    """
    found = []
    for submission in submissions:
        try:
            found.append(await grader.grade(submission))
        except GradingError as error:
            found.append(Graded(reason=str(error), seconds=0.0, failed=True))
    return found


class _Process(NamedTuple):
    """A grader's process, started or forked."""

    pid: int
    questions: int
    """The descriptor of its standard input."""
    answers: asyncio.StreamReader
    has_ended: Callable[[], bool]
    wait: Callable[[], Awaitable[int]]
    """Waits until it has ended, and returns its exit status."""


@asynccontextmanager
async def _worker(task: Task, forks: ForkServer | None) -> AsyncIterator[_Worker]:
    """Start or fork a grader's process; at the end, kill it and all that it started."""
    async with temporary_folder("mlab-grader-") as folder:
        folder.chmod(0o755)  # a sandbox may run as another user
        errors, kept = folder / "errors.txt", folder / "kept"
        kept.mkdir()
        async with _started(errors) if forks is None else _forked(forks, errors) as process:
            try:
                yield _Worker(task, process, errors, kept)
            finally:
                if not process.has_ended():
                    end_descendants(process.pid)
                    send(process.pid, signal.SIGKILL)
                    await process.wait()


@asynccontextmanager
async def _started(errors: Path) -> AsyncIterator[_Process]:
    inside, questions = os.pipe()
    with os.fdopen(questions, "wb"), os.fdopen(inside, "rb"), errors.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "mlagentbench.grading.worker"),
            stdin=inside,
            stdout=asyncio.subprocess.PIPE,
            stderr=sink,
            env={**os.environ, **ONE_THREAD},  # it computes little, and must not disturb what it times
            start_new_session=True,
            limit=MAX_ANSWER,
        )
        assert process.stdout is not None
        yield _Process(process.pid, questions, process.stdout, lambda: process.returncode is not None, process.wait)


@asynccontextmanager
async def _forked(forks: ForkServer, errors: Path) -> AsyncIterator[_Process]:
    (inside, questions), (outside, writing) = os.pipe(), os.pipe()
    with os.fdopen(questions, "wb"), os.fdopen(outside, "rb") as answering:
        try:
            with errors.open("wb") as sink:
                forked = forks.fork(inside, writing, sink.fileno())
        except OSError:
            raise GradingError("the process that graders are forked from is gone; grade again") from None
        finally:
            os.close(inside)
            os.close(writing)
        with forked.status:
            answers = asyncio.StreamReader(limit=MAX_ANSWER)
            loop = asyncio.get_running_loop()
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(answers), answering)
            try:
                yield _Process(forked.pid, questions, answers, forked.has_ended, lambda: asyncio.to_thread(forked.wait))
            finally:
                transport.close()


class _Worker:
    def __init__(self, task: Task, process: _Process, errors: Path, kept: Path) -> None:
        self.kept = kept
        """A folder for the sandboxes that its gradings keep."""
        self._task = task
        self._process = process
        self._errors = errors

    async def ask(self, request: Request, seconds: float) -> GradingOutcome:
        """Send a request, and return its answer.

        Raises:
            GradingError: the grader failed, gave no valid answer, or took longer than `seconds`.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended, and reading its answer says why
            write_all(self._process.questions, request.model_dump_json().encode() + b"\n")
        try:
            async with asyncio.timeout(seconds):
                data = await self._process.answers.readline()
                if data.endswith(b"\n"):
                    return GradingOutcome.model_validate_json(data)
                status = await self._process.wait()
        except TimeoutError:
            raise GradingError(
                f"the grader of {self._task.id} took longer than {seconds:g} seconds (limits.grading_time in its task.toml)"
            ) from None
        except ValueError as error:  # longer than MAX_ANSWER, or not what JSON can hold
            raise GradingError(f"the grader of {self._task.id} gave no score that can be read: {str(error).splitlines()[0]}") from None
        raise _failure(self._task, status, self._errors)


def _failure(task: Task, status: int, errors: Path) -> GradingError:
    with errors.open("rb") as file:
        file.seek(-min(MAX_TRACEBACK, file.seek(0, os.SEEK_END)), os.SEEK_END)
        printed = file.read().decode(errors="replace")
    lines = printed.strip().splitlines()
    what = one_line(lines[-1]) if lines else "it wrote nothing"
    how = f"was ended by signal {-status}" if status < 0 else "failed"
    place = task.place_in(printed)
    error = GradingError(f"the grader of {task.id} {how}{f' at {place}' if place else ''}: {what}")
    error.add_note(printed)
    return error
