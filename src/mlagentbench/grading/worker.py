"""The process in which submissions are graded: `python -m mlagentbench.grading.worker`.

A request comes as a line of JSON on standard input, its answer goes as a line of JSON to what standard output was at the start. Standard
input stays open meanwhile: when it closes, the asker is gone, and so is this process. A grader's bug is not caught: its traceback goes to
standard error and the exit status tells.
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
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.records import Record, Score, Variant
from mlagentbench.run_spec import SandboxChoice
from mlagentbench.sandbox import isolation
from mlagentbench.tasks.catalogue import load_task

_choose = functools.cache(isolation.choose)  # what a machine gives is tried once a process
MAX_REASON = 500
"""Characters of a reason: it may quote what the agent's code wrote."""


class Request(Record):
    """What to grade."""

    task: Path
    """The task's folder."""
    submission: Path
    private: Path | None
    scratch: Path
    variant: Variant
    seed: int | None
    sandbox: SandboxChoice
    memory_mb: int


class Answer(Record):
    """What came of it: one of these is set."""

    score: Score | None = None
    invalid: str | None = None
    unavailable: str | None = None
    """The sandbox asked for is not to be had."""


def main() -> None:
    """Answer requests, one after another, until nobody asks any more."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what a grader prints is no answer
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(answers, "wb") as out:
        while True:
            request = Request.model_validate_json(requests.get())
            resource.setrlimit(resource.RLIMIT_DATA, (request.memory_mb << 20,) * 2)
            out.write(answer(request).model_dump_json().encode() + b"\n")
            out.flush()


def answer(request: Request) -> Answer:
    """Grade one submission in this process."""
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
        )
        for name in task.spec.submission.required:
            with context.submission.open(name):
                pass
        score = grader.grade(context)
        if not isinstance(score, Score):
            raise TypeError(f"grade() returned {score!r:.80}, which is no Score")
        return Answer(score=score)
    except InvalidSubmission as reason:
        return Answer(invalid=one_line(str(reason)))
    except SandboxUnavailable as error:
        return Answer(unavailable=str(error))


def one_line(text: str) -> str:
    """A text on one line, cut, without characters that would steer a terminal."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(line.split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


def _listen(requests: SimpleQueue[bytes]) -> None:
    """Hand on what is asked, and end with the asker, whatever is being graded."""
    with open(0, "rb", closefd=False) as questions:
        for line in questions:
            requests.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
