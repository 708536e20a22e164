"""Import the agent's `train.py` in the sandbox, and pass the grader's arrays through its layer.

Arguments: the processor core to stay on, or -1. Answers go to a copy of standard output that the agent's code is not given; what that
code prints goes to standard error. The agent gains nothing by changing this process, since the grader checks and times it from outside.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any

import numpy as np

from mlagentbench.grading.code.protocol import Array, Frame
from mlagentbench.grading.code.restrict import confine, load_native_code
from mlagentbench.grading.code.server import HELLO, IMPORT, Answer, plain, private_pipes, serve

BUILD, FORWARD, SHOW = range(3, 6)
MAX_VALUES = 2**27


def main() -> None:
    """Answer the grader's requests until there are no more."""
    questions, answers = private_pipes()
    load_native_code("numpy")
    code = os.path.abspath("code")
    library = [path for path in sys.path if os.path.isabs(path) and "site-packages" not in path and "dist-packages" not in path]
    unconfined = confine(int(sys.argv[1]) if int(sys.argv[1]) >= 0 else None)
    # The path has only the standard library besides the code, so other packages cannot be imported even where no sandbox hides them.
    sys.path[:] = [code, *library]
    serve(questions, answers, _LayerServer(unconfined).answer, max_values=MAX_VALUES, code=code)


class _LayerServer:
    def __init__(self, unconfined: str) -> None:
        self._unconfined = unconfined
        self._train: Any = None
        self._layer: Any = None
        self._x: Array = np.empty(0)

    def answer(self, question: Frame) -> Answer:
        if question.kind == HELLO:
            return self._unconfined, (np.array([time.process_time()]),)
        if question.kind == IMPORT:
            self._train = importlib.import_module("train")
            return "", ()
        if question.kind == BUILD:
            self._layer = self._train.Conv2DLayer(*(int(value) for value in question.arrays[0]))
            return "", (plain(self._layer.weights, "weights"), plain(self._layer.biases, "biases"))
        if question.kind == FORWARD:
            self._layer.weights, self._layer.biases, self._x = question.arrays
            return "", (plain(self._layer.forward(self._x), "what forward returns"),)
        return "", (plain(self._layer.weights, "weights"), plain(self._layer.biases, "biases"), self._x)


if __name__ == "__main__":
    main()
