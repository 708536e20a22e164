"""Time the agent's layer and the starter's in turns, and check every number that either returns.

Each layer runs in a sandbox process of its own (`serve.py`), confined to one core, one process and the native code of numpy
(`grading/code/restrict.py`). Every trial sends new weights, biases and inputs. The clock starts before their first byte is sent and stops
when the output's last byte has been received, and the output must equal a reference computed here. So a layer cannot compute anything
before the trial, after it, or in another process. Between trials a layer is frozen, so that it cannot slow down the other; twice it is left
running, and must then use almost no processor time. Time in which other programs had the core is subtracted (`grading/code/monitor.py`), so
the starter compared with itself stays within 3% even where every core is busy. Time that other virtual machines take from the cores cannot
be seen; it was up to 11% in sixteen runs beside such machines.

A score includes the transfer through the pipes: 0.1 ms at the mini size and 0.3 ms at the full one, measured with a layer that returns
zeros, where the best numpy code takes 0.45 and 1.2 ms and the starter 0.19 and 1.2 s.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mlagentbench import GradingContext, GradingError, InvalidSubmission, Score, ScriptLimits, SubmissionFiles
from mlagentbench.grading.code.timing import compare, in_turns, timing_core
from mlagentbench.records import Variant
from mlagentbench.sandbox.process import SandboxProcess
from mlagentbench.tasks.vectorization.layer import Case, Layer, draw
from mlagentbench.util.machine import ONE_THREAD

SERVE = Path(__file__).with_name("serve.py")
LIMITS = ScriptLimits(seconds=300, memory_mb=1024, processes=256, file_mb=16, workspace_mb=256)
"""Limits of one layer's sandbox; its seconds, without those frozen, leave time in the 600 of the whole grading."""
SMALL_SECONDS = 20.0
"""Time limit of a forward pass on one of the small cases."""


class LayerTiming(NamedTuple):
    """The timing of a variant."""

    case: Case
    rounds: int
    """Planned rounds, in each of which both layers are timed once."""
    seconds: float
    """Time limit of a forward pass."""
    budget: float
    """Seconds of forward passes, of both layers, after which no further round begins."""


PLANS: dict[Variant, LayerTiming] = {
    "mini": LayerTiming(Case(2, 3, 28, 28, 16, 3, 1, 1), rounds=5, seconds=30.0, budget=10.0),
    "full": LayerTiming(Case(10, 3, 32, 32, 16, 3, 1, 1), rounds=7, seconds=60.0, budget=60.0),
}


def grade(context: GradingContext) -> Score:
    """Score the median seconds of the agent's forward pass; the baseline is the starter's median, measured in turns with it.

    Raises:
        InvalidSubmission: the layer cannot be run, returns wrong numbers, takes too long, or works elsewhere than in its forward pass.
        GradingError: the starter does one of these.
    """
    plan = PLANS[context.variant]
    # Each trial gets a generator of its own, so that the numbers of one trial tell a layer nothing about the next.
    seed = secrets.randbits(48) if context.seed is None else context.seed
    root = np.random.SeedSequence(seed)
    core = timing_core()

    def serve(code: SubmissionFiles) -> AbstractContextManager[SandboxProcess]:
        return context.sandbox(code, SERVE, (str(core),), packages=("numpy",), environment=ONE_THREAD, limits=LIMITS)

    with serve(context.submission) as submission_process, ExitStack() as stack:
        submission = Layer(submission_process, InvalidSubmission)
        # A layer that fails or computes wrong numbers is refused before the starter's process is started.
        lacking = submission.open()
        for case in odd_cases(_fresh(root)):
            inputs = draw(case, _fresh(root))
            submission.forward(case, inputs, SMALL_SECONDS)
            submission.untouched(inputs)
        submission.rest()
        submission.freeze()
        starter = Layer(stack.enter_context(serve(context.starter)), GradingError)
        starter.open()
        seconds = in_turns(
            submission,
            starter,
            lambda: draw(plan.case, _fresh(root)),
            lambda layer, inputs: layer.forward(plan.case, inputs, plan.seconds),
            rounds=plan.rounds,
            budget=plan.budget,
        )
        submission.rest()
    shape = [plan.case.batch, plan.case.in_channels, plan.case.height, plan.case.width]
    return compare(
        context, submission, starter, seconds, lacking, max_relative_error=submission.worst_error, input_shape=[*shape], seed=seed
    )


def odd_cases(rng: np.random.Generator) -> Sequence[Case]:
    """Draw small cases of random shape that include each stride from 1 to 3, padding from 0 to 2 and kernel size from 1 to 5."""
    paddings, kernels = rng.permutation([0, 1, 2, 0, 1, 2]), rng.permutation([1, 2, 3, 3, 4, 5])
    return [
        Case(
            batch=int(rng.integers(1, 4)),
            in_channels=int(rng.integers(1, 5)),
            height=int(kernel + rng.integers(0, 5)),
            width=int(kernel + rng.integers(5, 10)),
            out_channels=int(rng.integers(1, 6)),
            kernel_size=int(kernel),
            stride=1 + number % 3,
            padding=int(padding),
        )
        for number, (padding, kernel) in enumerate(zip(paddings, kernels, strict=True))
    ]


def _fresh(root: np.random.SeedSequence) -> np.random.Generator:
    return np.random.default_rng(root.spawn(1)[0])
