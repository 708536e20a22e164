"""Runs counted: a cell is all runs of one agent with one model on one task, under conditions that may be compared.

Runs that failed through no fault of the agent's (`infrastructure`, `cancelled`, without a result), that could not be graded, and whose
score was compared with nothing are counted apart and never stand in a denominator. Runs on other isolation or other hardware are another
cell, never mixed in unsaid.
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
from mlagentbench.tasks.success import THRESHOLD

NOT_COUNTED = ("infrastructure", "cancelled", UNFINISHED, DAMAGED)
"""Endings that say nothing of the agent."""

NO_BASELINE = "no_baseline"
"""What a run is counted apart as whose valid submission was compared with nothing (`--baseline none`)."""


class Trial(NamedTuple):
    """What counts of one run in its cell."""

    ended: str
    """As in `Counts.ended`."""
    verdict: str
    success: bool
    improvement: float | None
    """Relative to the baseline; None without a valid submission, and over a baseline of 0."""
    best_success: bool | None = None
    """Success at the best step; None where not each step was graded."""
    clears_noise: bool | None = None
    """Success by the noise-calibrated rule; None where the baseline has no spread."""
    compared: bool = True
    """False for a valid submission without a baseline."""
    flags: tuple[Flag, ...] = ()
    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float | None = None
    """US dollars; None where it is unknown."""

    @property
    def apart(self) -> str | None:
        """As what the run is counted apart: how it ended, `ungraded` or `no_baseline`; None for one that counts."""
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
    """The task's; empty where it is not known."""
    published: datetime.date | None = None
    """When the task appeared."""
    differences: tuple[str, ...] = ()
    """What else the counted runs differ in, a line each: limits, versions, prepared data, where the baseline comes from."""

    @property
    def counted(self) -> tuple[Trial, ...]:
        """The runs that say something of the agent."""
        return tuple(trial for trial in self.trials if trial.counted)

    @property
    def apart(self) -> Mapping[str, int]:
        """The others, by what keeps them apart (`Trial.apart`)."""
        return Counter(trial.apart for trial in self.trials if trial.apart is not None)

    @property
    def successes(self) -> int:
        """How many of the counted runs are a success."""
        return sum(trial.success for trial in self.counted)

    @cached_property
    def rate(self) -> Interval | None:
        """The success rate, 0 to 1, with Wilson's interval; None where no run counts."""
        return _rate([trial.success for trial in self.counted])

    @cached_property
    def best_rate(self) -> Interval | None:
        """The same at each run's best step; None where no step but the last was graded in one of them."""
        return _rate([trial.best_success for trial in self.counted])

    @cached_property
    def calibrated_rate(self) -> Interval | None:
        """The same by the noise-calibrated rule; None where a valid submission was compared with a baseline without a spread."""
        return _rate([trial.clears_noise for trial in self.counted])

    @property
    def improvements(self) -> list[float]:
        """Of the valid submissions, relative to the baseline."""
        return [trial.improvement for trial in self.counted if trial.improvement is not None]

    @cached_property
    def improvement(self) -> Interval | None:
        """Their mean with a bootstrap interval; None where there is none."""
        return statistics.mean(self.improvements)

    @property
    def outcomes(self) -> Mapping[tuple[str, str], int]:
        """How many runs ended how, and with which verdict; those counted apart too."""
        return Counter((trial.ended, trial.verdict) for trial in self.trials)

    @property
    def flags(self) -> Mapping[Flag, int]:
        """How many of the counted runs have which flag."""
        return Counter(flag for trial in self.counted for flag in trial.flags)

    @property
    def steps(self) -> float | None:
        """The mean over the counted runs; None where no run counts."""
        return self._mean(lambda trial: trial.steps)

    @property
    def seconds(self) -> float | None:
        """The mean over the counted runs, without grading."""
        return self._mean(lambda trial: trial.seconds)

    @property
    def tokens(self) -> float | None:
        """The mean over the counted runs, prompt and completion of all roles together."""
        return self._mean(lambda trial: trial.tokens)

    @property
    def cost(self) -> float | None:
        """The mean over the counted runs in US dollars; None where that of one is unknown."""
        return self._mean(lambda trial: trial.cost)

    def pass_at(self, k: int) -> float | None:
        """How probable it is that one of k runs succeeds (`statistics.pass_at_k`); None with fewer runs than that."""
        return statistics.pass_at_k(self.successes, len(self.counted), k)

    def _mean(self, amount: Callable[[Trial], float | None]) -> float | None:
        amounts = [amount(trial) for trial in self.counted]
        known = [value for value in amounts if value is not None]
        return sum(known) / len(known) if known and len(known) == len(amounts) else None


def trial(run: Run) -> Trial:
    """What counts of a run in its cell."""
    return trial_of(counts(run))


def trial_of(found: Counts) -> Trial:
    """What counts in its cell of a run that is counted."""
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
    """Runs by their conditions, in the order of the first run of each.

    Args:
        runs: in any order.
        mixing: conditions whose differences are put up with, such as the hardware of a cluster's machines. They read `any hardware` then,
            and `Cell.differences` says which there were.
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
