"""Submissions and scripts by which every ladder proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared
from mlagentbench.tasks.ladder.grade import table
from mlagentbench.tasks.ladder.world import KINDS

SOLVER = '''"""The steps, each worked out from its references: every column, and for each of its values every number, until most are met."""

import numpy as np

KINDS = {kinds}
MODULUS = 97
LINKS = ("previous", "sibling", "control")
NOT_KEYS = ("id", "day", "temperature", "load", "reading", *LINKS)
NUMBERS = np.arange(MODULUS)


def references(number):
    step, rows, values = np.loadtxt("data/references.csv", delimiter=",", skiprows=1, dtype=int).T
    return rows[step == number], values[step == number]


def moved(kind, reading, table, rows, link):
    """The readings of some rows after a step by each number: (numbers, rows)."""
    other = NUMBERS[:, None]
    if kind == "gain":
        return other * reading[rows] % MODULUS
    if kind == "drift":
        return (reading[rows] + other * table["day"][rows]) % MODULUS
    if kind == "partner":
        return (reading[rows] + other * reading[table[link][rows]]) % MODULUS
    return (reading[rows] + other) % MODULUS


def solve(number, kind, reading, table, earlier):
    rows, truth = references(number)
    if kind == "partner":
        keys = {{link: np.zeros(len(reading), int) for link in LINKS}}
    elif kind == "echo":
        keys = {{"tens": earlier[-1] // 10}}
    else:
        keys = {{name: column for name, column in table.items() if name not in NOT_KEYS}}
    best = None
    for name, key in keys.items():
        met = moved(kind, reading, table, rows, name) == truth
        by_level = np.zeros((MODULUS, key.max() + 1))
        np.add.at(by_level.T, key[rows], met.T)
        total = by_level.max(axis=0).sum()
        if best is None or total > best[0]:
            best = total, name, by_level.argmax(axis=0)[key]
    _, name, numbers = best
    print(f"step {{number}}: {{kind}} by {{name}}")
    if kind == "gain":
        return numbers * reading
    if kind == "drift":
        return reading + numbers * table["day"]
    if kind == "partner":
        return reading + numbers * reading[table[name]]
    return reading + numbers


def step(number, kind):
    return lambda reading, table, earlier: solve(number, kind, reading, table, earlier)


STEPS = [step(number, kind) for number, kind in enumerate(KINDS, start=1)]
for undone in {undone}:
    STEPS[undone - 1] = lambda reading, table, earlier: reading
'''


def solution(*, rungs: int) -> Files:
    """Return a script that solves every step."""
    return steps(rungs)


def ineffective(*, rungs: int) -> Files:
    """Return a script that solves every step but the last."""
    return steps(rungs, undone=(rungs,))


def steps(rungs: int, undone: tuple[int, ...] = ()) -> Files:
    """Return a script that solves a ladder's steps except those in `undone`, numbered from 1."""
    return {"steps.py": SOLVER.format(kinds=KINDS[rungs], undone=undone)}


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true answers."""
    return table(data.private).oracle(data)


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return the mean of the training targets with the raw readings, and the answers of other rows."""
    ladder = table(data.private)
    train = pl.read_csv(data.public / "data" / "train.csv")
    reading = pl.read_csv(data.public / "data" / "readings.csv")["reading"][ladder.best(data)["id"].cast(pl.Int64)]
    constant = {name: train["target"].mean() if name == "target" else reading for name in ladder.columns}
    return {**ladder.naive(data), "constant": ladder.changed(data, **constant)}


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    ladder = table(data.private)
    last = list(ladder.columns)[-1]
    without = Invalid(ladder.files(ladder.best(data).drop(last)), f"no column '{last}'")
    return {**ladder.invalid(data), "a step's readings missing": without}
