"""Runs counted: a cell is all runs of one agent with one model on one task, under conditions that may be compared.

Runs that failed through no fault of the agent's (`infrastructure`, `cancelled`, without a result) are counted apart and never stand in a
denominator. Runs on other isolation or other hardware are another cell, never mixed in unsaid.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mlagentbench.records import RunInfo
from mlagentbench.results import statistics
from mlagentbench.results.load import Run
from mlagentbench.results.statistics import Interval

NOT_COUNTED = ("infrastructure", "cancelled")


class Trial(NamedTuple):
    """What counts of one run."""

    ended: str
    """As in `Outcome.ended`; `unfinished` for a run without a result."""
    verdict: str
    success: bool
    improvement: float | None
    """Relative to the baseline; None without a valid submission."""

    @property
    def counted(self) -> bool:
        """Whether the run says something of the agent."""
        return self.ended not in (*NOT_COUNTED, "unfinished") and self.verdict != "ungraded"


class Conditions(NamedTuple):
    """What runs must share to be compared."""

    task: str
    variant: str
    agent: str
    """With its options, and whether it was given experience."""
    model: str
    isolation: str
    hardware: str


@dataclass(frozen=True)
class Cell:
    """All runs under the same conditions."""

    conditions: Conditions
    trials: tuple[Trial, ...]

    @property
    def counted(self) -> tuple[Trial, ...]:
        """The runs that say something of the agent."""
        return tuple(trial for trial in self.trials if trial.counted)

    @property
    def apart(self) -> Mapping[str, int]:
        """The others, by how they ended."""
        return Counter(trial.ended for trial in self.trials if not trial.counted)

    @property
    def successes(self) -> int:
        """How many of the counted runs are a success."""
        return sum(trial.success for trial in self.counted)

    @property
    def rate(self) -> Interval | None:
        """The success rate, 0 to 1, with Wilson's interval; None where no run counts."""
        return statistics.success_rate(self.successes, len(self.counted)) if self.counted else None

    @property
    def improvements(self) -> list[float]:
        """Of the valid submissions, relative to the baseline."""
        return [trial.improvement for trial in self.counted if trial.improvement is not None]

    @property
    def improvement(self) -> Interval | None:
        """Their mean with a bootstrap interval; None where there is none."""
        return statistics.mean(self.improvements)

    @property
    def outcomes(self) -> Mapping[tuple[str, str], int]:
        """How many runs ended how, and with which verdict."""
        return Counter((trial.ended, trial.verdict) for trial in self.trials)

    def pass_at(self, k: int) -> float | None:
        """How probable it is that one of k runs succeeds; None with fewer runs than that."""
        return statistics.pass_at_k(self.successes, len(self.counted), k)


def trial(run: Run) -> Trial:
    """What counts of a run."""
    if run.result is None:
        return Trial("unfinished", "ungraded", False, None)
    outcome = run.result.outcome
    return Trial(outcome.ended, outcome.verdict, run.result.success, run.result.improvement)


def agent_words(info: RunInfo) -> str:
    """An agent with what sets it apart from others of its name: `research (research_log true, with experience 3f9a41c0)`."""
    apart = [f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in sorted(info.agent_options.items())]
    if info.experience is not None:
        apart.append(f"with experience {info.experience.digest[:8]}")
    return f"{info.agent} ({', '.join(apart)})" if apart else info.agent


def cells(runs: Iterable[Run]) -> list[Cell]:
    """Runs by their conditions, in the order of the first run of each."""
    found: dict[Conditions, list[Trial]] = {}
    for run in runs:
        info = run.info
        hardware = (
            f"{info.hardware.get('cpu', '')}, {', '.join(map(str, gpus)) if isinstance(gpus := info.hardware.get('gpus'), list) else ''}"
        )
        conditions = Conditions(info.task, info.variant, agent_words(info), info.models["agent"], info.isolation, hardware.strip(", "))
        found.setdefault(conditions, []).append(trial(run))
    return [Cell(conditions, tuple(trials)) for conditions, trials in found.items()]


class Table(NamedTuple):
    """A number a task and column, as the paper's Tables 3 and 4 have them, in percent."""

    rows: Mapping[str, Mapping[str, float | None]]
    """By task, then column; None where there are no runs."""
    averages: Mapping[str, float | None]
    """By column, over the tasks that have a number."""
    averaged_over: Mapping[str, int]
    """By column: how many those are."""

    def lines(self) -> list[list[str]]:
        """The table as the paper prints it: one decimal where there is one."""
        columns = list(self.averages)
        body = [[task, *(printed(numbers.get(column)) for column in columns)] for task, numbers in self.rows.items()]
        return [["", *columns], *body, ["Average", *(printed(self.averages[column], always=True) for column in columns)]]


def success_table(by_column: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Success rates, as the paper's Table 3.

    Args:
        by_column: the cells by column and task.
    """
    return _table({column: {task: _percent(cell.rate) for task, cell in cells.items()} for column, cells in by_column.items()})


def improvement_table(by_column: Mapping[str, Mapping[str, Cell]]) -> Table:
    """Average improvements over valid submissions, as the paper's Table 4: a cell with runs and no valid submission counts 0."""

    def number(cell: Cell) -> float | None:
        return None if not cell.counted else _percent(cell.improvement) or 0.0

    return _table({column: {task: number(cell) for task, cell in cells.items()} for column, cells in by_column.items()})


def printed(value: float | None, *, always: bool = False) -> str:
    """A percentage with one decimal, without it where it is zero (unless `always`); `-` for none."""
    if value is None:
        return "-"
    text = f"{value:.1f}"
    return text if always else text.removesuffix(".0")


def _percent(interval: Interval | None) -> float | None:
    return None if interval is None else 100 * interval.value


def _table(numbers: Mapping[str, Mapping[str, float | None]]) -> Table:
    tasks = list(dict.fromkeys(task for column in numbers.values() for task in column))
    rows = {task: {column: cells.get(task) for column, cells in numbers.items()} for task in tasks}
    known = {column: [value for value in cells.values() if value is not None] for column, cells in numbers.items()}
    averages: dict[str, float | None] = {column: sum(values) / len(values) if values else None for column, values in known.items()}
    return Table(rows, averages, {column: len(values) for column, values in known.items()})


def comparable(found: Sequence[Cell]) -> bool:
    """Whether cells share isolation and hardware, so that one table may hold them."""
    return len({(cell.conditions.isolation, cell.conditions.hardware) for cell in found}) <= 1
