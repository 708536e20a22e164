"""Run the agent's processor with its weights inside a sandbox; it is called with the arguments from the model, which runs elsewhere."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import numpy as np

from mlagentbench.grading.code.protocol import Array, Frame
from mlagentbench.grading.code.server import Answer, plain, private_pipes, serve

LOAD, CALL = 1, 2
"""Build the processor with a set of weights, or call it."""
WEIGHTS = "weights{}.npz"
"""The file of a set of weights, by its number."""
PROCESSOR = "processor."
"""The prefix of the names of the processor's weights; the file may hold others too."""
MAX_VALUES = 2**27


def main() -> None:
    """Answer questions until the pipe closes."""
    questions, answers = private_pipes()
    code = os.path.abspath("code")
    sys.path.insert(0, code)
    serve(questions, answers, _ProcessorServer().answer, max_values=MAX_VALUES, code=code)


class _ProcessorServer:
    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._torch.manual_seed(0)
        self._processor: Any = None

    def answer(self, question: Frame) -> Answer:
        if question.kind == LOAD:
            number, hidden_dim = question.arrays[0].astype(int)
            return "", (self._load(int(number), int(hidden_dim)),)
        with self._torch.no_grad():
            new_hidden, messages = self._processor(*(self._torch.from_numpy(each.astype(np.float32)) for each in question.arrays))
        nothing = np.empty(0)
        return "", (plain(new_hidden, "the new hidden state"), nothing if messages is None else plain(messages, "the messages"))

    def _load(self, number: int, hidden_dim: int) -> Array:
        """Build the processor, replacing the one before; return the number of its weights."""
        with np.load(f"code/{WEIGHTS.format(number)}", allow_pickle=False) as arrays:
            state = {name: self._torch.from_numpy(arrays[name]) for name in arrays.files if name.startswith(PROCESSOR)}
        # The module around it gives its weights the names that they have in the model.
        holder = self._torch.nn.Module()
        holder.processor = importlib.import_module("processors").build_processor(hidden_dim)
        holder.load_state_dict(state)
        holder.eval()
        self._processor = holder.processor
        return np.array([sum(parameter.numel() for parameter in holder.parameters())], dtype=np.float64)


if __name__ == "__main__":
    main()
