"""Answer a grader's questions inside a sandbox, beside code that is not given the pipe.

    class Server:
        def answer(self, question: Frame) -> Answer: ...

    questions, answers = private_pipes()
    serve(questions, answers, Server().answer, max_values=2**27, code=code)

Answers go to a copy of standard output; what the code prints goes to standard error. This file runs inside the sandbox, and so imports only
those modules of this package that are copied there.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from mlagentbench.grading.code.protocol import FAILED, Array, Frame, receive, send

HELLO, IMPORT = 1, 2
"""The first two questions to timed code (`timing.py`): report the processor time used so far, and import `train.py`."""

END = 2**16
"""The question that ends a process of `serve_each`; no task has so many kinds of its own."""
ENDED, FAILED_ONE, BROKEN = 64, 65, 66
"""The exit statuses of a process that was asked to end, of one that has sent why a question failed, and of one that could not do either."""

Answer = tuple[str, tuple[Array, ...]]
"""A text and some arrays."""


def private_pipes() -> tuple[int, int]:
    """Move standard input and output to new descriptors and return these; put /dev/null and standard error in their places."""
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return questions, answers


def serve(questions: int, answers: int, answer: Callable[[Frame], Answer], *, max_values: int, code: str) -> bool:
    """Answer questions until the pipe closes, or `END`. Where one fails, send the reason and end the process, whatever else runs in it.

    Args:
        questions: the descriptor to read questions from.
        answers: the descriptor to write answers to.
        answer: answers one question.
        max_values: how many numbers a question may hold.
        code: the folder of the graded code; the reason names the file and the line where it raised.

    Returns:
        Whether `END` came, so that the pipe is still open.
    """
    while True:
        try:
            question = receive(questions, max_values)
        except EOFError:
            return False
        if question.kind == END:
            send(answers, Frame(END, question.number))
            return True
        try:
            text, arrays = answer(question)
        except BaseException as error:  # the code may raise anything, and the grader needs the reason
            send(answers, Frame(FAILED, question.number, last_line(error, code)))
            os._exit(FAILED_ONE)  # its threads, if any, are not waited for
        send(answers, Frame(question.kind, question.number, text, arrays))


def serve_each(questions: int, answers: int, make: Callable[[], Callable[[Frame], Answer]], *, max_values: int, code: str) -> None:
    """Serve each grading as `serve` does, in a process of its own that is forked from this one, until the pipe closes.

    So the packages imported before this call are imported once for all gradings (`GradingContext.kept_sandbox`), while none of them can
    find anything that an earlier one left in memory. Call it for the task's own code only, before anything of a submission is read, and
    while this process has no thread that computes.

    Args:
        questions: the descriptor to read questions from.
        answers: the descriptor to write answers to.
        make: called in each new process; returns what answers one question.
        max_values: as in `serve`.
        code: as in `serve`.
    """
    gc.collect()
    gc.freeze()  # the collector writes to every object, and would copy this process's memory into each of the others
    while True:
        process = os.fork()
        if not process:
            _serve_one(questions, answers, make, max_values, code)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status not in (ENDED, FAILED_ONE):
            os._exit(status if status >= 0 else 128 - status)


def _serve_one(questions: int, answers: int, make: Callable[[], Callable[[Frame], Answer]], max_values: int, code: str) -> NoReturn:
    """Serve one grading in this process, and end it; where the pipe has closed, so that its parent ends too."""
    try:
        os._exit(ENDED if serve(questions, answers, make(), max_values=max_values, code=code) else BROKEN)
    except BaseException:
        traceback.print_exc()
    os._exit(BROKEN)


def plain(value: object, what: str) -> Array:
    """Convert an array to what goes over the pipe; lazy values are computed here, while the clock runs.

    Raises:
        TypeError: the values are no real numbers.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be an array of real numbers, not of {array.dtype}")
    return np.asarray(array, dtype="<f8", order="C")


def last_line(error: BaseException, code: str) -> str:
    """Return an error's message and, where it came through the code, the file and line there."""
    line = traceback.format_exception_only(error)[-1].strip()
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(code)]
    return f"{line} ({os.path.relpath(places[-1].filename, code)}, line {places[-1].lineno})" if places else line
