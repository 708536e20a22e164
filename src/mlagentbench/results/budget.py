"""Compute what runs reached for what they spent: success and improvement by budget and by attempts, and the cost of a success."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np

from mlagentbench.results.cells import Cell, improvement_over_tasks, rate_over_tasks
from mlagentbench.results.counts import NOTHING_YET, Counts, Progress
from mlagentbench.results.statistics import intervals, robust
from mlagentbench.results.statistics.intervals import LEVEL, RESAMPLES, SEED, Interval
from mlagentbench.task.success import THRESHOLD

Spent = Literal["steps", "tokens", "dollars", "hours"]
SPENT: tuple[Spent, ...] = get_args(Spent)
AMOUNTS: Mapping[Spent, Callable[[Progress], float | None]] = {
    "steps": lambda after: after.steps,
    "tokens": lambda after: after.tokens,
    "dollars": lambda after: after.dollars,
    "hours": lambda after: after.hours,
}
SERIES = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""The first digits of budgets."""


class AtBudget(NamedTuple):
    """What a column's runs had reached within a budget, averaged over tasks."""

    column: str
    spent: Spent
    budget: float
    """Steps, tokens, US dollars or hours of one run; grading is not part of them."""
    rate: Interval
    """The success rate of the submissions as they stood when the budget was spent, as at the last step for runs that spent less."""
    improvement: Interval | None
    """Their improvement, averaged and clipped as at the last step; None where every task has a baseline of 0."""
    tasks: int
    runs: int


class AtAttempts(NamedTuple):
    """What a column reaches with the best of k runs of each task, averaged over tasks."""

    column: str
    k: int
    pass_at_k: Interval
    """The probability that at least one run succeeds (`intervals.average_pass_at_k`)."""
    best_of_k: Interval | None
    """The expected best improvement (`robust.best_of`), clipped; a run without a valid submission leaves the starter, and counts 0."""
    tasks: int
    """The tasks, each with at least k counted runs."""


def at_budgets(columns: Mapping[str, Mapping[str, Cell]]) -> list[AtBudget]:
    """Return success and improvement by budget, for each column whose runs have a score for every step.

    An amount is left out for a column if it is not known for all of its runs. Budgets are the same for all columns.
    """
    found = []
    for spent in SPENT:
        known = {column: cells for column, by_task in columns.items() if (cells := _known(by_task.values(), spent))}
        grid = budgets([run for cells in known.values() for cell in cells for run in cell.counted], spent)
        for column, cells in known.items():
            for budget in grid:
                then = [within(cell, spent, budget) for cell in cells]
                rate, improvement = rate_over_tasks(then), improvement_over_tasks(then)
                runs = sum(len(cell.counted) for cell in cells)
                if rate is not None:
                    found.append(AtBudget(column, spent, budget, rate, improvement, len(cells), runs))
    return found


def within(cell: Cell, spent: Spent, budget: float) -> Cell:
    """Return a cell as if each counted run had ended within a budget. Every step of its runs must be graded."""
    return replace(cell, runs=tuple(_reached(run, spent, budget) for run in cell.counted))


def budgets(runs: Sequence[Counts], spent: Spent) -> list[float]:
    """Return round budgets for runs whose amount is known: about the least that any had spent after its first step to the most of any."""
    amounts = [[AMOUNTS[spent](after) or 0.0 for after in run.progress] for run in runs if run.progress]
    positive = [amount for each in amounts for amount in each if amount > 0]
    if not positive:
        return []
    least, most = min(next(amount for amount in (*each, math.inf) if amount > 0) for each in amounts), max(positive)
    found: list[float] = []
    power = math.floor(math.log10(least))
    while not found or found[-1] < most:
        series = [float(f"{digit}e{power}") for digit in SERIES]
        found += [budget for budget in series if budget >= least * 0.999 and (spent != "steps" or budget.is_integer())]
        power += 1
    return found[: next(place for place, budget in enumerate(found, start=1) if budget >= most)]


def at_attempts(columns: Mapping[str, Mapping[str, Cell]]) -> list[AtAttempts]:
    """Return pass@k and best-of-k of each column, for every k up to the smallest number of counted runs of its tasks."""
    found = []
    for column, by_task in columns.items():
        cells = [cell for cell in by_task.values() if cell.counted]
        relative = [_improvements_or_0(cell.counted) for cell in cells if cell.averaged]
        most = min((len(cell.counted) for cell in cells), default=0)
        best = robust.best_of(relative, most) if relative else [None] * most
        for k, best_of_k in enumerate(best, start=1):
            passed = intervals.average_pass_at_k([(cell.successes, len(cell.counted)) for cell in cells], k)
            if passed is not None:
                found.append(AtAttempts(column, k, passed, best_of_k, len(cells)))
    return found


def cost_per_success(by_task: Mapping[str, Cell]) -> Interval | None:
    """Return the US dollars that a column's success costs: its mean cost of a run over its success rate, both averaged over tasks.

    The interval is a percentile bootstrap over the runs of each task, in which a run's cost and its success stay together. Its upper bound
    is infinite where too many resamples have no success.

    Returns:
        The dollars; None if the cost of a counted run is unknown, or no run counts or succeeds.
    """
    tasks = [cell.counted for cell in by_task.values() if cell.counted]
    if not tasks or any(run.cost is None for runs in tasks for run in runs) or not any(run.success for runs in tasks for run in runs):
        return None
    draw = np.random.default_rng(SEED)
    value, resampled = np.zeros(2), np.zeros((2, RESAMPLES))
    for runs in tasks:
        pairs = np.array([[run.cost, run.success] for run in runs], dtype=float)
        value += pairs.mean(axis=0)
        resampled += pairs[draw.integers(0, len(runs), (RESAMPLES, len(runs)))].mean(axis=1).T
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(resampled[1] > 0, resampled[0] / resampled[1], math.inf)
    estimate = float(value[0] / value[1])
    if sum(map(len, tasks)) < robust.FEWEST:
        return Interval(estimate, estimate, estimate)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="inverted_cdf")
    return Interval(estimate, float(low), float(high))


def _known(cells: Iterable[Cell], spent: Spent) -> list[Cell]:
    """Return the cells with counted runs; none if an amount is not known after every step of each."""
    counted = [cell for cell in cells if cell.counted]
    runs = [run for cell in counted for run in cell.counted]
    known = all(run.progress is not None and all(AMOUNTS[spent](after) is not None for after in run.progress) for run in runs)
    return counted if known else []


def _reached(run: Counts, spent: Spent, budget: float) -> Counts:
    """Return a run as it would count had it ended after its last step within a budget; without a submission if its first was beyond it."""
    within = NOTHING_YET
    for after in run.progress or ():
        if (AMOUNTS[spent](after) or 0.0) > budget * (1 + 1e-9):
            break
        within = after
    return run._replace(
        score=within.score,
        improvement=within.improvement,
        last_success={**run.last_success, THRESHOLD: within.success},
        success_within_baseline=within.success_within_baseline,
        move=within.move,
    )


def _improvements_or_0(runs: Sequence[Counts]) -> list[float]:
    return [robust.clipped(run.improvement) if run.valid and run.improvement is not None else 0.0 for run in runs]
