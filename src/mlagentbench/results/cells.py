"""Count runs by cell: all runs of one agent with one model on one task, under the same conditions; and cells by column.

A run counts if it says something about the agent. Runs that failed through no fault of the agent's (`infrastructure`, `cancelled`, without
a result), runs that could not be graded, and cells of which a score was compared with nothing are listed apart and never part of a
denominator. Runs with other isolation, on other hardware or under other limits are another cell; the first two may be mixed.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from mlagentbench.records import Flag
from mlagentbench.results.conditions import ANY, Conditions, Mixable, conditions, differences, differing_limits, limit_words
from mlagentbench.results.counts import NO_BASELINE, Counts, counts
from mlagentbench.results.load import Run
from mlagentbench.results.statistics import intervals, robust
from mlagentbench.results.statistics.intervals import Interval, Tally

Moves = Mapping[tuple[float, ...], float]
"""What a mean moves by with the mean of each baseline that runs share, by the baseline's values."""

LEFT_OUT = ("infrastructure", "ungraded")
"""The reasons for which a run is left out of a rate although its agent did all that it could do."""


class RateBounds(NamedTuple):
    """Bounds of a success rate, whatever the runs would have been that it leaves out."""

    if_failed: float
    """The rate if all of them had failed."""
    if_succeeded: float
    """The rate if all of them had succeeded."""
    left_out: int
    """How many runs they are."""


@dataclass(frozen=True)
class Cell:
    """All runs under the same conditions."""

    conditions: Conditions
    runs: tuple[Counts, ...]
    category: str = ""
    """The task's category; empty if unknown."""
    published: datetime.date | None = None
    """The day on which the task was published; None if unknown."""
    differences: tuple[str, ...] = ()
    """What else the counted runs differ in, a line each: versions, prepared data, the baseline."""
    unit: str = ""
    """The metric's unit, or its name where it has none."""

    @property
    def counted(self) -> tuple[Counts, ...]:
        """The runs that say something about the agent."""
        return tuple(run for run in self.runs if run.counted)

    @property
    def apart(self) -> Mapping[str, int]:
        """How many runs do not count, by reason (`Counts.apart`)."""
        return Counter(run.apart for run in self.runs if run.apart is not None)

    @property
    def successes(self) -> int:
        """How many of the counted runs are successes."""
        return sum(run.success for run in self.counted)

    @cached_property
    def rate(self) -> Interval | None:
        """The success rate, 0 to 1, with its interval (`intervals.average_rate`); None if no run counts."""
        return intervals.average_rate([self.tally]) if self.counted else None

    @property
    def tally(self) -> Tally:
        """The successes of the counted runs, and how many there would be over a shared baseline at the bounds of its own interval."""
        harder, easier = (sum(run.success_within_baseline[bound] for run in self.counted) for bound in (0, 1))
        return Tally(self.successes, len(self.counted), harder, easier)

    @property
    def bounds(self) -> RateBounds | None:
        """The success rate if all runs that `LEFT_OUT` names had failed, and had succeeded; None for a cell that can have no rate."""
        left_out = sum(self.apart.get(reason, 0) for reason in LEFT_OUT)
        runs = len(self.counted) + left_out
        if not runs or NO_BASELINE in self.apart:
            return None
        return RateBounds(self.successes / runs, (self.successes + left_out) / runs, left_out)

    @property
    def valid(self) -> tuple[Counts, ...]:
        """The counted runs with a valid submission at the last step."""
        return tuple(run for run in self.counted if run.valid)

    @property
    def improvements(self) -> list[float]:
        """The improvements of `valid`, relative to the baseline and clipped to `robust.CLIP`; none if a baseline is 0."""
        found = [robust.clipped(run.improvement) for run in self.valid if run.improvement is not None]
        return found if len(found) == len(self.valid) else []

    @property
    def clipped(self) -> int:
        """How many of `improvements` were clipped."""
        return sum(run.improvement != clipped for run, clipped in zip(self.valid, self.improvements, strict=False))

    @property
    def averaged(self) -> list[float]:
        """The improvements in averages over tasks: as in the paper, zeros without any valid submission; none over a baseline of 0."""
        return self.improvements or ([0.0] * len(self.counted) if not self.valid else [])

    @property
    def gains(self) -> list[float]:
        """The gains of `valid` over the baseline, in the metric's unit."""
        return [run.gain for run in self.valid if run.gain is not None]

    @property
    def moves(self) -> Moves:
        """What the mean of `improvements` moves by with the mean of each shared baseline."""
        return moves(self.valid if self.improvements else ())

    @cached_property
    def improvement(self) -> Interval | None:
        """The mean of `improvements` with its interval (`robust.average`); None if there are none."""
        return robust.mean(self.improvements, deviations(self.moves))

    @cached_property
    def gain(self) -> Interval | None:
        """The mean of `gains` in the metric's unit, with its interval; None if there are none."""
        shares = Counter(run.baseline_values for run in self.valid if run.baseline_values)
        return robust.mean(self.gains, deviations({values: count / len(self.valid) for values, count in shares.items()}))

    @property
    def flags(self) -> Mapping[Flag, int]:
        """How many of the counted runs have each flag."""
        return Counter(flag for run in self.counted for flag in run.flags)

    @property
    def steps(self) -> float | None:
        """The mean number of steps of the counted runs; None if no run counts."""
        return self._mean(lambda run: run.steps)

    @property
    def seconds(self) -> float | None:
        """The mean time of the counted runs, without grading; None if no run counts."""
        return self._mean(lambda run: run.seconds)

    @property
    def tokens(self) -> float | None:
        """The mean tokens of the counted runs, prompt and completion of all roles together; None if no run counts."""
        return self._mean(lambda run: run.tokens)

    @property
    def cost(self) -> float | None:
        """The mean cost of the counted runs in US dollars; None if no run counts, or the cost of one is unknown."""
        return self._mean(lambda run: run.cost)

    def pass_at(self, k: int) -> float | None:
        """Estimate the probability that at least one of k runs succeeds (`intervals.pass_at_k`); None with fewer than k counted runs."""
        return intervals.pass_at_k(self.successes, len(self.counted), k)

    def _mean(self, amount: Callable[[Counts], float | None]) -> float | None:
        amounts = [amount(run) for run in self.counted]
        known = [value for value in amounts if value is not None]
        return sum(known) / len(known) if known and len(known) == len(amounts) else None


