"""A generated table whose target can be learned only after k changes to it, each found with the help of those before.

Every row has a reading, a whole number modulo 97. A step turns a reading into another by a number that is looked up by one of the row's
columns; after k steps the target is a smooth function of it. Before that it tells nothing: the numbers of every step are spread evenly over
the circle, so that an undone step leaves a reading that is as good as random. A step's column and numbers are found from references: the
right readings after that step for some rows, a few of them wrong. Each step has rows of its own for that, so that the readings before it
must have been worked out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

MODULUS = 97
ECHO = 10
"""A reading is one of ten kinds for an `echo`: by its tens."""
WRONG = 0.08
"""The share of references that are random numbers."""
COLUMNS = ("site", "device", "firmware", "operator", "batch", "shift", "line", "vendor")
LINKS = ("previous", "sibling", "control")
NOISE = 0.15
"""Standard deviation of what no model can know of the target, whose own is about 0.9."""

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
"""The steps of a ladder, by their number."""


class Size(NamedTuple):
    """How large a world is."""

    train: int
    test: int
    references: int
    """Rows a step."""
    columns: int
    levels: int
    """Values of a column."""


class Step(NamedTuple):
    """What turns a reading into the next one."""

    kind: Kind
    column: str
    """Whose value a row's number is looked up by; for a partner, the column that names the other row."""
    numbers: Ints
    """By value of the column; a partner's one number is the same for all."""


class World(NamedTuple):
    """A table of n rows, and all that is true of it."""

    table: Mapping[str, NDArray[np.generic]]
    """Columns by name, of shape (n,)."""
    steps: tuple[Step, ...]
    readings: tuple[Ints, ...]
    """The readings before the first step and after each: k + 1 of them."""
    target: Floats
    train: Ints
    test: Ints
    references: tuple[Ints, ...]
    """Rows, a step's own."""


def make(rungs: int, size: Size, seed: int) -> World:
    """A world with so many steps."""
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


def take(step: Step, readings: list[Ints], table: Mapping[str, NDArray[np.generic]]) -> Ints:
    """The readings after a step, given those before it and before all earlier ones."""
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
    """References for readings: the readings themselves, but for a few that mean nothing."""
    return np.where(rng.random(len(reading)) < WRONG, rng.integers(MODULUS, size=len(reading)), reading)


def _step(kind: Kind, free: list[str], levels: int, rng: np.random.Generator) -> Step:
    if kind == "partner":
        return Step(kind, str(rng.choice(LINKS)), rng.integers(2, MODULUS - 1, size=1))
    if kind == "echo":
        return Step(kind, "", _spread(-(-MODULUS // ECHO), rng))
    numbers = rng.permutation(np.arange(2, MODULUS - 1))[:levels] if kind == "gain" else _spread(levels, rng)
    return Step(kind, str(free.pop()), numbers)


def _spread(count: int, rng: np.random.Generator) -> Ints:
    """Numbers spread evenly over the circle, in random order: no average over them points anywhere."""
    return (rng.permutation(np.arange(count) * MODULUS // count) + rng.integers(MODULUS)) % MODULUS


def _target(reading: Ints, table: Mapping[str, NDArray[np.generic]], rng: np.random.Generator) -> Floats:
    angle = 2 * np.pi * reading / MODULUS
    first, second = rng.uniform(0, 2 * np.pi, size=2)
    weather = 0.3 * table["temperature"].astype(np.float64) - 0.2 * table["load"].astype(np.float64)
    wave = np.sin(angle + first) + 0.6 * np.sin(2 * angle + second)
    return np.asarray(np.round(wave + weather + NOISE * rng.standard_normal(len(reading)), 4), dtype=np.float64)
