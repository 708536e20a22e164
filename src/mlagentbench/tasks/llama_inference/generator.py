"""Call an agent's text generation in its sandbox, and check the tokens that it returns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlagentbench.errors import MLAgentBenchError
from mlagentbench.grading.code.protocol import Array
from mlagentbench.grading.code.timing import Rules, TimedProcess
from mlagentbench.sandbox.process import SandboxProcess
from mlagentbench.tasks.llama_inference.serve import GENERATE, JUDGE, LOAD

NEW_TOKENS = 32
TOLERANCE = 1e-3
"""How far a token's logit may be below the highest, in standard deviations of the logits; rounding in float32 causes about 1e-6."""
LOAD_SECONDS = 120.0
JUDGE_SECONDS = 120.0
RULES = Rules(
    has="the standard library, torch, transformers, tokenizers, safetensors and numpy, all loaded before it",
    work="generate",
    native="these",
)

Judge = Callable[[Array, Array], Array]


class Generator(TimedProcess):
    """A `train.py` in its sandbox. Where it breaks a rule, methods raise `blame`."""

    def __init__(self, process: SandboxProcess, blame: type[MLAgentBenchError]) -> None:
        super().__init__(process, blame, RULES)
        self.worst = 0.0
        """Largest distance so far of a token's logit below the highest, in standard deviations of the logits."""

    def load(self) -> None:
        """Call `load` of `train.py`."""
        self.ask(LOAD, doing="load", seconds=LOAD_SECONDS)

    def generate(self, prompt: Array, vocabulary: int, seconds: float) -> tuple[Array, float]:
        """Call `generate` of `train.py` on a prompt, and time it.

        Args:
            prompt: token ids.
            vocabulary: the number of token ids.
            seconds: the time limit of the call.

        Returns:
            The new tokens, and the mean seconds per token.
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
        """Raise `blame` unless each new token is the most probable one after those before it, by the reference model."""
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
        """Return how far each token's logit is below the highest, (tokens,), by the reference model in the starter's sandbox."""
        return self.ask(JUDGE, (prompt, tokens), doing="judging tokens", seconds=JUDGE_SECONDS, count=1, max_values=len(tokens)).arrays[0]
