"""Run the task's own model inside a sandbox, with the agent's weights and without any of the agent's code.

Where the model calls its processor, the grader receives the arguments, and sends back what the agent's processor returned.
"""

from __future__ import annotations

import importlib
import os
import sys
from queue import SimpleQueue
from threading import Thread
from types import ModuleType
from typing import Any

import numpy as np

from mlagentbench.grading.code.protocol import Array, Frame
from mlagentbench.grading.code.server import Answer, private_pipes, serve_each

LOAD, PREDICT, GO_ON = range(1, 4)
"""Load the weights; begin to predict a graph; continue with what the processor returned. The answer to the last two is the processor's next
arguments, or the prediction alone."""
PROCESSOR = "processor."
"""The prefix of the names of the processor's weights."""
MAX_VALUES = 2**27


def main() -> None:
    """Answer questions until the pipe closes."""
    questions, answers = private_pipes()
    importlib.import_module("torch")  # once for all gradings; the model is each grading's own
    code = os.path.abspath("code")
    serve_each(questions, answers, lambda: _ModelServer(code).answer, max_values=MAX_VALUES, code=code)


class _ModelServer:
    def __init__(self, code: str) -> None:
        sys.path.insert(0, code)
        self._torch: Any = importlib.import_module("torch")
        self._model: Any = None
        self._said: SimpleQueue[tuple[Array, ...] | BaseException] = SimpleQueue()
        """From the thread in which the model predicts: the processor's arguments, a prediction, or the error."""
        self._returned: SimpleQueue[tuple[Array, ...]] = SimpleQueue()

    def answer(self, question: Frame) -> Answer:
        if question.kind == LOAD:
            return "", (self._load(),)
        if question.kind == PREDICT:
            Thread(target=self._predict, args=question.arrays, daemon=True).start()
        else:
            self._returned.put(question.arrays)
        said = self._said.get()
        if isinstance(said, BaseException):
            raise said
        return "", said

    def _call_processor(self, *arguments: Any) -> tuple[Any, Any]:
        self._said.put(tuple(each.numpy().astype(np.float64) for each in arguments))
        hidden, *messages = (self._torch.from_numpy(each.astype(np.float32)) for each in self._returned.get())
        return hidden, messages[0] if messages[0].numel() else None

    def _load(self) -> Array:
        """Load all weights but the processor's; return the size of the hidden state and the number of these weights."""
        with np.load("code/checkpoint.npz", allow_pickle=False) as arrays:
            state = {name: self._torch.from_numpy(arrays[name]) for name in arrays.files}
        if "encode_pos.bias" not in state:
            raise ValueError("checkpoint.npz has no encode_pos.bias, by which the size of the hidden state is known")
        sys.modules["processors"] = self._absent_processors()
        self._model = importlib.import_module("model").Model(len(state["encode_pos.bias"]))
        self._model.load_state_dict({name: value for name, value in state.items() if not name.startswith(PROCESSOR)})
        self._model.eval()
        count = sum(parameter.numel() for parameter in self._model.parameters())
        return np.array([self._model.hidden_dim, count], dtype=np.float64)

    def _absent_processors(self) -> ModuleType:
        """Return a module in place of the agent's, whose processor passes each call to the grader, which calls the agent's."""
        processor = self._torch.nn.Module()
        processor.forward = self._call_processor
        module = ModuleType("processors")
        module.build_processor = lambda hidden_dim: processor  # type: ignore[attr-defined]
        return module

    def _predict(self, graph: Array) -> None:
        try:
            found = self._model.predict(self._torch.from_numpy(graph.astype(np.float32)))
            self._said.put((found.numpy().astype(np.float64),))
        except BaseException as error:  # `answer` raises it, in the main thread
            self._said.put(error)


if __name__ == "__main__":
    main()
