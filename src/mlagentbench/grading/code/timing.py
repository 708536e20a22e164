"""Time the agent's code beside the starter's: two processes in sandboxes, measured in turns, watched and frozen from outside.

    with context.sandbox(...) as ours, context.sandbox(...) as theirs:
        starter, submission = TimedProcess(ours, GradingError, rules), TimedProcess(theirs, InvalidSubmission, rules)
        ...
        seconds = in_turns(submission, starter, draw, measure, rounds=5, budget=10.0)

Each is confined to one core, one process and the native code that it had at the start (`restrict.py`). While one is timed the other is
frozen, and the delay that a busy machine adds is subtracted (`monitor.py`). Code that is awake but asked nothing must be idle, so that it
cannot work outside of the timing.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from mlagentbench.errors import MLAgentBenchError
from mlagentbench.grading.code.client import Answer, CodeClient
from mlagentbench.grading.code.monitor import Meter, measure_processes, runnable, served_by
from mlagentbench.grading.code.protocol import Array
from mlagentbench.grading.code.server import HELLO, IMPORT
from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Baseline, Score
from mlagentbench.sandbox.process import SandboxProcess
from mlagentbench.task.success import THRESHOLD

START_SECONDS = 120.0
"""For starting, for importing train.py, and for whatever else is not timed."""
REST = 0.1
"""Seconds for which code is watched while it is asked nothing; longer while it waits for a core."""
REST_ALLOWED = 0.003
"""Seconds of processor time it may use meanwhile; idle code uses some 0.00001."""
REFUSALS = ("not permitted", "Permission denied", "failed to map segment", "No module named", "could not create a primitive")
"""What Python and torch say where code tries to use something that it is denied."""
NO_SANDBOX = "nothing keeps the code from the host's files, its network and the grader's process"
FEWEST_ROUNDS = 3
MOST_ROUNDS = 4
"""How many times the planned rounds are measured at most, on a machine so unsteady that the verdict is in doubt."""
WON = 1 - THRESHOLD
"""Ratio of the submission's seconds to the starter's below which it wins."""
SURE = 2.0
"""Standard errors between `WON` and the measured ratio from which on the verdict is no longer in doubt."""

Process = TypeVar("Process", bound="TimedProcess")
Inputs = TypeVar("Inputs")


class Rules(NamedTuple):
    """What a task's rules allow timed code, in words for the reasons of refusals."""

    has: str
    """What it may import, such as "the standard library and numpy"."""
    work: str
    """The function in which all the work must be done, such as "forward"."""
    native: str
    """Whose native code is loaded at the start, such as "numpy"."""


class TimedProcess:
    """A sandbox's process whose code is timed.

    Args:
        process: the sandbox's process.
        blame: the error to raise for what it does wrong: `InvalidSubmission` for the agent's code, `GradingError` for the task's.
        rules: what the code may do.
    """

    def __init__(self, process: SandboxProcess, blame: type[MLAgentBenchError], rules: Rules) -> None:
        self._client = CodeClient(process, blame)
        self._process = process
        self._rules = rules
        self.blame = blame
        self.waited = 0.0
        """Seconds subtracted so far because other programs had the core."""

    def open(self) -> tuple[str, ...]:
        """Wait until the process is ready, then have it import its code.

        Returns:
            The guarantees that this machine could not give, in words.
        """
        hello = self.ask(HELLO, doing="starting", count=1)
        self._before = measure_processes(self._process.pid)
        self._server = served_by(self._process.pid)
        # The processor time seen from outside must account for what the process reported; otherwise it is not the one observed.
        self._visible = self._before.seconds >= 0.5 * float(hello.arrays[0][0])
        self.ask(IMPORT, doing="importing train.py")
        blind = () if self._visible else ("its processes cannot be watched from outside",)
        return ((hello.text,) if hello.text else ()) + blind

    def ask(
        self, kind: int, arrays: tuple[Array, ...] = (), *, doing: str, seconds: float = START_SECONDS, count: int = 0, max_values: int = 1
    ) -> Answer:
        """Ask as `CodeClient.ask` does; where the code was denied something, say in the error what it is allowed."""
        try:
            return self._client.ask(kind, arrays, doing=doing, seconds=seconds, count=count, max_values=max_values)
        except self.blame as error:
            if any(words in str(error) for words in REFUSALS):
                rules = f"it has {self._rules.has}, and can start no process, load no native code and write no file"
                raise self.blame(f"{error}; {rules}") from None
            raise

    def time(self, kind: int, arrays: tuple[Array, ...], *, doing: str, seconds: float, max_values: int) -> tuple[Array, float]:
        """Ask for one array, and time the answer.

        Returns:
            The array, and the seconds from the first byte of the question to the last of the answer, without those in which other
            programs had the core.
        """
        meter = Meter.start(self._server)
        answer = self.ask(kind, arrays, doing=doing, seconds=seconds, count=1, max_values=max_values)
        taken = meter.stop(answer.seconds) if self._visible else answer.seconds
        self.waited += answer.seconds - taken
        return answer.arrays[0], taken

    def rest(self) -> None:
        """Check that the process, asked nothing, is idle, and has started no process and loaded no native code since `open`.

        Raises:
            MLAgentBenchError: of the class `blame`: it has done one of these.
        """
        self._process.thaw()
        before, started = measure_processes(self._process.pid), time.monotonic()
        time.sleep(REST)
        after = measure_processes(self._process.pid)
        if not self._visible:
            return
        # A process that waits for a core has used little of it, and is not idle.
        while after.seconds - before.seconds <= REST_ALLOWED and runnable(after.processes) and time.monotonic() - started < START_SECONDS:
            time.sleep(REST)
            after = measure_processes(self._process.pid)
        used, elapsed = after.seconds - before.seconds, time.monotonic() - started
        if used > REST_ALLOWED:
            raise self.blame(
                f"it works while it is asked nothing ({used:.3f} s of processor time in {elapsed:.1f} s);"
                f" do all the work in {self._rules.work}"
            )
        if after.processes - self._before.processes:
            raise self.blame("it has started other processes; do all the work in the process that imports train.py")
        if after.code is not None and self._before.code is not None and after.code - self._before.code:
            loaded = ", ".join(sorted(after.code - self._before.code))
            raise self.blame(f"it has loaded native code from outside {self._rules.native}: {loaded}")

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let the process run for the block, then freeze it, so that it cannot slow down what is timed next."""
        self._process.thaw()
        yield
        self._process.freeze()

    def freeze(self) -> None:
        """Freeze the process until `awake`."""
        self._process.freeze()


def timing_core() -> int:
    """Return the processor core for timed processes; -1 leaves the choice to the kernel."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else -1


