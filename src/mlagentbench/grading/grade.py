"""Grading a submission: a task's `grade.py`, trusted, in a process of its own with limits of time and memory.

What the submission is at fault for is its `reason`; what the grader is at fault for raises. Gradings that time something hold the machine's
lock meanwhile, and wait for it first.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from mlagentbench.errors import GradingError, SandboxUnavailable
from mlagentbench.grading.lock import timing
from mlagentbench.grading.worker import Answer, Request
from mlagentbench.records import Record, Score
from mlagentbench.sandbox.isolation import Choice
from mlagentbench.sandbox.standalone.supervise import end_descendants, send
from mlagentbench.tasks.catalogue import Task
from mlagentbench.tasks.spec import Limits, TaskSpec, Variant

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
"""A grader computes little, and must not disturb what it times."""


class Graded(Record):
    """What a submission is worth: a score, or the reason why it has none."""

    score: Score | None = None
    reason: str | None = None
    """What is wrong with the submission, for a person to act on."""
    seconds: float
    """The grading took so long, the wait for other timed gradings not counted."""
    failed: bool = False
    """For callers that go on after a `GradingError` and keep its message as the reason: nothing is known of the submission."""


def missing(spec: TaskSpec, folder: Path) -> tuple[str, ...]:
    """The required paths that a submission's folder lacks: where there are any, nothing was submitted.

    Something else than a file in such a place is no lack: it is an invalid submission, which grading says.
    """
    return tuple(name for name in spec.submission.required if not os.path.lexists(folder / name))


async def grade(
    task: Task,
    submission: Path,
    *,
    variant: Variant = "full",
    private: Path | None = None,
    sandbox: Choice = "auto",
    limits: Limits | None = None,
    seed: int | None = None,
) -> Graded:
    """Grade one submission.

    Args:
        task: the task.
        submission: a folder that holds what the task's `submission.files` match, and nothing else; it is only read.
        variant: of the task.
        private: the folder of its answers, where it has data.
        sandbox: how the agent's code is isolated where it must run, as in `isolation.choose`.
        limits: None for the task's own.
        seed: for a grading that can be repeated; None for fresh randomness.

    Raises:
        GradingError: the grader failed on its own account, or hit a limit.
        SandboxUnavailable: the grader needs a sandbox that this machine cannot give.
    """
    limits = limits or task.spec.limits
    timed = task.spec.submission.mode == "code"
    scratch = Path(tempfile.mkdtemp(prefix="mlab-grading-"))
    scratch.chmod(0o755)  # a sandbox may run as another user
    request = Request(
        task=task.folder,
        submission=submission.resolve(),
        private=private.resolve() if private else None,
        scratch=scratch / "scratch",
        variant=variant,
        seed=seed,
        sandbox=sandbox,
        memory_mb=limits.grading_memory_mb,
    )
    request.scratch.mkdir()
    try:
        async with timing() if timed else nullcontext():
            started = time.monotonic()
            answer = await _ask(task, request, limits, scratch / "errors.txt")
            seconds = time.monotonic() - started
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if answer.unavailable is not None:
        raise SandboxUnavailable(answer.unavailable)
    if answer.score is not None and not math.isfinite(answer.score.value):
        raise GradingError(f"the grader of {task.id} gave {answer.score.value} as a score; it must be a finite number")
    return Graded(score=answer.score, reason=answer.invalid, seconds=seconds)


async def _ask(task: Task, request: Request, limits: Limits, errors: Path) -> Answer:
    """Start a worker, and have its answer within the time limit. Nothing of it is left."""
    with errors.open("wb") as sink:
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "mlagentbench.grading.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sink,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,
        )
    assert worker.stdin is not None and worker.stdout is not None
    try:
        worker.stdin.write(request.model_dump_json().encode() + b"\n")
        data = await asyncio.wait_for(worker.stdout.read(), limits.grading_time)
        status = await worker.wait()
    except TimeoutError:
        raise GradingError(
            f"the grader of {task.id} took longer than {limits.grading_time:g} seconds; raise limits.grading_time in its task.toml"
        ) from None
    finally:
        if worker.returncode is None:
            end_descendants(worker.pid)
            send(worker.pid, signal.SIGKILL)
        worker.stdin.close()
        await worker.wait()
    if status != 0 or not data:
        raise _failure(task, status, errors.read_text(errors="replace"))
    return Answer.model_validate_json(data)


def _failure(task: Task, status: int, errors: str) -> GradingError:
    lines = errors.strip().splitlines()
    what = lines[-1].strip() if lines else "it wrote nothing"
    how = f"was ended by signal {-status}" if status < 0 else "failed"
    error = GradingError(f"the grader of {task.id} {how}: {what}; this is no fault of the submission")
    error.add_note(errors[-20_000:])
    return error
