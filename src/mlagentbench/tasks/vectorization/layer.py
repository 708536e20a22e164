"""One convolution layer in its sandbox, asked and checked from outside; and what it must give, worked out here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from mlagentbench.errors import MLAgentBenchError
from mlagentbench.grading.frames import Array
from mlagentbench.grading.talk import Answer, Talk
from mlagentbench.grading.watch import Meter, look, served_by
from mlagentbench.sandbox.process import SandboxProcess
from mlagentbench.tasks.vectorization.serve import BUILD, FORWARD, HELLO, IMPORT, SHOW

TOLERANCE = 1e-5
"""Of the largest error over the largest number of the reference."""
START_SECONDS = 60.0
"""For starting, for importing train.py, and for whatever else is not forward."""
REST = 0.1
"""Seconds for which a layer is watched while it is asked nothing."""
REST_ALLOWED = 0.003
"""Seconds of processor time it may use meanwhile; one that rests uses some 0.00001."""
REFUSALS = ("not permitted", "Permission denied", "failed to map segment", "No module named")
"""What Python says where a layer reaches for what it has not."""
RULES = "it has the standard library and numpy, and can start no process, load no native code and write no file"


class Case(NamedTuple):
    """What a layer is built for, and given."""

    batch: int
    in_channels: int
    height: int
    width: int
    out_channels: int
    kernel_size: int
    stride: int
    padding: int


class Inputs(NamedTuple):
    """What one forward pass works on."""

    weights: Array
    biases: Array
    x: Array


def draw(case: Case, rng: np.random.Generator) -> Inputs:
    """Standard normal weights, biases and inputs."""
    return Inputs(
        rng.standard_normal((case.out_channels, case.in_channels, case.kernel_size, case.kernel_size)),
        rng.standard_normal(case.out_channels),
        rng.standard_normal((case.batch, case.in_channels, case.height, case.width)),
    )


def reference(case: Case, inputs: Inputs) -> Array:
    """What forward must return: (batch, out_channels, out_height, out_width)."""
    edge = (case.padding, case.padding)
    padded = np.pad(inputs.x, ((0, 0), (0, 0), edge, edge))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (case.kernel_size, case.kernel_size), axis=(2, 3))
    windows = windows[:, :, :: case.stride, :: case.stride]
    out = np.tensordot(windows, inputs.weights, axes=((1, 4, 5), (1, 2, 3)))
    return np.asarray(out.transpose(0, 3, 1, 2) + inputs.biases[:, None, None], dtype=np.float64)


class Layer:
    """A layer in its sandbox.

    Args:
        process: the sandbox's.
        blame: what is raised for whatever it does wrong: `InvalidSubmission` for the agent's, `GradingError` for ours.
    """

    def __init__(self, process: SandboxProcess, blame: type[MLAgentBenchError]) -> None:
        self._talk = Talk(process, blame)
        self._process = process
        self._blame = blame
        self.worst_error = 0.0
        """The largest relative error so far."""
        self.waited = 0.0
        """Seconds that were taken off since other programs had the core."""

    def open(self) -> tuple[str, ...]:
        """Wait until it stands, then import its code.

        Returns:
            The guarantees that this machine could not give, in words.
        """
        hello = self._ask(HELLO, doing="starting", count=1)
        self._before = look(self._process.pid)
        self._server = served_by(self._process.pid)
        # What is seen from outside is the process that has just told its own time, or else we are looking at something else.
        self._visible = self._before.seconds >= 0.5 * float(hello.arrays[0][0])
        self._ask(IMPORT, doing="importing train.py")
        blind = () if self._visible else ("its processes cannot be watched from outside",)
        return ((hello.text,) if hello.text else ()) + blind

    def forward(self, case: Case, inputs: Inputs, seconds: float) -> float:
        """Build the layer anew, run one forward pass, and check what it returns.

        Args:
            case: what it is built for.
            inputs: of these shapes.
            seconds: after which the pass is given up.

        Returns:
            Seconds from the first byte of the inputs to the last of the output, without those in which other programs had the core.
        """
        self._build(case)
        expected = reference(case, inputs)
        doing = f"forward on an input of shape {inputs.x.shape}"
        meter = Meter.start(self._server)
        answer = self._ask(FORWARD, tuple(inputs), doing=doing, seconds=seconds, count=1, max_values=16 * expected.size)
        taken = meter.stop(answer.seconds) if self._visible else answer.seconds
        self.waited += answer.seconds - taken
        self._check(doing, case, answer.arrays[0], expected)
        return taken

    def untouched(self, inputs: Inputs) -> None:
        """Check that the pass before has left what it was given as it was."""
        values = sum(array.size for array in inputs)
        shown = self._ask(SHOW, doing="looking at the layer after forward", count=3, max_values=values)
        for name, given, left in zip(("weights", "biases", "its input"), inputs, shown.arrays, strict=True):
            if not np.array_equal(given, left):
                raise self._blame(f"forward changes {name}; leave what it is given as it is")

    def rest(self) -> None:
        """Watch it while it is asked nothing: it must do nothing, have started nothing and have loaded nothing."""
        self._process.thaw()
        before = look(self._process.pid)
        time.sleep(REST)
        after = look(self._process.pid)
        if not self._visible:
            return
        used = after.seconds - before.seconds
        if used > REST_ALLOWED:
            raise self._blame(
                f"it works while it is asked nothing ({used:.3f} s of processor time in {REST} s); do all the work in forward"
            )
        if after.processes - self._before.processes:
            raise self._blame("it has started other processes; do all the work in the process that imports train.py")
        if after.code is not None and self._before.code is not None and after.code - self._before.code:
            loaded = ", ".join(sorted(after.code - self._before.code))
            raise self._blame(f"it has loaded native code from outside numpy: {loaded}")

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let it run. Afterwards it is frozen, so that it cannot slow down what is timed next."""
        self._process.thaw()
        yield
        self._process.freeze()

    def freeze(self) -> None:
        """Stop it until it is `awake`."""
        self._process.freeze()

    def _build(self, case: Case) -> None:
        sizes = np.array([case.in_channels, case.out_channels, case.kernel_size, case.stride, case.padding], dtype=np.float64)
        shapes = ((case.out_channels, case.in_channels, case.kernel_size, case.kernel_size), (case.out_channels,))
        made = self._ask(BUILD, (sizes,), doing="making a Conv2DLayer", count=2, max_values=2**20)
        for name, array, shape in zip(("weights", "biases"), made.arrays, shapes, strict=True):
            if array.shape != shape:
                raise self._blame(f"the {name} of a new Conv2DLayer have shape {array.shape} instead of {shape}")

    def _check(self, doing: str, case: Case, out: Array, expected: Array) -> None:
        if out.shape != expected.shape:
            raise self._blame(f"{doing} returned shape {out.shape} instead of {expected.shape}")
        if not np.isfinite(out).all():
            raise self._blame(f"{doing} returned numbers that are not finite")
        error = float(np.abs(out - expected).max() / np.abs(expected).max())
        self.worst_error = max(self.worst_error, error)
        if error > TOLERANCE:
            how = f"kernel size {case.kernel_size}, stride {case.stride}, padding {case.padding}"
            raise self._blame(f"{doing} ({how}) returned wrong numbers: a relative error of {error:.2g}, more than {TOLERANCE:g}")

    def _ask(
        self, kind: int, arrays: tuple[Array, ...] = (), *, doing: str, seconds: float = START_SECONDS, count: int = 0, max_values: int = 1
    ) -> Answer:
        try:
            return self._talk.ask(kind, arrays, doing=doing, seconds=seconds, count=count, max_values=max_values)
        except self._blame as error:
            if any(words in str(error) for words in REFUSALS):
                raise self._blame(f"{error}; {RULES}") from None
            raise
