"""Load the agent's tokenizer and weights inside the sandbox, with the libraries' own code, and answer the grader's questions about them.

None of the agent's code is run: `tokenizer.json` is read by tokenizers, `model.safetensors` by transformers, into one of its own classes.
The grader checks what is computed here: the tokens decode to the text, the probabilities add up, and no prediction depends on later tokens.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mlagentbench.grading.code.protocol import Array, Frame
from mlagentbench.grading.code.server import Answer, private_pipes, serve_each

LOAD, ENCODE, SCORE, LOGITS = range(1, 5)
MAX_VALUES = 2**24
THREADS = 16
"""The most threads to use; more do not make a model of this size faster."""


def main() -> None:
    """Answer questions until the pipe closes."""
    # Imported here, since the grader imports this module for its constants, and needs none of these; and before a process is forked for
    # each grading, so that they are imported once. The model is the starter's, and brings with it what others need too.
    import torch
    import transformers

    assert torch and transformers.GPT2LMHeadModel
    questions, answers = private_pipes()
    serve_each(questions, answers, lambda: _LanguageModelServer().answer, max_values=MAX_VALUES, code=os.path.abspath("code"))


class _LanguageModelServer:
    def __init__(self) -> None:
        self._tokenizer: Any = None
        self._model: Any = None

    def answer(self, question: Frame) -> Answer:
        if question.kind == LOAD:
            return "", (self._load(),)
        if question.kind == ENCODE:
            text = "".join(map(chr, question.arrays[0].astype(int)))
            ids = self._tokenizer.encode(text, add_special_tokens=False).ids
            decoded = self._tokenizer.decode(ids, skip_special_tokens=False)
            return "", (_array(ids), _array([ord(character) for character in decoded]))
        if question.kind == SCORE:
            inputs, targets = question.arrays
            return "", (self._score(inputs, targets),)
        inputs, places = question.arrays
        return "", (self._logits(inputs, places),)

    def _load(self) -> Array:
        """Load model and tokenizer; return how many tokens each knows, the parameters, and the longest input (0 where it is unknown)."""
        import torch
        from tokenizers import Tokenizer
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.set_verbosity_error()
        torch.set_num_threads(min(THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
        self._tokenizer = Tokenizer.from_file("code/tokenizer.json")
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        settings = dict(trust_remote_code=False, use_safetensors=True, local_files_only=True, dtype=torch.float32)
        settings |= dict(output_loading_info=True, ignore_mismatched_sizes=True)  # reported below, in words
        try:
            self._model, info = AutoModelForCausalLM.from_pretrained("code", attn_implementation="sdpa", **settings)
        except ValueError:  # older architectures have eager attention only
            self._model, info = AutoModelForCausalLM.from_pretrained("code", attn_implementation="eager", **settings)
        for what, words in (("missing_keys", "lacks"), ("mismatched_keys", "has the wrong shape for")):
            if info[what]:
                raise ValueError(f"model.safetensors {words} {sorted(map(str, info[what]))[0]}, which config.json calls for")
        self._model.eval()
        config = self._model.config
        switches = [getattr(each, "is_causal", True) for each in (config, *self._model.modules())]
        if not all(switches) or getattr(config, "use_bidirectional_attention", False):
            raise ValueError("the model looks ahead: config.json has attention in both directions; leave a causal model")
        parameters = sum(parameter.numel() for parameter in self._model.parameters())
        known = self._model.get_output_embeddings().weight.shape[0]
        return _array([known, self._tokenizer.get_vocab_size(), parameters, getattr(config, "max_position_embeddings", 0)])

    def _score(self, inputs: Array, targets: Array) -> Array:
        """Return the log-probability of each target after the inputs up to its place: (batch, length)."""
        import torch

        with torch.inference_mode():
            logits = self._forward(inputs)
            wanted = torch.from_numpy(targets.astype(np.int64))
            # Beside a large maximum, float32 would lose log(n), and each of n equal tokens would have a probability of 1.
            logits = logits - logits.amax(dim=-1, keepdim=True)
            found = logits.gather(-1, wanted[..., None])[..., 0] - torch.logsumexp(logits, dim=-1)
        return np.asarray(found.numpy(), dtype=np.float64)

    def _logits(self, inputs: Array, places: Array) -> Array:
        """Return the logits at some places of the first input: (places, tokens)."""
        import torch

        with torch.inference_mode():
            logits = self._forward(inputs)
        return np.asarray(logits[0, places.astype(np.int64)].numpy(), dtype=np.float64)

    def _forward(self, inputs: Array) -> Any:
        import torch

        # A cache would take memory, and no later call would use it.
        return self._model(input_ids=torch.from_numpy(inputs.astype(np.int64)), use_cache=False).logits.float()


def _array(values: list[int]) -> Array:
    return np.array(values, dtype=np.float64)


if __name__ == "__main__":
    main()