def in_turns(
    submission: Process,
    starter: Process,
    draw: Callable[[], Inputs],
    measure: Callable[[Process, Inputs], float],
    *,
    rounds: int,
    budget: float,
) -> tuple[list[float], list[float]]:
    """Measure both processes in turns; which of them is first alternates from round to round.

    Args:
        submission: the agent's process.
        starter: the task's process.
        draw: makes the inputs of a round, the same for both.
        measure: has one process work on the inputs, and returns the seconds.
        rounds: how often each is measured; up to `MOST_ROUNDS` times as often while the verdict is in doubt.
        budget: measured seconds after which no further round begins, once there are `FEWEST_ROUNDS`.

    Returns:
        The submission's seconds, and the starter's.
    """
    theirs: list[float] = []
    ours: list[float] = []
    submission.freeze()
    starter.freeze()
    for number in range(MOST_ROUNDS * rounds):
        if number >= rounds and not _in_doubt(theirs, ours):
            break
        if number >= FEWEST_ROUNDS and sum(theirs) + sum(ours) > budget:
            break
        inputs = draw()
        turns = ((submission, theirs), (starter, ours))
        for process, seconds in turns if number % 2 else turns[::-1]:
            with process.awake():
                seconds.append(measure(process, inputs))
    return theirs, ours


def compare(
    context: GradingContext,
    submission: TimedProcess,
    starter: TimedProcess,
    seconds: tuple[list[float], list[float]],
    lacking: tuple[str, ...],
    **details: JsonValue,
) -> Score:
    """Return the score: the median of the submission's seconds, with the median of the starter's as its baseline.

    Medians, so that a trial which a busy machine held up counts for neither. `seconds` are as `in_turns` returns them, `lacking` the
    guarantees that this machine could not give, in words.
    """
    theirs, ours = seconds
    value, baseline = statistics.median(theirs), statistics.median(ours)
    return Score(
        value=value,
        baseline=Baseline(value=baseline, values=tuple(ours), source="side_by_side"),
        details={
            "trials": len(theirs),
            "seconds": [*theirs],
            "spread": (max(theirs) - min(theirs)) / 2,
            "ratio": value / baseline,
            "seconds_waited": {"submission": submission.waited, "starter": starter.waited},
            **details,
            "isolation": context.isolation.isolation,
            "lacking": [*lacking, *((NO_SANDBOX,) if context.isolation.isolation == "none" else ())],
        },
    )


def _in_doubt(theirs: Sequence[float], ours: Sequence[float]) -> bool:
    """Return whether the trials differ so much among themselves that more of them could change the verdict."""
    (value, value_error), (baseline, baseline_error) = _median_and_error(theirs), _median_and_error(ours)
    ratio = value / baseline
    return abs(ratio - WON) < SURE * ratio * math.hypot(value_error, baseline_error)


def _median_and_error(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median, and its relative standard error if the noise is normal.

    It comes from the mean distance to the median, which one slow trial hardly changes. A normal variable's mean distance is sqrt(2/pi)
    of its standard deviation, and a median's error sqrt(pi/2) of a mean's.
    """
    median = statistics.median(seconds)
    distance = statistics.fmean(abs(each - median) for each in seconds)
    return median, math.pi / 2 * distance / median / math.sqrt(len(seconds))
