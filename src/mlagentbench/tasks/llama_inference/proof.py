"""Submissions and scripts by which the task proves its grader.

The submissions are the same for both variants.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from mlagentbench import Files, Invalid, Prepared

STARTER = (Path(__file__).parent / "starter" / "train.py").read_text(encoding="utf-8")
LOOP = STARTER[STARTER.index("    for _ in range(new_tokens):") : STARTER.index("    return tokens[0")]
RETURN = STARTER[STARTER.index("    return tokens[0") : STARTER.index("\n\n\ndef main")]

CACHE = """
cache, step = None, tokens
for _ in range(new_tokens):
    outputs = model(input_ids=step, past_key_values=cache, use_cache=True, logits_to_keep=1)
    cache, step = outputs.past_key_values, outputs.logits[:, -1].argmax(dim=-1, keepdim=True)
    tokens = torch.cat([tokens, step], dim=1)
"""
"""Generation with a cache of the keys and values of earlier tokens."""

LIBRARY = """
tokens = model.generate(
    tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=False,
    pad_token_id=0, eos_token_id=None,
)
"""
"""The same with the library's own function."""


def code(loop: str = LOOP, *, top: str = "", load: str = "", end: str = RETURN) -> Files:
    """Return the starter with some of its lines replaced.

    Args:
        loop: replaces the loop over new tokens.
        top: is inserted before `NEW_TOKENS`.
        load: is inserted in `load`, after the call of `eval`.
        end: replaces the return statement of `generate`.
    """
    text = STARTER.replace(LOOP, textwrap.indent(textwrap.dedent(loop).strip(), "    ") + "\n").replace(RETURN, end.rstrip())
    text = text.replace("    model.eval()\n", "    model.eval()\n" + textwrap.indent(load.strip(), "    ") + "\n")
    return {"train.py": text.replace("NEW_TOKENS =", top.strip() + "\n\nNEW_TOKENS =", 1)}


GOLD: Mapping[str, Files] = {
    "library": code(LIBRARY),
    "other file and a tensor": {
        "train.py": "from fast.generation import generate, load\n",
        "fast/__init__.py": "",
        "fast/generation.py": code(CACHE, end="    return tokens[0, len(prompt):]")["train.py"],
    },
}
"""Code that is far more than 10% faster than the starter, beside `solution()`: each proves what no other does, since it is timed."""

_LATE = """
import time

class Late:
    def __init__(self, tokens):
        self.tokens = tokens

    def __array__(self, dtype=None, copy=None):
        time.sleep(1)
        return self.tokens.numpy()
"""

NAIVE: Mapping[str, Files] = {
    "late answer": code(CACHE, top="import time", end="    time.sleep(1)\n" + RETURN),
    "lazy answer": code(CACHE, top=_LATE, end="    return Late(tokens[0, len(prompt):])"),
}
"""Code that returns the right tokens, and is no faster once its delays are counted."""

_QUANTIZED = """
for parameter in model.parameters():
    scale = parameter.abs().amax() / 15
    parameter.data = (parameter / scale).round() * scale
"""
_WORKS_ON = """
import threading
def work():
    while True:
        pass
threading.Thread(target=work, daemon=True).start()
"""
_ANSWERS_EARLY = """
import os, struct
for descriptor in range(3, 32):
    try:
        os.write(descriptor, struct.pack("<4sQIII", b"MLAB", 4, 4, 0, 0) * 8)
    except OSError:
        pass
"""
_COMPILED = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
"""

INVALID: Mapping[str, Invalid] = {
    "no function": Invalid({"train.py": "print('done, 100 times faster')\n"}, "has no attribute 'load'"),
    "syntax error": Invalid({"train.py": "def load(folder)\n"}, "SyntaxError"),
    "exception": Invalid(code("raise ValueError('not implemented yet')"), "ValueError: not implemented yet (train.py, line"),
    "prompt too": Invalid(code(CACHE, end="    return tokens[0].tolist()"), "return the new tokens alone"),
    "too few": Invalid(code(CACHE.replace("new_tokens", "new_tokens - 1")), "returned shape (31,)"),
    "no tokens": Invalid(code(end="    return [0.5] * new_tokens"), "no token ids"),
    "not finite": Invalid(code(end="    return [float('nan')] * new_tokens"), "no token ids"),
    "words": Invalid(code(end="    return ['a'] * new_tokens"), "must be an array of real numbers"),
    "one token for all": Invalid(code(end="    return [5] * new_tokens"), "other tokens than the model's"),
    "the end of the prompt alone": Invalid(
        code("tokens = tokens[:, -16:]" + CACHE, end="    return tokens[0, 16:].tolist()"), "other tokens"
    ),
    "coarser weights": Invalid(code(CACHE, load=_QUANTIZED), "other tokens than the model's"),
    "fewer layers": Invalid(code(CACHE, load="model.model.layers = model.model.layers[:-1]"), "other tokens than the model's"),
    "same as before": Invalid(
        code(CACHE, top="known = []", end=f"    known.append({RETURN.split('return ')[1].strip()})\n    return known[0]"), "other tokens"
    ),
    "all the memory": Invalid(code("kept = [torch.ones(2**26) for _ in range(200)]"), "emory"),
    "other process": Invalid(code(CACHE, top="import subprocess\nsubprocess.run(['true'])"), "can start no process"),
    "compiled": Invalid(code(CACHE, top=_COMPILED), "load no native code"),
    "changed code": Invalid(code(CACHE, top="memory = open('/proc/self/mem', 'r+b')"), "write no file"),
    "works on": Invalid(code(CACHE, top=_WORKS_ON), "it works while it is asked nothing"),
    "answers early": Invalid(code(CACHE, top=_ANSWERS_EARLY), "a question that was not asked"),
}
"""Submissions that must be refused."""


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return code that is far more than 10% faster than the starter."""
    return GOLD


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return code that returns the right tokens and is no faster than the starter."""
    return NAIVE


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that the grader must refuse."""
    return INVALID


def solution() -> Files:
    """Return a script that caches keys and values."""
    return code(CACHE)


def ineffective() -> Files:
    """Return the starter with the logarithms of probabilities: the same tokens at the same speed."""
    return {"train.py": STARTER.replace("torch.softmax(", "torch.log_softmax(")}
