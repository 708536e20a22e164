"""Arrange many runs for a report: columns (an agent with its model), their averages, and notices to show beside the numbers.

The numbers come from `results`. They are collected and worded here once, for the page, the tables and the charts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from mlagentbench.records import Baseline, StepScore
from mlagentbench.report.formatting import plural
from mlagentbench.report.wording import FLAGS
from mlagentbench.results.budget import cost_per_success
from mlagentbench.results.cells import Cell, RateBounds, bounds_over_tasks, cells, columns, improvements_of, rate_over_tasks
from mlagentbench.results.compare import Comparison, Pair, TaskGroup, by_category, comparisons, find_pair
from mlagentbench.results.conditions import Conditions, conditions, differing_limits, limit_words
from mlagentbench.results.counts import THRESHOLDS, Counts
from mlagentbench.results.load import Run
from mlagentbench.results.statistics import intervals, robust
from mlagentbench.results.statistics.intervals import Interval

FEW = 3
"""Up to so many runs are only shown one by one: rates of so few say nothing that the table of runs does not."""

APART: Mapping[str, str] = {
    "infrastructure": "ended by a failure that was not the agent's",
    "cancelled": "cancelled",
    "unfinished": "without a result yet",
    "damaged_result": "with a result that cannot be read",
    "ungraded": "not graded",
    "no_baseline": "compared with no baseline",
}
"""The reasons why a run is not counted, by the keys of `Cell.apart`."""


Key = TypeVar("Key", bound=str)


class LeaderboardRow(NamedTuple):
    """One column over all its tasks. Amounts are means over tasks of means over counted runs."""

    column: str
    agent: str
    model: str
    under: str
    """The variant, isolation and hardware, where columns differ in them."""
    tasks: tuple[str, ...]
    """The tasks with a counted run."""
    runs: int
    """How many runs are counted."""
    apart: Counter[str]
    rate: Interval | None
    """The mean over tasks of success rates (`intervals.average_rate`)."""
    bounds: RateBounds | None
    """What `rate` would be if all runs that it leaves out had failed, and had succeeded (`cells.bounds_over_tasks`)."""
    improvement: Interval | None
    """The mean over tasks of average improvements (`robust.average`); as in the paper, a task without a valid submission counts 0."""
    median: Interval | None
    """The median of the same improvements, each task counting once (`robust.median`)."""
    interquartile_mean: Interval | None
    """The mean of their middle half (`robust.interquartile_mean`)."""
    clipped: int
    """How many of them were clipped (`robust.CLIP`)."""
    valid: int
    """How many valid submissions `improvement` is computed from."""
    tokens: Interval | None
    """None where no run counts, or a run's tokens are unknown."""
    seconds: Interval | None
    steps: Interval | None
    cost: Interval | None
    """US dollars; None where no run's cost is known."""
    cost_per_success: Interval | None
    """US dollars (`budget.cost_per_success`); None where a run's cost is not known, or none succeeds."""
    priced: int
    """How many counted runs have a known cost; `cost` is their mean."""


class AtThreshold(NamedTuple):
    """A column's success rates, averaged as `LeaderboardRow.rate`, if success needs an improvement of more than `threshold`."""

    column: str
    threshold: float
    last: Interval | None
    """At the last step."""
    best: Interval | None
    """At the best step, chosen on the hidden test (optimistic); None where a run's steps were not all graded."""


class ScoreCurve(NamedTuple):
    """One run's scores over its steps, as charts draw them."""

    column: str
    """The run's column: its agent and model."""
    scores: Sequence[StepScore]
    steps: int
    baseline: Baseline | None
    link: str = ""
    """The address that its last point links to."""

    @property
    def values(self) -> list[float]:
        """The run's valid scores, in order."""
        return [score.value for score in self.scores if score.value is not None and math.isfinite(score.value)]


class Notice(NamedTuple):
    """A notice to show beside the numbers."""

    title: str
    text: str


