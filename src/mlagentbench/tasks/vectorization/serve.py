"""Runs inside the sandbox: imports the agent's `train.py` and puts the grader's arrays through its layer.

Arguments: the processor core to stay on, or -1. Answers go to a copy of standard output that the agent's code is not told of; what that
code prints goes to standard error. Nothing the agent does to this process helps it: the grader asks, checks and holds the clock outside.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback
from typing import Any

import numpy as np

from mlagentbench.grading.confine import confine, load_native_code
from mlagentbench.grading.frames import FAILED, Array, Frame, receive, send

HELLO, IMPORT, BUILD, FORWARD, SHOW = range(1, 6)
MAX_VALUES = 2**27


def main() -> None:
    """Answer questions until there are no more."""
    questions, answers = _private_pipes()
    load_native_code("numpy")
    code = os.path.abspath("code")
    library = [path for path in sys.path if os.path.isabs(path) and "site-packages" not in path and "dist-packages" not in path]
    unconfined = confine(int(sys.argv[1]) if int(sys.argv[1]) >= 0 else None)
    # With the standard library alone, any other package is simply not there, also where the sandbox hides none.
    sys.path[:] = [code, *library]
    server = _Server(unconfined, code)
    while True:
        try:
            question = receive(questions, MAX_VALUES)
        except EOFError:
            return
        try:
            text, arrays = server.answer(question)
        except BaseException as error:  # the agent's code may raise anything, and its reason is wanted
            send(answers, Frame(FAILED, question.number, _last_line(error, code)))
            os._exit(1)  # its threads, if any, are not waited for
        send(answers, Frame(question.kind, question.number, text, arrays))


class _Server:
    def __init__(self, unconfined: str, code: str) -> None:
        self._unconfined = unconfined
        self._code = code
        self._train: Any = None
        self._layer: Any = None
        self._x: Array = np.empty(0)

    def answer(self, question: Frame) -> tuple[str, tuple[Array, ...]]:
        if question.kind == HELLO:
            return self._unconfined, (np.array([time.process_time()]),)
        if question.kind == IMPORT:
            self._train = importlib.import_module("train")
            return "", ()
        if question.kind == BUILD:
            self._layer = self._train.Conv2DLayer(*(int(value) for value in question.arrays[0]))
            return "", (_plain(self._layer.weights, "weights"), _plain(self._layer.biases, "biases"))
        if question.kind == FORWARD:
            self._layer.weights, self._layer.biases, self._x = question.arrays
            return "", (_plain(self._layer.forward(self._x), "what forward returns"),)
        return "", (_plain(self._layer.weights, "weights"), _plain(self._layer.biases, "biases"), self._x)


def _private_pipes() -> tuple[int, int]:
    """Standard input and output as descriptors of our own, and nothing and standard error in their places."""
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return questions, answers


def _plain(value: Any, what: str) -> Array:
    """Numbers as they go over the pipe; whatever is still to be worked out is worked out here, while the clock runs."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be an array of real numbers, not of {array.dtype}")
    return np.asarray(array, dtype="<f8", order="C")


def _last_line(error: BaseException, code: str) -> str:
    line = traceback.format_exception_only(error)[-1].strip()
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(code)]
    return f"{line} ({os.path.relpath(places[-1].filename, code)}, line {places[-1].lineno})" if places else line


if __name__ == "__main__":
    main()
