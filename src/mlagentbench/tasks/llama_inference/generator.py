"""Code that generates, in its sandbox, asked and checked from outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlagentbench.errors import MLAgentBenchError
from mlagentbench.grading.frames import Array
from mlagentbench.grading.timed import Rules, TimedProcess
from mlagentbench.sandbox.process import SandboxProcess
from mlagentbench.tasks.llama_inference.serve import GENERATE, JUDGE, LOAD

NEW_TOKENS = 32
TOLERANCE = 1e-3
"""Standard deviations of the logits by which a token may be below the best: rounding in float32 makes some 1e-6 of difference."""
LOAD_SECONDS = 120.0
JUDGE_SECONDS = 120.0
RULES = Rules(
    has="the standard library, torch, transformers, tokenizers, safetensors and numpy, all loaded before it",
    work="generate",
    native="these",
)

Judge = Callable[[Array, Array], Array]


class Generator(TimedProcess):
    """A `train.py` in its sandbox; what it does wrong raises `blame`."""

    def __init__(self, process: SandboxProcess, blame: type[MLAgentBenchError]) -> None:
        super().__init__(process, blame, RULES)
        self.worst = 0.0
        """How far below the best a token was at most."""

    def load(self) -> None:
        """Have it load the model."""
        self.ask(LOAD, doing="load", seconds=LOAD_SECONDS)

    def generate(self, prompt: Array, vocabulary: int, seconds: float) -> tuple[Array, float]:
        """Have it continue a prompt.

        Args:
            prompt: token ids.
            vocabulary: how many there are.
            seconds: after which it is given up.

        Returns:
            The tokens, and the seconds that each took.
        """
        count = np.array([NEW_TOKENS], dtype=np.float64)
        found, taken = self.time(GENERATE, (prompt, count), doing="generate", seconds=seconds, max_values=16 * (len(prompt) + NEW_TOKENS))
        if found.shape != (NEW_TOKENS,):
            raise self.blame(
                f"generate returned shape {found.shape} instead of {(NEW_TOKENS,)}: return the new tokens alone, as many as asked for;"
                " an end token ends nothing"
            )
        if not ((found >= 0) & (found < vocabulary) & (found == np.floor(found))).all():
            raise self.blame(f"generate returned numbers that are no token ids: these are whole numbers from 0 to {vocabulary - 1}")
        return found, taken / NEW_TOKENS

    def check(self, prompt: Array, tokens: Array, judge: Judge) -> None:
        """See that each token is the model's own choice."""
        below = judge(prompt, tokens)
        self.worst = max(self.worst, float(below.max()))
        wrong = np.flatnonzero(~(below <= TOLERANCE))
        if wrong.size:
            place = int(wrong[0])
            raise self.blame(
                f"generate returned other tokens than the model's: new token {place + 1} of {NEW_TOKENS} is not the most probable one after"
                f" those before it; its logit is {below[place]:.2g} standard deviations below the best, more than {TOLERANCE:g}"
            )

    def judge(self, prompt: Array, tokens: Array) -> Array:
        """Ask the reference beside the starter: (tokens,), how far each is below the best."""
        return self.ask(JUDGE, (prompt, tokens), doing="judging tokens", seconds=JUDGE_SECONDS, count=1, max_values=len(tokens)).arrays[0]