@dataclass(frozen=True, eq=False)
class Experiment:
    """Runs by column and task. A column is an agent with a model; runs under different conditions are in different columns."""

    runs: tuple[Run, ...]
    tasks: Mapping[str, tuple[Run, ...]]
    """All runs by task, tasks in the order of their first run."""
    columns: Mapping[str, Mapping[str, Cell]]
    column_of: Mapping[Conditions, str]
    pairs: tuple[Pair, ...] = ()
    """The columns to compare; empty for every pair."""

    @staticmethod
    def of(runs: Iterable[Run], compare: Iterable[str] = ()) -> Experiment:
        """Return the experiment of these runs; `compare` names pairs of columns as `find_pair` reads them, or none for every pair.

        Raises:
            UsageError: a pair is not of two columns.
        """
        runs = tuple(runs)
        found = columns(cells(runs))
        column_of = {cell.conditions: column for column, by_task in found.items() for cell in by_task.values()}
        tasks = dict.fromkeys(run.info.spec.task for run in runs)
        by_task = {task: tuple(run for run in runs if run.info.spec.task == task) for task in tasks}
        return Experiment(runs, by_task, found, column_of, tuple(find_pair(text, found) for text in compare))

    @property
    def cells(self) -> Iterator[tuple[str, str, Cell]]:
        """All cells with their tasks and columns, by task."""
        return ((task, column, cells[task]) for task in self.tasks for column, cells in self.columns.items() if task in cells)

    @cached_property
    def counted(self) -> int:
        """How many runs are counted."""
        return sum(row.runs for row in self.leaderboard)

    @cached_property
    def leaderboard(self) -> list[LeaderboardRow]:
        """Each column over all its tasks."""
        return [leaderboard_row(column, by_task) for column, by_task in self.columns.items()]

    @cached_property
    def ranking(self) -> list[str]:
        """The columns by success rate, the best first; those without a rate last, and equal ones in the order of `columns`."""
        rates = {row.column: row.rate.value if row.rate else -1.0 for row in self.leaderboard}
        return sorted(self.columns, key=lambda column: -rates[column])

    @cached_property
    def tasks_by_success(self) -> list[str]:
        """The tasks by the mean of their cells' success rates, the one with most success first; equal ones in the order of `tasks`."""
        rates: dict[str, list[float]] = {task: [] for task in self.tasks}
        for task, _, cell in self.cells:
            rates[task] += [cell.rate.value] if cell.rate else []
        return sorted(rates, key=lambda task: -(sum(rates[task]) / len(rates[task])) if rates[task] else 1.0)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The pairs that are to be compared."""
        return comparisons(self.columns, self.pairs)

    @cached_property
    def categories(self) -> Mapping[str, Mapping[str, TaskGroup]]:
        """Groups of tasks by category and column; empty for one category, or for as many as tasks, since they would say nothing new."""
        found: dict[str, dict[str, TaskGroup]] = {}
        for column, by_task in self.columns.items():
            for group in by_category(by_task):
                found.setdefault(group.name, {})[column] = group
        return found if 1 < len(found) < len(self.tasks) else {}

    def pooled(self, by: Literal["agent", "model"]) -> Mapping[str, Mapping[str, Cell]]:
        """Return all cells grouped by agent or by model, in the order of `ranking`; empty if there is one group, or as many as columns."""
        found: dict[str, dict[str, Cell]] = {}
        for column in self.ranking:
            for task, cell in self.columns[column].items():
                found.setdefault(getattr(cell.conditions, by), {})[f"{task} by {column}"] = cell
        return found if 1 < len(found) < len(self.columns) else {}

    @cached_property
    def thresholds(self) -> list[AtThreshold]:
        """Success rates by the improvement that success needs, one row for each column and threshold."""
        rows = []
        for column, by_task in self.columns.items():
            tasks = [cell.counted for cell in by_task.values() if cell.counted]
            every = all(run.best_success is not None for runs in tasks for run in runs)
            for threshold in THRESHOLDS if tasks else ():
                last = [(sum(run.last_success[threshold] for run in runs), len(runs)) for runs in tasks]
                best = [(sum((run.best_success or {}).get(threshold, False) for run in runs), len(runs)) for runs in tasks]
                rows.append(AtThreshold(column, threshold, intervals.average_rate(last), intervals.average_rate(best) if every else None))
        return rows

    def column(self, run: Run) -> str:
        """Return the column that a run belongs to."""
        return self.column_of[conditions(run.info)]

    def score_curves(self, task: str, links: Mapping[Path, str] | None = None) -> list[ScoreCurve]:
        """Return the scores of a task's runs; `links` are the addresses of their last points, by the runs' directories."""
        return [
            ScoreCurve(
                self.column(run),
                run.scores,
                run.last_step,
                run.result.baseline if run.result else None,
                (links or {}).get(run.directory.path, ""),
            )
            for run in self.tasks[task]
        ]

    def notices(self) -> list[Notice]:
        """Return the notices: conditions that differ, runs that are not counted, flags, and differences between the runs of a cell."""
        found = [*_differences(self.column_of), *self._other_data()]
        apart = _together(cell.apart for _, _, cell in self.cells)
        if apart:
            kinds = ", ".join(f"{count} {APART.get(kind, kind)}" for kind, count in apart.most_common())
            found.append(Notice(f"{plural(apart.total(), 'run')} not counted", f"{kinds}. No rate and no mean here has them in it."))
        flags = _together(cell.flags for _, _, cell in self.cells)
        for flag, words in FLAGS.items():
            if flags[flag]:
                found.append(Notice(f"{words.title}: {flags[flag]} of {plural(self.counted, 'counted run')}", words.meaning))
        differing: dict[str, list[str]] = {}
        for task, column, cell in self.cells:
            for difference in cell.differences:
                # One notice for what differs, whatever its values are: every cell may have its own.
                differing.setdefault(difference.partition(":")[0], []).append(f"{difference} ({task} by {column}")
        for first, *others in differing.values():
            more = f", and {len(others)} more, each with its own values" if others else ""
            found.append(Notice("Runs of one cell differ", f"{first}{more})."))
        return found

    def _other_data(self) -> Iterable[Notice]:
        """Yield a notice if columns have runs of a task on mini data of different seeds."""
        tasks = []
        for task, runs in self.tasks.items():
            seeds: dict[str, dict[str, None]] = {}
            for run in runs:
                if run.info.spec.variant == "mini":
                    seed = run.info.spec.mini_seed
                    seeds.setdefault(self.column(run), {})["none" if seed is None else str(seed)] = None
            if len({frozenset(each) for each in seeds.values()}) > 1:
                words = [f"{column}: {', '.join(each)}" for column, each in seeds.items()]
                tasks.append(f"{task} ({'; '.join(words)})")
        if tasks:
            text = f"{', '.join(tasks)}. Their runs had other data, so a difference may be the data's; give all columns the same seeds."
            yield Notice("Different mini seeds between columns", text)


def _together(counted: Iterable[Mapping[Key, int]]) -> Counter[Key]:
    total: Counter[Key] = Counter()
    for each in counted:
        total.update(each)
    return total


def leaderboard_row(column: str, by_task: Mapping[str, Cell]) -> LeaderboardRow:
    """Summarise a column over all its tasks."""
    runs = [run for cell in by_task.values() for run in cell.counted]
    counted = [cell.counted for cell in by_task.values() if cell.counted]
    costs = [priced for one in counted if (priced := [run.cost for run in one if run.cost is not None])]
    shared = next(iter(by_task.values())).conditions
    improved = improvements_of(by_task.values())
    return LeaderboardRow(
        column=column,
        agent=shared.agent,
        model=shared.model,
        under=column.removeprefix(f"{shared.agent}, {shared.model}").removeprefix(", "),
        tasks=tuple(task for task, cell in by_task.items() if cell.counted),
        runs=len(runs),
        apart=_together(cell.apart for cell in by_task.values()),
        rate=rate_over_tasks(by_task.values()),
        bounds=bounds_over_tasks(by_task.values()),
        improvement=robust.average(*improved),
        median=robust.median(*improved),
        interquartile_mean=robust.interquartile_mean(*improved),
        clipped=sum(cell.clipped for cell in by_task.values()),
        valid=sum(len(cell.improvements) for cell in by_task.values()),
        tokens=_average(counted, lambda run: run.tokens),
        seconds=_average(counted, lambda run: run.seconds),
        steps=_average(counted, lambda run: run.steps),
        cost=robust.average(costs, least=0.0),
        cost_per_success=cost_per_success(by_task),
        priced=sum(map(len, costs)),
    )


def _average(counted: Iterable[Iterable[Counts]], amount: Callable[[Counts], float | None]) -> Interval | None:
    """Return the mean amount of a run, over tasks; None if that of any run is unknown."""
    groups = [[amount(run) for run in one] for one in counted]
    known = [[value for value in one if value is not None] for one in groups]
    return robust.average(known, least=0.0) if known == groups else None


def _differences(found: Iterable[Conditions]) -> Iterable[Notice]:
    """Yield a notice for each condition that is not the same for all runs."""
    found = list(found)
    limits = differing_limits(found)
    for name, values in (
        ("variants of the data", {each.variant for each in found}),
        ("isolation", {each.isolation for each in found}),
        ("hardware", {each.hardware or "unknown" for each in found}),
        ("limits", {", ".join(limit_words(each, limits)) for each in found}),
    ):
        if len(values) > 1:
            text = f"{', '.join(sorted(values))}. Runs that differ in it stand in columns of their own; compare across them with care."
            yield Notice(f"Different {name}", text)
