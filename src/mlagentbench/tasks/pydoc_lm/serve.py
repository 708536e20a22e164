"""Import the agent's `model.py` in the sandbox, pass it each symbol that the grader sends, and return its probabilities.

The grader sends a symbol only after it has received the probabilities for it, so the agent's code cannot look ahead, whatever it does to
this process.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import numpy as np

from mlagentbench.grading.code.protocol import Frame
from mlagentbench.grading.code.server import Answer, plain, private_pipes, serve

LOAD, START, STEP = range(1, 4)
MAX_VALUES = 2**16


def main() -> None:
    """Answer the grader's requests until there are no more."""
    questions, answers = private_pipes()
    code = os.path.abspath("code")
    os.chdir(code)
    sys.path.insert(0, code)
    serve(questions, answers, _CharacterModelServer().answer, max_values=MAX_VALUES, code=code)


class _CharacterModelServer:
    def __init__(self) -> None:
        self._model: Any = None

    def answer(self, question: Frame) -> Answer:
        if question.kind == LOAD:
            self._model = importlib.import_module("model").Model()
            return "", ()
        if question.kind == START:
            self._model.start(int(question.arrays[0][0]))
            return "", ()
        return "", (plain(self._model.step(question.arrays[0].astype(np.int64)), "what step returns"),)


if __name__ == "__main__":
    main()
