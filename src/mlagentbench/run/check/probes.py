"""How much one thing tells of another: what one column, an order or a file's size says about the answers, from 0 to 1.

Each probe asks whether the answers could be had without learning anything: by sorting, or by looking values up. 1 is perfectly, 0 is not at
all; a good feature of an honest task stays well below 1. Where there are few rows, chance tells much; `beyond_chance` says when that is so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]

FEW_ROWS = 12
"""Fewer rows than this tell nothing that could not be chance."""
CLASSES = 20
"""A column of no more values than this is one of classes, whether they are written as numbers or not."""
PERMUTATIONS = 19
"""How often the answers are shuffled to see what chance tells."""
PERIODS = 128
"""The longest repetition of classes in an order that is looked for."""


class Target(NamedTuple):
    """Something that answers say, a value a row."""

    name: str
    values: Array
    """Float64; codes from 0 for classes."""
    classes: bool

    def part(self, rows: Array) -> Target:
        """Some rows of it."""
        return self._replace(values=self.values[rows])

    def shuffled(self, rng: np.random.Generator) -> Target:
        """The same values in another order."""
        return self._replace(values=rng.permutation(self.values))


Probe = Callable[[Array, Target], float]
"""How much a column of float64 or of text, without gaps, tells of a target."""


def as_target(name: str, column: pl.Series) -> Target:
    """An answer column of text: numbers where all are and there are many, else classes."""
    numbers = column.cast(pl.Float64, strict=False)
    many = column.n_unique() > CLASSES
    if many and numbers.null_count() == 0 and numbers.is_finite().all():
        return Target(name, numbers.to_numpy().astype(np.float64), classes=False)
    return Target(name, codes(column.fill_null("").to_numpy()).astype(np.float64), classes=True)


def codes(values: Array) -> NDArray[np.int64]:
    """Each value's place among the distinct ones, sorted."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def by_sorting(column: Array, target: Target) -> float:
    """How far numbers sort the answers: the rank correlation, or for classes how few times the class changes along the sorted rows."""
    if column.dtype.kind not in "fiub":
        return 0.0
    if not target.classes:
        return abs(_correlation(_ranks(column), _ranks(target.values)))
    rng = np.random.default_rng(0)  # rows of equal numbers have no order
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
    """How far equal values have equal answers: what they explain of the variance, or of the rows that the commonest class misses."""
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
    """How far classes come round in an order of rows, as in 0, 1, 2, 0, 1, 2."""
    if column.dtype.kind not in "fiub" or not target.classes:
        return 0.0
    places = column - column.min()
    if (places != np.round(places)).any() or len(np.unique(places)) < len(places):
        return 0.0
    longest = min(PERIODS, len(places) // 8)
    return max((by_looking_up(places % period, target) for period in range(2, longest + 1)), default=0.0)


def beyond_chance(probe: Probe, column: Array, target: Target, found: float) -> bool:
    """Whether a probe finds much less in shuffled answers, every time."""
    rng = np.random.default_rng(0)
    return all(probe(column, target.shuffled(rng)) < 0.6 * found for _ in range(PERMUTATIONS))


def telling(probes: tuple[Probe, ...], column: Array, target: Target, bar: float) -> float | None:
    """How much a column tells of a target by the best of some probes, where that is `bar` or more and no chance; None otherwise.

    Args:
        probes: to be tried.
        column: a value a row; NaN or empty text is a gap.
        target: as long.
        bar: from 0 to 1.
    """
    there = ~np.isnan(column) if column.dtype.kind == "f" else column != "" if column.dtype.kind in "OU" else np.ones(len(column), bool)
    if there.sum() < FEW_ROWS:
        return None
    column, target = column[there], target.part(there)
    if len(np.unique(target.values)) < 2:
        return None
    best = 0.0
    for probe in probes:
        found = probe(column, target)
        if found >= max(bar, best) and beyond_chance(probe, column, target, found):
            best = found
    return best or None


def _ranks(values: Array) -> Array:
    """Ranks from 0; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - (counts + 1) / 2)[inverse]).reshape(-1)


def _correlation(one: Array, other: Array) -> float:
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size else 0.0
