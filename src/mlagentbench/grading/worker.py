"""The process in which submissions are graded: `python -m mlagentbench.grading.worker`.

It reads requests from standard input and writes each answer to the standard output that it was started with, each as a line of JSON. When
standard input closes, the caller is gone and the process ends. A grader's bug is not caught: its traceback goes to standard error, and the
exit status shows it.
"""

from __future__ import annotations

import functools
import os
import resource
import threading
from pathlib import Path
from queue import SimpleQueue

from mlagentbench.errors import InvalidSubmission, SandboxUnavailable
from mlagentbench.grading.context import GradingContext
from mlagentbench.grading.kept import KeptSandboxes
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import Record, Score, Variant
from mlagentbench.sandbox import isolation
from mlagentbench.task.catalogue import load_task
from mlagentbench.util.text import one_line

_choose = functools.cache(isolation.choose)  # finding out what the machine supports takes a while, so once is enough


class Request(Record):
    """What to grade."""

    task: Path
    """The task's path, as `load_task` takes it."""
    submission: Path
    private: Path
    scratch: Path
    kept: Path
    """A folder that lasts as long as this process, for the sandboxes that gradings keep."""
    variant: Variant
    seed: int | None
    sandbox: SandboxChoice
    memory_mb: int


class GradingOutcome(Record):
    """The outcome of a grading: exactly one of these is set."""

    score: Score | None = None
    invalid: str | None = None
    unavailable: str | None = None
    """Why this machine cannot give the sandbox that was asked for."""


def main() -> None:
    """Answer requests, one after another, until standard input closes."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what a grader prints must not mix with the answers
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sandboxes = None
    with os.fdopen(answers, "wb") as out:
        while True:
            request = Request.model_validate_json(requests.get())
            resource.setrlimit(resource.RLIMIT_DATA, (request.memory_mb << 20,) * 2)
            sandboxes = sandboxes or KeptSandboxes(request.kept)
            out.write(answer(request, sandboxes).model_dump_json().encode() + b"\n")
            out.flush()


def answer(request: Request, sandboxes: KeptSandboxes) -> GradingOutcome:
    """Grade one submission in this process, with the sandboxes that earlier gradings have left."""
    task = load_task(request.task)
    grader = task.module("grade")
    assert grader is not None, "load_task has seen it"
    try:
        context = GradingContext(
            submission=SubmissionFiles(request.submission),
            starter=SubmissionFiles(task.starter),
            private=request.private,
            variant=request.variant,
            seed=request.seed,
            isolation=_choose(request.sandbox),
            scratch=request.scratch,
            sandboxes=sandboxes,
        )
        for name in task.spec.submission.required:
            with context.submission.open(name):
                pass
        score = grader.grade(context)
        if not isinstance(score, Score):
            raise TypeError(f"grade() returned {score!r:.80}, which is no Score")
        return GradingOutcome(score=score)
    except InvalidSubmission as reason:
        return GradingOutcome(invalid=one_line(str(reason)))
    except SandboxUnavailable as error:
        return GradingOutcome(unavailable=str(error))


def _listen(requests: SimpleQueue[bytes]) -> None:
    """Queue requests, and end this process when standard input closes, whatever is being graded."""
    with open(0, "rb", closefd=False) as questions:
        for line in questions:
            requests.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
