"""Generate a table whose target can be learned only after k steps, each of which can be found only with the results of those before.

Every row has a reading, a whole number modulo 97. A step turns it into another, mostly with a number that is looked up by the value of one
of the row's columns. After k steps the target is a smooth function of the reading. Before that the reading tells nothing about the target:
the numbers of each step are spread over all residues, so a missing step leaves readings that are as good as random. A step's column and
numbers can be found from its references: the readings after that step for some rows, a few of them wrong. Each step has references for
rows of its own, so the steps before it must have been solved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

MODULUS = 97
ECHO = 10
"""The number of an `echo` is looked up by the reading divided by this, rounded down: by its tens."""
WRONG = 0.08
"""Share of references that are random numbers."""
COLUMNS = ("site", "device", "firmware", "operator", "batch", "shift", "line", "vendor")
LINKS = ("previous", "sibling", "control")
NOISE = 0.15
"""Standard deviation of the target's noise; that of the target is about 0.9."""

Kind = Literal["offset", "gain", "drift", "partner", "echo"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KINDS: Mapping[int, tuple[Kind, ...]] = {
    2: ("offset", "drift"),
    3: ("offset", "gain", "drift"),
    4: ("offset", "partner", "gain", "drift"),
    5: ("offset", "partner", "gain", "echo", "drift"),
    6: ("offset", "partner", "gain", "echo", "drift", "offset"),
}
"""The kinds of a ladder's steps in their order, by the number of steps."""


class LadderSize(NamedTuple):
    """Sizes of a ladder's table."""

    train: int
    test: int
    references: int
    """Rows with references for each step."""
    columns: int
    levels: int
    """Distinct values of each column."""


class Change(NamedTuple):
    """A change of every row's reading."""

    kind: Kind
    column: str
    """The column by whose value the number is looked up; for a `partner`, the column with the other row's id; empty for an `echo`."""
    numbers: Ints
    """Numbers by the column's value, for an `echo` by the earlier reading's tens; a `partner` has one for all rows."""


class World(NamedTuple):
    """A table of n rows, with the steps, readings and targets that belong to it."""

    table: Mapping[str, NDArray[np.generic]]
    """Columns by name, of shape (n,)."""
    steps: tuple[Change, ...]
    readings: tuple[Ints, ...]
    """The readings before the first step and after each: k + 1 of them."""
    target: Floats
    train: Ints
    test: Ints
    references: tuple[Ints, ...]
    """Rows with references, for each step."""


def make(rungs: int, size: LadderSize, seed: int) -> World:
    """Generate a table with this many steps."""
    rng = np.random.default_rng([seed, rungs])
    n = size.train + size.test + rungs * size.references
    names = COLUMNS[: size.columns]
    table: dict[str, NDArray[np.generic]] = {name: rng.integers(size.levels, size=n) for name in names}
    table |= {name: rng.permutation(n) for name in LINKS}
    table["day"] = rng.integers(1, 365, size=n)
    table |= {name: np.round(rng.standard_normal(n), 3) for name in ("temperature", "load")}
    reading = rng.integers(MODULUS, size=n)
    table["reading"] = reading
    free, readings, steps = list(rng.permutation(names)), [reading], []
    for kind in KINDS[rungs]:
        steps.append(_step(kind, free, size.levels, rng))
        readings.append(take(steps[-1], readings, table))
    rows = rng.permutation(n)
    train, test, *references = np.split(rows, np.cumsum([size.train, size.test] + [size.references] * (rungs - 1)))
    return World(
        table,
        tuple(steps),
        tuple(readings),
        _target(readings[-1], table, rng),
        np.sort(train),
        np.sort(test),
        tuple(np.sort(each) for each in references),
    )


def take(step: Change, readings: list[Ints], table: Mapping[str, NDArray[np.generic]]) -> Ints:
    """Apply a step to every row's reading.

    Args:
        step: the step to apply.
        readings: the readings before each step so far, with those before this step last.
        table: the columns by name.

    Returns:
        The readings after the step.
    """
    reading = readings[-1]
    if step.kind == "partner":
        return np.asarray((reading + step.numbers[0] * reading[table[step.column].astype(np.int64)]) % MODULUS)
    key = readings[-2] // ECHO if step.kind == "echo" else table[step.column].astype(np.int64)
    number = step.numbers[key]
    if step.kind == "gain":
        return (number * reading) % MODULUS
    if step.kind == "drift":
        return (reading + number * table["day"].astype(np.int64)) % MODULUS
    return (reading + number) % MODULUS


def noisy(reading: Ints, rng: np.random.Generator) -> Ints:
    """Return readings as references, with the share `WRONG` of them replaced by random numbers."""
    return np.where(rng.random(len(reading)) < WRONG, rng.integers(MODULUS, size=len(reading)), reading)


def _step(kind: Kind, free: list[str], levels: int, rng: np.random.Generator) -> Change:
    if kind == "partner":
        return Change(kind, str(rng.choice(LINKS)), rng.integers(2, MODULUS - 1, size=1))
    if kind == "echo":
        return Change(kind, "", _spread(-(-MODULUS // ECHO), rng))
    numbers = rng.permutation(np.arange(2, MODULUS - 1))[:levels] if kind == "gain" else _spread(levels, rng)
    return Change(kind, str(free.pop()), numbers)


def _spread(count: int, rng: np.random.Generator) -> Ints:
    """Draw numbers spread evenly modulo 97, in random order, so that averaging over them reveals nothing."""
    return (rng.permutation(np.arange(count) * MODULUS // count) + rng.integers(MODULUS)) % MODULUS


def _target(reading: Ints, table: Mapping[str, NDArray[np.generic]], rng: np.random.Generator) -> Floats:
    angle = 2 * np.pi * reading / MODULUS
    first, second = rng.uniform(0, 2 * np.pi, size=2)
    weather = 0.3 * table["temperature"].astype(np.float64) - 0.2 * table["load"].astype(np.float64)
    wave = np.sin(angle + first) + 0.6 * np.sin(2 * angle + second)
    return np.asarray(np.round(wave + weather + NOISE * rng.standard_normal(len(reading)), 4), dtype=np.float64)
