"""Measure how much of the answers a column, an order or a file's size gives away, from 0 (nothing) to 1 (everything).

Each probe tries to get the answers without learning: by sorting, or by looking values up. A good feature of an honest task stays well below
1. With few rows, chance alone gives high values; `beyond_chance` and `BITS` exclude that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]

FEW_ROWS = 12
"""With fewer rows than this, every result may be chance."""
BITS = 20.0
"""With less information than this in the answers, in bits, one of thousands of columns tells them by chance."""
CLASSES = 20
"""The most distinct values of a column of classes; a column with no more is one, even if its values are numbers."""
PERMUTATIONS = 19
"""How often the answers are shuffled to measure chance."""
PERIODS = 128
"""The longest period of repeating classes that is tried."""
LACK_OF_FIT = 0.05
"""The most by which group means may miss a column, as a share of what chance makes them miss it, for the column to be made of them."""


class Target(NamedTuple):
    """A part of the answers that may leak, with a value for each row."""

    name: str
    values: Array
    """Float64; for classes their numbers, from 0."""
    classes: bool

    def part(self, rows: Array) -> Target:
        """Return the target of some rows only."""
        return self._replace(values=self.values[rows])

    def shuffled(self, rng: np.random.Generator) -> Target:
        """Return the target with its values in random order."""
        return self._replace(values=rng.permutation(self.values))


Probe = Callable[[Array, Target], float]
"""Returns how much of a target a column gives away, from 0 to 1. The column is float64 or text, without gaps."""


def as_target(name: str, column: pl.Series) -> Target:
    """Make a target of an answer column of text: of numbers if all values are and more than `CLASSES` differ, else of classes."""
    numbers = column.cast(pl.Float64, strict=False)
    many = column.n_unique() > CLASSES
    if many and numbers.null_count() == 0 and numbers.is_finite().all():
        return Target(name, numbers.to_numpy().astype(np.float64), classes=False)
    return Target(name, codes(column.fill_null("").to_numpy()).astype(np.float64), classes=True)


def codes(values: Array) -> NDArray[np.int64]:
    """Return each value's index in the sorted distinct values."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def by_sorting(column: Array, target: Target) -> float:
    """Return how well numbers sort the answers: the rank correlation, or for classes how rarely the class changes along the sorted rows."""
    if column.dtype.kind not in "fiub":
        return 0.0
    if not target.classes:
        return abs(_correlation(_ranks(column), _ranks(target.values)))
    rng = np.random.default_rng(0)  # rows with equal numbers are put in random order
    order = np.lexsort((rng.random(len(column)), column))
    labels = target.values[order]
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    expected = (len(labels) - 1) * (1 - float((shares**2).sum()))
    needed = len(shares) - 1
    if expected - needed < 4:
        return 0.0
    changes = int((labels[1:] != labels[:-1]).sum())
    return max(0.0, 1 - max(0, changes - needed) / (expected - needed))


def by_looking_up(column: Array, target: Target) -> float:
    """Return how far equal values have equal answers: the share of the variance, or of the rows not of the commonest class, explained."""
    groups = codes(column)
    count = int(groups.max()) + 1
    if count > len(groups) / 3 or count < 2:
        return 0.0
    if not target.classes:
        sizes = np.bincount(groups, minlength=count)
        means = np.bincount(groups, target.values, minlength=count) / sizes
        total = float(((target.values - target.values.mean()) ** 2).sum())
        return 1 - float(((target.values - means[groups]) ** 2).sum()) / total if total else 0.0
    labels = codes(target.values)
    table = np.zeros((count, int(labels.max()) + 1), np.int64)
    np.add.at(table, (groups, labels), 1)
    right, commonest = int(table.max(axis=1).sum()), int(table.sum(axis=0).max())
    return (right - commonest) / (len(labels) - commonest) if len(labels) > commonest else 0.0


def by_repeating(column: Array, target: Target) -> float:
    """Return how far classes repeat with some period along an order of rows, as in 0, 1, 2, 0, 1, 2."""
    if column.dtype.kind not in "fiub" or not target.classes:
        return 0.0
    places = column - column.min()
    if (places != np.round(places)).any() or len(np.unique(places)) < len(places):
        return 0.0
    longest = min(PERIODS, len(places) // 8)
    return max((by_looking_up(places % period, target) for period in range(2, longest + 1)), default=0.0)


def by_averaging(column: Array, target: Target) -> float:
    """Return 1, or a little less, if the numbers are the mean answers of the rows that share them, up to scale; else 0.

    The means of groups scatter around any line that was not made of them, as the answers scatter in the groups: the ratio of the two is
    that of the F test for lack of fit.
    """
    if column.dtype.kind != "f":
        return 0.0
    groups = codes(column)
    sizes = np.bincount(groups)
    count = len(sizes)
    if count < FEW_ROWS or len(column) < 2 * count:
        return 0.0
    values = np.unique(column)
    if target.classes:
        kinds = np.unique(target.values)[:CLASSES]
        grids = [(target.values == kind).astype(np.float64) for kind in kinds]
    else:
        grids = [target.values]
    best = 1.0
    for grid in grids:
        means = np.bincount(groups, grid) / sizes
        within = float(((grid - means[groups]) ** 2).sum()) / (len(grid) - count)
        line = np.polynomial.Polynomial.fit(values, means, 1, w=np.sqrt(sizes))
        between = float((sizes * (means - line(values)) ** 2).sum()) / (count - 2)
        best = min(best, between / within) if within > 0 else best
    return 1 - best if best < LACK_OF_FIT else 0.0


def beyond_chance(probe: Probe, column: Array, target: Target, found: float) -> bool:
    """Return whether a probe finds less than 0.6 of `found` in shuffled answers, every time."""
    rng = np.random.default_rng(0)
    return all(probe(column, target.shuffled(rng)) < 0.6 * found for _ in range(PERMUTATIONS))


def telling(probes: tuple[Probe, ...], column: Array, target: Target, bar: float) -> float | None:
    """Return how much of a target a column gives away by the best of some probes; None if that is less than `bar` or may be chance.

    Args:
        probes: the probes to try.
        column: a value for each row; NaN or empty text is a gap.
        target: the target, with as many rows.
        bar: the least result, from 0 to 1.
    """
    there = ~np.isnan(column) if column.dtype.kind == "f" else column != "" if column.dtype.kind in "OU" else np.ones(len(column), bool)
    if there.sum() < FEW_ROWS:
        return None
    column, target = column[there], target.part(there)
    shares = np.unique(target.values, return_counts=True)[1] / len(column)
    if -len(column) * float((shares * np.log2(shares)).sum()) < BITS:
        return None
    best = 0.0
    for probe in probes:
        found = probe(column, target)
        if found >= max(bar, best) and beyond_chance(probe, column, target, found):
            best = found
    return best or None


def _ranks(values: Array) -> Array:
    """Return the ranks of some values, from 0; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - (counts + 1) / 2)[inverse]).reshape(-1)


def _correlation(one: Array, other: Array) -> float:
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size else 0.0
