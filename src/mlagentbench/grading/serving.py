"""The inside of a grader's talk: answers a grader's questions, in a sandbox, beside code that is not told of the pipe.

    class Server:
        def answer(self, question: Frame) -> Answer: ...

    questions, answers = private_pipes()
    serve(questions, answers, Server().answer, max_values=2**27, code=code)

Answers go to a copy of standard output; what the code prints goes to standard error. This file also runs inside the sandbox, and imports
of this package only what does so too.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from mlagentbench.grading.frames import FAILED, Array, Frame, receive, send

HELLO, IMPORT = 1, 2
"""The first two questions to timed code (`timed.py`): to stand and tell the processor time used so far; and to import `train.py`."""

Answer = tuple[str, tuple[Array, ...]]
"""A text and some arrays."""


def private_pipes() -> tuple[int, int]:
    """Standard input and output as descriptors of our own, and nothing and standard error in their places."""
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return questions, answers


def serve(questions: int, answers: int, answer: Callable[[Frame], Answer], *, max_values: int, code: str) -> None:
    """Answer questions until there are no more, or one fails; then the process ends, whatever else runs in it.

    Args:
        questions: the descriptor they come from.
        answers: the descriptor for the answers.
        answer: gives one.
        max_values: how many numbers a question may hold.
        code: the folder of the code that is graded; what it raises is told with the file and the line.
    """
    while True:
        try:
            question = receive(questions, max_values)
        except EOFError:
            return
        try:
            text, arrays = answer(question)
        except BaseException as error:  # the code may raise anything, and its reason is wanted
            send(answers, Frame(FAILED, question.number, last_line(error, code)))
            os._exit(1)  # its threads, if any, are not waited for
        send(answers, Frame(question.kind, question.number, text, arrays))


def plain(value: Any, what: str) -> Array:
    """Numbers as they go over the pipe; whatever is still to be worked out is worked out here, while the clock runs.

    Raises:
        TypeError: these are no real numbers.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be an array of real numbers, not of {array.dtype}")
    return np.asarray(array, dtype="<f8", order="C")


def last_line(error: BaseException, code: str) -> str:
    """What an error says, and where in the code it was raised."""
    line = traceback.format_exception_only(error)[-1].strip()
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(code)]
    return f"{line} ({os.path.relpath(places[-1].filename, code)}, line {places[-1].lineno})" if places else line
