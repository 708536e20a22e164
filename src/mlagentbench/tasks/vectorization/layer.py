"""Call a convolution layer in its sandbox, and check its output against a reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlagentbench.errors import MLAgentBenchError
from mlagentbench.grading.code.protocol import Array
from mlagentbench.grading.code.timing import Rules, TimedProcess
from mlagentbench.sandbox.process import SandboxProcess
from mlagentbench.tasks.vectorization.serve import BUILD, FORWARD, SHOW

TOLERANCE = 1e-5
"""Largest relative error accepted: the largest absolute error over the largest absolute value of the reference."""
RULES = Rules(has="the standard library and numpy", work="forward", native="numpy")


class Case(NamedTuple):
    """The sizes of a layer and of its input."""

    batch: int
    in_channels: int
    height: int
    width: int
    out_channels: int
    kernel_size: int
    stride: int
    padding: int


class Inputs(NamedTuple):
    """The arrays of one forward pass."""

    weights: Array
    biases: Array
    x: Array


def draw(case: Case, rng: np.random.Generator) -> Inputs:
    """Draw weights, biases and inputs from the standard normal distribution."""
    return Inputs(
        rng.standard_normal((case.out_channels, case.in_channels, case.kernel_size, case.kernel_size)),
        rng.standard_normal(case.out_channels),
        rng.standard_normal((case.batch, case.in_channels, case.height, case.width)),
    )


def reference(case: Case, inputs: Inputs) -> Array:
    """Compute the output that forward must return: (batch, out_channels, out_height, out_width)."""
    edge = (case.padding, case.padding)
    padded = np.pad(inputs.x, ((0, 0), (0, 0), edge, edge))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (case.kernel_size, case.kernel_size), axis=(2, 3))
    windows = windows[:, :, :: case.stride, :: case.stride]
    out = np.tensordot(windows, inputs.weights, axes=((1, 4, 5), (1, 2, 3)))
    return np.asarray(out.transpose(0, 3, 1, 2) + inputs.biases[:, None, None], dtype=np.float64)


class Layer(TimedProcess):
    """A layer in its sandbox. Where it breaks a rule, methods raise `blame`."""

    def __init__(self, process: SandboxProcess, blame: type[MLAgentBenchError]) -> None:
        super().__init__(process, blame, RULES)
        self.worst_error = 0.0
        """The largest relative error so far."""

    def forward(self, case: Case, inputs: Inputs, seconds: float) -> float:
        """Build a new layer, run one forward pass, and check its output.

        Args:
            case: the sizes of the layer and its input.
            inputs: arrays of these sizes.
            seconds: the time limit of the pass.

        Returns:
            Seconds from the first byte of the inputs to the last of the output, without those in which other programs had the core.
        """
        self._build(case)
        expected = reference(case, inputs)
        doing = f"forward on an input of shape {inputs.x.shape}"
        out, taken = self.time(FORWARD, tuple(inputs), doing=doing, seconds=seconds, max_values=16 * expected.size)
        self._check(doing, case, out, expected)
        return taken

    def untouched(self, inputs: Inputs) -> None:
        """Raise `blame` if the last pass has changed its weights, biases or input."""
        values = sum(array.size for array in inputs)
        shown = self.ask(SHOW, doing="looking at the layer after forward", count=3, max_values=values)
        for name, given, left in zip(("weights", "biases", "its input"), inputs, shown.arrays, strict=True):
            if not np.array_equal(given, left):
                raise self.blame(f"forward changes {name}; leave what it is given as it is")

    def _build(self, case: Case) -> None:
        sizes = np.array([case.in_channels, case.out_channels, case.kernel_size, case.stride, case.padding], dtype=np.float64)
        shapes = ((case.out_channels, case.in_channels, case.kernel_size, case.kernel_size), (case.out_channels,))
        made = self.ask(BUILD, (sizes,), doing="making a Conv2DLayer", count=2, max_values=2**20)
        for name, array, shape in zip(("weights", "biases"), made.arrays, shapes, strict=True):
            if array.shape != shape:
                raise self.blame(f"the {name} of a new Conv2DLayer have shape {array.shape} instead of {shape}")

    def _check(self, doing: str, case: Case, out: Array, expected: Array) -> None:
        if out.shape != expected.shape:
            raise self.blame(f"{doing} returned shape {out.shape} instead of {expected.shape}")
        if not np.isfinite(out).all():
            raise self.blame(f"{doing} returned numbers that are not finite")
        error = float(np.abs(out - expected).max() / np.abs(expected).max())
        self.worst_error = max(self.worst_error, error)
        if error > TOLERANCE:
            how = f"kernel size {case.kernel_size}, stride {case.stride}, padding {case.padding}"
            raise self.blame(f"{doing} ({how}) returned wrong numbers: a relative error of {error:.2g}, more than {TOLERANCE:g}")
