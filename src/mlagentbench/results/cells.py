"""Count runs by cell: all runs of one agent with one model on one task, under the same conditions; and cells by column.

A run counts if it says something about the agent. Runs that failed through no fault of the agent's (`infrastructure`, `cancelled`, without
a result), runs that could not be graded, and runs whose score was compared with nothing are listed apart and never part of a denominator.
Runs with other isolation or on other hardware are another cell, unless the caller asks to mix them.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mlagentbench.records import Flag
from mlagentbench.results import robust, statistics
from mlagentbench.results.conditions import ANY, Conditions, Mixable, conditions, differences
from mlagentbench.results.counts import Counts, counts
from mlagentbench.results.load import Run
from mlagentbench.results.statistics import Interval
from mlagentbench.task.success import THRESHOLD


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
    """What else the counted runs differ in, a line each: limits, versions, prepared data, the baseline's source."""

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
        """The success rate, 0 to 1, with Wilson's interval; None if no run counts."""
        return _rate([run.success for run in self.counted])

    @cached_property
    def best_rate(self) -> Interval | None:
        """The success rate at each run's best step, chosen on the hidden test (optimistic).

        None if no run counts, or not every step of each was graded.
        """
        return _rate([run.best_success[THRESHOLD] if run.best_success else None for run in self.counted])

    @cached_property
    def calibrated_rate(self) -> Interval | None:
        """The success rate by the noise-calibrated rule; None if no run counts, or one was compared with a baseline without a spread."""
        return _rate([run.last_clears_noise for run in self.counted])

    @property
    def improvements(self) -> list[float]:
        """The improvements of the counted runs that have one, relative to the baseline."""
        return [run.improvement for run in self.counted if run.improvement is not None]

    @cached_property
    def improvement(self) -> Interval | None:
        """The mean of `improvements` with its interval (`robust.average`); None if there are none."""
        return robust.mean(self.improvements)

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
        """Estimate the probability that at least one of k runs succeeds (`statistics.pass_at_k`); None with fewer than k counted runs."""
        return statistics.pass_at_k(self.successes, len(self.counted), k)

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
    found: dict[Conditions, list[Run]] = {}
    for run in runs:
        found.setdefault(conditions(run.info)._replace(**{name: ANY[name] for name in mixing}), []).append(run)
    return [_cell(shared, together) for shared, together in found.items()]


def columns(cells: Iterable[Cell]) -> Mapping[str, Mapping[str, Cell]]:
    """Group cells by column and task. A column is one agent with one model under one set of conditions, so that cells are never mixed.

    Its name has the agent and the model, and also the variant, isolation and hardware if the cells differ in them or mix them. Columns come
    in the order of their first cells.
    """
    cells = list(cells)
    places = [{cell.conditions[place] for cell in cells} for place in (1, 4, 5)]
    in_name = [True, True, *(len(values) > 1 or not values.isdisjoint(ANY.values()) for values in places)]
    found: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in cells:
        task, variant, agent, model, isolation, hardware = cell.conditions
        words = (agent, model, variant, isolation, hardware or "unknown hardware")
        found.setdefault(tuple(word for word, needed in zip(words, in_name, strict=True) if needed), {})[task] = cell
    named: dict[str, Mapping[str, Cell]] = {}
    for key, by_task in found.items():
        name = ", ".join(key)
        # Different keys may give the same name if their words have commas in them.
        while name in named:
            name += " (2)"
        named[name] = by_task
    return named


def _cell(conditions: Conditions, runs: Sequence[Run]) -> Cell:
    counted = tuple(map(counts, runs))
    return Cell(
        conditions,
        counted,
        category=next((run.info.category for run in runs if run.info.category), ""),
        published=next((run.info.published for run in runs if run.info.published), None),
        differences=differences(run for run, found in zip(runs, counted, strict=True) if found.counted),
    )


def _rate(successes: Iterable[bool | None]) -> Interval | None:
    successes = list(successes)
    known = [success for success in successes if success is not None]
    return statistics.success_rate(sum(known), len(known)) if known and len(known) == len(successes) else None
