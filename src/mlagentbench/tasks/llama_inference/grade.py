"""Time the agent's text generation and the starter's in turns, and check every token that either returns.

Each runs in a sandbox process of its own (`serve.py`), confined to one core, one process and the native code of torch and the libraries
loaded with it. Every trial has a new prompt, joined of two texts at a random position, so no table could hold its continuation. Each token
is checked with the library's own model and the original weights, after the tokens that the code itself returned before it. So a tie that
rounding decides does not make the tokens after it wrong.
"""

from __future__ import annotations

import json
import secrets
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mlagentbench import GradingContext, GradingError, InvalidSubmission, Score, ScriptLimits, SubmissionFiles
from mlagentbench.grading.code.protocol import Array
from mlagentbench.grading.code.timing import compare, in_turns, timing_core
from mlagentbench.records import Variant
from mlagentbench.sandbox.process import SandboxProcess
from mlagentbench.tasks.llama_inference.generator import NEW_TOKENS, Generator
from mlagentbench.util.machine import ONE_THREAD

SERVE = Path(__file__).with_name("serve.py")
LIMITS = ScriptLimits(seconds=1200, memory_mb=4096, processes=256, file_mb=16, workspace_mb=1024)
"""Limits of one sandbox; its seconds, without those frozen, leave time for the rest of the grading."""
ENVIRONMENT = {**ONE_THREAD, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class GenerationTiming(NamedTuple):
    """The timing of a variant."""

    rounds: int
    """Planned rounds, in each of which both are timed once."""
    seconds: float
    """Time limit of one call of generate."""
    budget: float
    """Sum of all seconds per token measured, of both, after which no further round begins."""


PLANS: dict[Variant, GenerationTiming] = {
    "mini": GenerationTiming(rounds=5, seconds=60.0, budget=20.0 / NEW_TOKENS),
    "full": GenerationTiming(rounds=5, seconds=240.0, budget=400.0 / NEW_TOKENS),
}


def grade(context: GradingContext) -> Score:
    """Score the median seconds per token; the baseline is the starter's median, measured in turns with it.

    Raises:
        InvalidSubmission: the code cannot be run, returns other tokens than the model's, takes too long, or works outside of generate.
        GradingError: the starter does one of these.
    """
    plan = PLANS[context.variant]
    seed = secrets.randbits(48) if context.seed is None else context.seed
    model = context.public / "model"
    vocabulary = int(json.loads((model / "config.json").read_text())["vocab_size"])
    prompts = np.load(context.private / "prompts.npy").astype(np.float64)
    rng = np.random.default_rng(seed)
    core = str(timing_core())

    def serve(code: SubmissionFiles, *arguments: str, kept: bool = False) -> AbstractContextManager[SandboxProcess]:
        return context.sandbox(
            code, SERVE, (core, *arguments), packages=None, data=(model,), environment=ENVIRONMENT, limits=LIMITS, kept=kept
        )

    generated: list[tuple[Generator, Array, Array]] = []

    def measure(generator: Generator, prompt: Array) -> float:
        tokens, seconds = generator.generate(prompt, vocabulary, plan.seconds)
        generated.append((generator, prompt, tokens))
        return seconds

    with serve(context.submission) as submission_process, ExitStack() as stack:
        submission = Generator(submission_process, InvalidSubmission)
        # Code that cannot be imported, or returns no tokens, is refused before the starter's process is started.
        lacking = submission.open()
        submission.load()
        warm_up = joined(prompts, rng)
        measure(submission, warm_up)
        submission.rest()
        submission.freeze()
        starter = Generator(stack.enter_context(serve(context.starter, "reference", kept=True)), GradingError)
        starter.open()
        starter.load()
        measure(starter, warm_up)

        def check() -> None:
            """Check the tokens so far, while nothing is timed."""
            while generated:
                generator, prompt, tokens = generated.pop()
                generator.check(prompt, tokens, starter.judge)

        check()
        submission.rest()
        seconds = in_turns(submission, starter, lambda: joined(prompts, rng), measure, rounds=plan.rounds, budget=plan.budget)
        with starter.awake():
            check()
        submission.rest()
    return compare(
        context,
        submission,
        starter,
        seconds,
        lacking,
        new_tokens=NEW_TOKENS,
        prompt_tokens=prompts.shape[1],
        most_below_best=submission.worst,
        seed=seed,
    )


def joined(prompts: Array, rng: np.random.Generator) -> Array:
    """Join the beginning of one prompt and the end of another to a prompt of the same length."""
    first, second = rng.choice(len(prompts), 2, replace=False)
    place = int(rng.integers(1, prompts.shape[1]))
    return np.concatenate((prompts[first, :place], prompts[second, place:]))
