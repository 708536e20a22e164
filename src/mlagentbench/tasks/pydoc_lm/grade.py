"""Grade a language model by the bits per character that it needs for unseen text.

The model runs in a sandbox process (`serve.py`), and the text stays in the grader. Each step sends the last symbol of each stream and
receives the probabilities of the next one, which is sent only after that. So the model cannot look ahead, and since the bits are computed
here, it cannot misreport them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mlagentbench import CodeClient, GradingContext, InvalidSubmission, Score, ScriptLimits, row_score
from mlagentbench.grading.code.protocol import Array
from mlagentbench.tasks.pydoc_lm.alphabet import ALPHABET, END, SYMBOLS, streams
from mlagentbench.tasks.pydoc_lm.serve import LOAD, START, STEP

SERVE = Path(__file__).with_name("serve.py")
STREAMS = 32
LOAD_SECONDS = 120.0
STEP_SECONDS = 60.0
LIMITS = ScriptLimits(seconds=900, memory_mb=6144, processes=512, file_mb=16, workspace_mb=2048)
"""Limits of the model's sandbox; the seconds are for the whole text."""
MAX_BYTES = 512 * 2**20
ROUNDING = 1e-4
"""How far the sum of a stream's probabilities may be from 1, due to single precision; they are then divided by it."""


def grade(context: GradingContext) -> Score:
    """Score the mean of -log2 of the probabilities that the model gave to the symbols of the text.

    Raises:
        InvalidSubmission: the model cannot be run, takes too long, or does not return probabilities.
    """
    text = streams(json.loads((context.private / "test.json").read_text(encoding="utf-8")), STREAMS)
    with context.sandbox(context.submission, SERVE, packages=None, limits=LIMITS, max_code_bytes=MAX_BYTES) as process:
        given = _read(CodeClient(process, InvalidSubmission), text)
    bits = -np.log2(given)
    return row_score(
        bits.mean(axis=1),
        details={
            "symbols": text.size,
            "streams": STREAMS,
            "bits_in_first_half": float(bits[:, : text.shape[1] // 2].mean()),
            "bits_in_second_half": float(bits[:, text.shape[1] // 2 :].mean()),
            "least_probability": float(given.min()),
            "isolation": context.isolation.isolation,
        },
    )


def _read(talk: CodeClient, text: np.ndarray) -> Array:
    """Return the probability that the model gives to each symbol of a text, in the text's shape, (streams, length)."""
    count, length = text.shape
    talk.ask(LOAD, doing="importing model.py and making a Model", seconds=LOAD_SECONDS)
    talk.ask(START, (np.array([float(count)]),), doing=f"start({count})", seconds=LOAD_SECONDS)
    given = np.empty(text.shape)
    last = np.full(count, float(END))
    for place in range(length):
        doing = f"step {place + 1:,} of {length:,}"
        answer = talk.ask(STEP, (last,), doing=doing, seconds=STEP_SECONDS, count=1, max_values=2 * count * SYMBOLS)
        given[:, place] = _checked(answer.arrays[0], text[:, place], doing)
        last = text[:, place].astype(np.float64)
    return given


def _checked(probabilities: Array, symbols: np.ndarray, doing: str) -> Array:
    """Check the probabilities of all symbols, and return those of the next ones, `symbols`.

    Raises:
        InvalidSubmission: the array is not one of probabilities, or a next symbol has the probability 0.
    """
    count = len(symbols)
    if probabilities.shape != (count, SYMBOLS):
        raise InvalidSubmission(f"{doing} returned an array of shape {probabilities.shape}; return one of ({count}, {SYMBOLS})")
    if not (np.isfinite(probabilities).all() and probabilities.min() >= 0):
        raise InvalidSubmission(f"{doing} returned numbers that are negative or not finite; return probabilities, not their logarithms")
    sums = probabilities.sum(axis=1)
    if np.abs(sums - 1).max() > ROUNDING:
        worst = sums[np.abs(sums - 1).argmax()]
        raise InvalidSubmission(f"{doing} returned probabilities that add up to {worst:.6g} in a stream; each row must add up to 1")
    given = probabilities[np.arange(count), symbols] / sums
    if given.min() <= 0:
        name = repr(ALPHABET[symbols[given.argmin()]]) if symbols[given.argmin()] != END else "the end"
        raise InvalidSubmission(f"{doing} gave {name} the probability 0, and it came; give each symbol some probability")
    return np.asarray(given, dtype=np.float64)
