"""Generate a table whose target can be learned only after k steps, each of which can be found only with the results of those before.

Every row has a reading, a whole number modulo 97. A step turns it into another, with a number that is looked up by a code, which is made
of three of the row's columns. After k steps the target is a smooth function of the reading. Before that the reading tells nothing about the
target: the numbers of each step are spread over all residues, so a missing step leaves readings that are as good as random. A step's
numbers can be found from its references: the readings after that step for some rows, a few of them wrong. Each step has references for rows
of its own, so the steps before it must have been solved.

What a step is like, and its references, can be read only by those who know the readings of all rows after the step before it (`locks.py`).
A code has too many possible weights to be searched for, so steps cannot be skipped, or searched for together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

MODULUS = 97
TEN = 10
"""The code of an `echo` is raised by the earlier reading divided by this, rounded down: by its tens."""
PRIME = 2**31 - 1
"""A code is a weighted sum of columns modulo this prime, and then modulo the number of codes."""
WRONG = 0.08
"""Share of references that are random numbers."""
COLUMNS = ("site", "device", "firmware", "operator", "batch", "shift", "line", "vendor")
LINKS = ("previous", "sibling", "control")
NOISE = 0.15
"""Standard deviation of the target's noise; that of the target is about 0.9."""

Kind = Literal["offset", "mirror", "gain", "drift", "partner", "raw", "echo"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOT_FIRST: tuple[Kind, ...] = ("raw", "echo")
"""The kinds that need readings from before the step before them."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class LadderSize(NamedTuple):
    """Sizes of a ladder's table."""

    train: int
    test: int
    references: int
    """Rows with references for each step."""
    columns: int
    levels: int
    """Distinct values of each column, and of each code."""


class Change(NamedTuple):
    """A change of every row's reading."""

    kind: Kind
    columns: tuple[str, ...]
    """The columns of the code."""
    weights: tuple[int, ...]
    """What each of these columns is multiplied by."""
    link: str
    """For a `partner`, the column with the other row's id; else empty."""
    numbers: Ints
    """Numbers by the code."""


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
    """Generate a table with this many steps, whose kinds are drawn too."""
    rng = np.random.default_rng([seed, rungs])
    n = size.train + size.test + rungs * size.references
    names = COLUMNS[: size.columns]
    table: dict[str, NDArray[np.generic]] = {name: rng.integers(size.levels, size=n) for name in names}
    table |= {name: rng.permutation(n) for name in LINKS}
    table["day"] = rng.integers(1, 365, size=n)
    table |= {name: np.round(rng.standard_normal(n), 3) for name in ("temperature", "load")}
    reading = rng.integers(MODULUS, size=n)
    table["reading"] = reading
    readings, steps = [reading], []
    for kind in _kinds(rungs, rng):
        steps.append(_step(kind, names, size.levels, rng))
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
    number = step.numbers[code(step, readings, table)]
    if step.kind == "mirror":
        changed = number - reading
    elif step.kind == "gain":
        changed = number * reading
    elif step.kind == "drift":
        changed = reading + number * table["day"].astype(np.int64)
    elif step.kind == "partner":
        changed = reading + number * reading[table[step.link].astype(np.int64)]
    elif step.kind == "raw":
        changed = reading + number * readings[0]
    else:
        changed = reading + number
    return np.asarray(changed % MODULUS)


def code(step: Change, readings: list[Ints], table: Mapping[str, NDArray[np.generic]]) -> Ints:
    """Return each row's code, by which the step's number is looked up."""
    total = sum(weight * table[name].astype(np.int64) for name, weight in zip(step.columns, step.weights, strict=True)) % PRIME
    if step.kind == "echo":
        total = total + readings[-2] // TEN
    return np.asarray(total % len(step.numbers))


def noisy(reading: Ints, rng: np.random.Generator) -> Ints:
    """Return readings as references, with the share `WRONG` of them replaced by random numbers."""
    return np.where(rng.random(len(reading)) < WRONG, rng.integers(MODULUS, size=len(reading)), reading)


def _kinds(rungs: int, rng: np.random.Generator) -> list[Kind]:
    """Draw the steps' kinds; no two of them in a row are the same."""
    kinds: list[Kind] = []
    for number in range(rungs):
        free = [kind for kind in KINDS if kind not in kinds[-1:] and (number or kind not in NOT_FIRST)]
        kinds.append(free[rng.integers(len(free))])
    return kinds


def _step(kind: Kind, names: tuple[str, ...], levels: int, rng: np.random.Generator) -> Change:
    added = kind in ("offset", "mirror", "echo")
    numbers = _spread(levels, rng) if added else rng.permutation(np.arange(2, MODULUS - 1))[:levels]
    columns = tuple(str(name) for name in rng.permutation(names)[:3])
    weights = tuple(int(weight) for weight in rng.integers(PRIME // 2, PRIME, size=3))
    return Change(kind, columns, weights, str(rng.choice(LINKS)) if kind == "partner" else "", numbers)


def _spread(count: int, rng: np.random.Generator) -> Ints:
    """Draw numbers spread evenly modulo 97, in random order, so that averaging over them reveals nothing."""
    return (rng.permutation(np.arange(count) * MODULUS // count) + rng.integers(MODULUS)) % MODULUS


def _target(reading: Ints, table: Mapping[str, NDArray[np.generic]], rng: np.random.Generator) -> Floats:
    angle = 2 * np.pi * reading / MODULUS
    first, second = rng.uniform(0, 2 * np.pi, size=2)
    weather = 0.3 * table["temperature"].astype(np.float64) - 0.2 * table["load"].astype(np.float64)
    wave = np.sin(angle + first) + 0.6 * np.sin(2 * angle + second)
    return np.asarray(np.round(wave + weather + NOISE * rng.standard_normal(len(reading)), 4), dtype=np.float64)
