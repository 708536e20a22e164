"""Answer a grader's questions inside a sandbox, beside code that is not given the pipe.

    class Server:
        def answer(self, question: Frame) -> Answer: ...

    questions, answers = private_pipes()
    serve(questions, answers, Server().answer, max_values=2**27, code=code)

Answers go to a copy of standard output; what the code prints goes to standard error. This file runs inside the sandbox, and so imports only
those modules of this package that are copied there.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

import numpy as np

from mlagentbench.grading.code.protocol import FAILED, Array, Frame, receive, send

HELLO, IMPORT = 1, 2
"""The first two questions to timed code (`timing.py`): report the processor time used so far, and import `train.py`."""

Answer = tuple[str, tuple[Array, ...]]
"""A text and some arrays."""


def private_pipes() -> tuple[int, int]:
    """Move standard input and output to new descriptors and return these; put /dev/null and standard error in their places."""
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return questions, answers


def serve(questions: int, answers: int, answer: Callable[[Frame], Answer], *, max_values: int, code: str) -> None:
    """Answer questions until the pipe closes. Where one fails, send the reason and end the process, whatever else runs in it.

    Args:
        questions: the descriptor to read questions from.
        answers: the descriptor to write answers to.
        answer: answers one question.
        max_values: how many numbers a question may hold.
        code: the folder of the graded code; the reason names the file and the line where it raised.
    """
    while True:
        try:
            question = receive(questions, max_values)
        except EOFError:
            return
        try:
            text, arrays = answer(question)
        except BaseException as error:  # the code may raise anything, and the grader needs the reason
            send(answers, Frame(FAILED, question.number, last_line(error, code)))
            os._exit(1)  # its threads, if any, are not waited for
        send(answers, Frame(question.kind, question.number, text, arrays))


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
