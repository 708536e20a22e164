"""Import the agent's `train.py` in the sandbox, and continue the grader's prompts with it; in the starter's sandbox also judge tokens.

Arguments: the processor core to stay on, or -1; then `reference` where the library's own model is to judge tokens. The agent gains nothing
by changing this process, since the grader checks and times it from outside.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mlagentbench.grading.code.protocol import Array, Frame
from mlagentbench.grading.code.restrict import confine, load_native_code
from mlagentbench.grading.code.server import HELLO, IMPORT, Answer, plain, private_pipes, serve, serve_each

LOAD, GENERATE, JUDGE = range(3, 6)
MAX_VALUES = 2**20
MODEL = "model"
LOADED = ("AutoModelForCausalLM", "AutoTokenizer", "LlamaForCausalLM")
"""Names of transformers that are accessed so that the modules they need are loaded before `confine` forbids to load native code."""


def main() -> None:
    """Answer the grader's requests until there are no more."""
    # Imported here, since the grader imports this module for its constants, and needs neither.
    import torch
    import transformers

    questions, answers = private_pipes()
    load_native_code("numpy", "safetensors", "tokenizers")
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for name in LOADED:
        getattr(transformers, name)
    code = os.path.abspath("code")
    if "reference" in sys.argv:
        reference = transformers.LlamaForCausalLM.from_pretrained("code/model", dtype=torch.float32).eval()
        serve_each(questions, answers, functools.partial(_answers, code, reference), max_values=MAX_VALUES, code=code)
    else:
        serve(questions, answers, _answers(code), max_values=MAX_VALUES, code=code)


def _answers(code: str, reference: Any = None) -> Callable[[Frame], Answer]:
    """Confine this process, and return what answers the questions to the code in it."""
    os.chdir(code)
    unconfined = confine(int(sys.argv[1]) if int(sys.argv[1]) >= 0 else None)
    sys.path.insert(0, code)
    return _GeneratorServer(unconfined, reference).answer


class _GeneratorServer:
    def __init__(self, unconfined: str, reference: Any) -> None:
        self._unconfined = unconfined
        self._reference = reference
        self._train: Any = None
        self._model: Any = None

    def answer(self, question: Frame) -> Answer:
        if question.kind == HELLO:
            return self._unconfined, (np.array([time.process_time()]),)
        if question.kind == IMPORT:
            self._train = importlib.import_module("train")
            return "", ()
        if question.kind == LOAD:
            self._model = self._train.load(MODEL)
            return "", ()
        if question.kind == GENERATE:
            prompt, count = question.arrays
            return "", (plain(self._train.generate(self._model, prompt.astype(np.int64), int(count[0])), "what generate returns"),)
        return "", (self._judge(*question.arrays),)

    def _judge(self, prompt: Array, tokens: Array) -> Array:
        """Return how far each token's logit is below the highest, in standard deviations of the logits at its position."""
        import torch

        row = torch.from_numpy(np.concatenate((prompt, tokens)).astype(np.int64))
        with torch.inference_mode():
            logits = self._reference(input_ids=row[None, :-1], use_cache=False).logits[0, len(prompt) - 1 :].double()
        chosen = logits.gather(1, row[len(prompt) :, None])[:, 0]
        return np.asarray(((logits.max(dim=1).values - chosen) / logits.std(dim=1)).numpy(), dtype=np.float64)


if __name__ == "__main__":
    main()
