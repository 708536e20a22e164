"""Count runs by cell: all runs of one agent with one model on one task, under the same conditions.

A run counts if it says something of the agent. Runs that failed through no fault of the agent's (`infrastructure`, `cancelled`, without a
result), runs that could not be graded, and runs whose score was compared with nothing are listed apart and never part of a denominator.
Runs with other isolation or on other hardware are another cell, unless the caller asks to mix them.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from mlagentbench.records import Flag
from mlagentbench.results import statistics
from mlagentbench.results.conditions import ANY, Conditions, Mixable, conditions, differences
from mlagentbench.results.counts import DAMAGED, UNFINISHED, Counts, counts
from mlagentbench.results.load import Run
from mlagentbench.results.statistics import Interval
from mlagentbench.task.success import THRESHOLD

NOT_COUNTED = ("infrastructure", "cancelled", UNFINISHED, DAMAGED)
"""How runs end that say nothing of the agent."""

NO_BASELINE = "no_baseline"
"""The value of `Trial.apart` for a valid submission that was compared with nothing (`--baseline none`)."""


class Trial(NamedTuple):
    """The part of one run's counts that its cell needs."""

    ended: str
    """As in `Counts.ended`."""
    verdict: str
    success: bool
    improvement: float | None
    """Relative to the baseline; None without a valid submission, and over a baseline of 0."""
    best_success: bool | None = None
    """Success at the best step; None if not every step was graded."""
    clears_noise: bool | None = None
    """Success by the noise-calibrated rule (`tasks.success.clears_noise`); None if the baseline has no spread."""
    compared: bool = True
    """False for a valid submission without a baseline."""
    flags: tuple[Flag, ...] = ()
    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float | None = None
    """US dollars; None if unknown."""

    @property
    def apart(self) -> str | None:
        """Why the run does not count: how it ended, `ungraded` or `no_baseline`; None if it counts."""
        if self.ended in NOT_COUNTED:
            return self.ended
        if self.verdict == "ungraded":
            return self.verdict
        return None if self.compared else NO_BASELINE

    @property
    def counted(self) -> bool:
        """Whether the run says something of the agent."""
        return self.apart is None


@dataclass(frozen=True)
class Cell:
    """All runs under the same conditions."""

    conditions: Conditions
    trials: tuple[Trial, ...]
    category: str = ""
    """The task's category; empty if unknown."""
    published: datetime.date | None = None
    """The day on which the task was published; None if unknown."""
    differences: tuple[str, ...] = ()
    """What else the counted runs differ in, a line each: limits, versions, prepared data, the baseline's source."""

    @property
    def counted(self) -> tuple[Trial, ...]:
        """The runs that say something of the agent."""
        return tuple(trial for trial in self.trials if trial.counted)

    @property
    def apart(self) -> Mapping[str, int]:
        """How many runs do not count, by reason (`Trial.apart`)."""
        return Counter(trial.apart for trial in self.trials if trial.apart is not None)

    @property
    def successes(self) -> int:
        """How many of the counted runs are successes."""
        return sum(trial.success for trial in self.counted)

    @cached_property
    def rate(self) -> Interval | None:
        """The success rate, 0 to 1, with Wilson's interval; None if no run counts."""
        return _rate([trial.success for trial in self.counted])

    @cached_property
    def best_rate(self) -> Interval | None:
        """The success rate at each run's best step; None if no run counts, or not every step of each was graded."""
        return _rate([trial.best_success for trial in self.counted])

    @cached_property
    def calibrated_rate(self) -> Interval | None:
        """The success rate by the noise-calibrated rule; None if no run counts, or one was compared with a baseline without a spread."""
        return _rate([trial.clears_noise for trial in self.counted])

    @property
    def improvements(self) -> list[float]:
        """The improvements of the counted runs that have one, relative to the baseline."""
        return [trial.improvement for trial in self.counted if trial.improvement is not None]

    @cached_property
    def improvement(self) -> Interval | None:
        """The mean of `improvements` with a bootstrap interval; None if there are none."""
        return statistics.mean(self.improvements)

    @property
    def outcomes(self) -> Mapping[tuple[str, str], int]:
        """How many runs have each outcome (how it ended, and its verdict), including those that do not count."""
        return Counter((trial.ended, trial.verdict) for trial in self.trials)

    @property
    def flags(self) -> Mapping[Flag, int]:
        """How many of the counted runs have each flag."""
        return Counter(flag for trial in self.counted for flag in trial.flags)

    @property
    def steps(self) -> float | None:
        """The mean number of steps of the counted runs; None if no run counts."""
        return self._mean(lambda trial: trial.steps)

    @property
    def seconds(self) -> float | None:
        """The mean time of the counted runs, without grading; None if no run counts."""
        return self._mean(lambda trial: trial.seconds)

    @property
    def tokens(self) -> float | None:
        """The mean tokens of the counted runs, prompt and completion of all roles together; None if no run counts."""
        return self._mean(lambda trial: trial.tokens)

    @property
    def cost(self) -> float | None:
        """The mean cost of the counted runs in US dollars; None if no run counts, or the cost of one is unknown."""
        return self._mean(lambda trial: trial.cost)

    def pass_at(self, k: int) -> float | None:
        """Estimate the probability that at least one of k runs succeeds (`statistics.pass_at_k`); None with fewer than k counted runs."""
        return statistics.pass_at_k(self.successes, len(self.counted), k)

    def _mean(self, amount: Callable[[Trial], float | None]) -> float | None:
        amounts = [amount(trial) for trial in self.counted]
        known = [value for value in amounts if value is not None]
        return sum(known) / len(known) if known and len(known) == len(amounts) else None


def trial(run: Run) -> Trial:
    """Return the part of a run's counts that its cell needs."""
    return trial_of(counts(run))


def trial_of(found: Counts) -> Trial:
    """Return the part of some counts that a cell needs."""
    return Trial(
        ended=found.ended,
        verdict=found.verdict,
        success=found.success,
        improvement=found.improvement,
        best_success=None if found.best_success is None else found.best_success[THRESHOLD],
        clears_noise=found.last_clears_noise,
        compared=found.score is None or found.baseline is not None,
        flags=found.flags,
        steps=found.steps,
        seconds=found.seconds,
        tokens=found.tokens,
        cost=found.cost,
    )


def cells(runs: Iterable[Run], *, mixing: Collection[Mixable] = ()) -> list[Cell]:
    """Group runs into cells by their conditions, in the order of the first run of each.

    Args:
        runs: the runs, in any order.
        mixing: conditions that may differ within a cell, such as the hardware of a cluster's machines. The cell's condition is then
            `any hardware`, and `Cell.differences` lists the values.
    """
    found: dict[Conditions, list[Run]] = {}
    for run in runs:
        found.setdefault(conditions(run.info)._replace(**{name: ANY[name] for name in mixing}), []).append(run)
    return [_cell(shared, together) for shared, together in found.items()]


def _cell(conditions: Conditions, runs: Sequence[Run]) -> Cell:
    trials = tuple(trial(run) for run in runs)
    return Cell(
        conditions,
        trials,
        category=next((run.info.category for run in runs if run.info.category), ""),
        published=next((run.info.published for run in runs if run.info.published), None),
        differences=differences(run for run, found in zip(runs, trials, strict=True) if found.counted),
    )


def _rate(successes: Iterable[bool | None]) -> Interval | None:
    successes = list(successes)
    known = [success for success in successes if success is not None]
    return statistics.success_rate(sum(known), len(known)) if known and len(known) == len(successes) else None