def cells(runs: Iterable[Run], *, mixing: Collection[Mixable] = ()) -> list[Cell]:
    """Group runs into cells by their conditions, in the order of the first run of each.

    Args:
        runs: the runs, in any order.
        mixing: conditions that may differ within a cell, such as the hardware of a cluster's machines. The cell's condition is then
            `any hardware`, and `Cell.differences` lists the values.
    """
    found: dict[Conditions, list[tuple[Run, Counts]]] = {}
    runs = tuple(runs)
    for run, (shared, counted) in zip(runs, together(runs, mixing=mixing), strict=True):
        found.setdefault(shared, []).append((run, counted))
    return [_cell(shared, pairs) for shared, pairs in found.items()]


def together(runs: Sequence[Run], *, mixing: Collection[Mixable] = ()) -> list[tuple[Conditions, Counts]]:
    """Return each run's conditions and its counts, given the other runs of its cell (`Counts.uncompared`)."""
    found = [(conditions(run.info)._replace(**{name: ANY[name] for name in mixing}), counts(run)) for run in runs]  # type: ignore[arg-type]
    uncompared = {shared for shared, counted in found if counted.apart == NO_BASELINE}
    return [(shared, counted._replace(uncompared=shared in uncompared)) for shared, counted in found]


def moves(runs: Sequence[Counts]) -> Moves:
    """Return the derivative of runs' mean improvement by each baseline that they share (the delta method).

    Only runs with a valid submission count. A clipped improvement has the derivative 0.
    """
    found: dict[tuple[float, ...], float] = {}
    for run in runs:
        if run.baseline_values and run.improvement is not None and robust.clipped(run.improvement) == run.improvement:
            found[run.baseline_values] = found.get(run.baseline_values, 0.0) + run.move / len(runs)
    return found


def deviations(moves: Moves) -> robust.Shared:
    """Return the effect of each measured value of the baselines on a mean, as `robust.average` needs them."""
    found = []
    for values, move in moves.items():
        middle = sum(values) / len(values)
        found.append([move * (value - middle) for value in values])
    return found


def rate_over_tasks(cells: Iterable[Cell]) -> Interval | None:
    """Return the mean of the success rates of some cells of a column, each task counting once; None if no run counts."""
    return intervals.average_rate([cell.tally for cell in cells if cell.counted])


def bounds_over_tasks(cells: Iterable[Cell]) -> RateBounds | None:
    """Return the bounds of a column's success rate: the mean over its tasks, those without a counted run included."""
    found = [bounds for cell in cells if (bounds := cell.bounds) is not None]
    if not found:
        return None
    failed, succeeded = (sum(each[bound] for each in found) / len(found) for bound in (0, 1))
    return RateBounds(failed, succeeded, sum(each.left_out for each in found))


def improvements_of(cells: Iterable[Cell]) -> tuple[list[list[float]], list[robust.Shared]]:
    """Return a column's improvements by task, and the effect of shared baselines on their means, as the functions of `robust` need them."""
    found = [(cell.averaged, deviations(cell.moves)) for cell in cells if cell.averaged]
    return [groups for groups, _ in found], [shared for _, shared in found]


def improvement_over_tasks(cells: Iterable[Cell]) -> Interval | None:
    """Return the mean of the improvements of some cells of a column, each task counting once; None if there are none (`Cell.averaged`)."""
    return robust.average(*improvements_of(cells))


def columns(cells: Iterable[Cell]) -> Mapping[str, Mapping[str, Cell]]:
    """Group cells by column and task. A column is one agent with one model under one set of conditions, so that cells are never mixed.

    Its name has the agent and the model, and also the variant, isolation and hardware if the cells differ in them or mix them, and the
    limits that differ among the cells of a task. Columns come in the order of their first cells.
    """
    cells = list(cells)
    places = [{cell.conditions[place] for cell in cells} for place in (1, 4, 5)]
    in_name = [True, True, *(len(values) > 1 or not values.isdisjoint(ANY.values()) for values in places)]
    limits = differing_limits(cell.conditions for cell in cells)
    found: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in cells:
        task, variant, agent, model, isolation, hardware, _ = cell.conditions
        words = (agent, model, variant, isolation, hardware or "unknown hardware")
        needed = [word for word, needed in zip(words, in_name, strict=True) if needed]
        found.setdefault((*needed, *limit_words(cell.conditions, limits)), {})[task] = cell
    named: dict[str, Mapping[str, Cell]] = {}
    for key, by_task in found.items():
        name = ", ".join(key)
        # Different keys may give the same name if their words have commas in them.
        while name in named:
            name += " (2)"
        named[name] = by_task
    return named


def _cell(conditions: Conditions, pairs: Sequence[tuple[Run, Counts]]) -> Cell:
    infos = [run.info for run, _ in pairs]
    return Cell(
        conditions,
        tuple(counted for _, counted in pairs),
        category=next((info.category for info in infos if info.category), ""),
        published=next((info.published for info in infos if info.published), None),
        differences=differences(run for run, found in pairs if found.counted),
        unit=infos[0].unit or infos[0].metric,
    )
