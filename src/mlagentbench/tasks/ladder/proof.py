"""Submissions and scripts by which every ladder proves its grader.

The number of steps is read from the data, or is an argument where a function is given no data.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text
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


def steps(rungs: int, undone: tuple[int, ...] = ()) -> Files:
    """Return a script that solves a ladder's steps except those in `undone`, numbered from 1."""
    return {"steps.py": SOLVER.format(kinds=KINDS[rungs], undone=undone)}


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true answers."""
    return {"answers": {"submission.csv": table_text(_answers(data))}}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return the mean of the training targets with the raw readings, and the answers of other rows."""
    answers = _answers(data)
    train = pl.read_csv(data.public / "data" / "train.csv")
    readings = pl.read_csv(data.public / "data" / "readings.csv")["reading"].to_numpy()[answers["id"].to_numpy()]
    raw = [pl.Series(readings).alias(column) for column in answers.columns[2:]]
    return {
        "constant": {"submission.csv": table_text(answers.with_columns(pl.lit(train["target"].mean()).alias("target"), *raw))},
        "shuffled": {"submission.csv": table_text(shuffled(answers, "id"))},
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    text = table_text(_answers(data))
    last = _answers(data).columns[-1]
    cases = invalid_tables(text, id_column="id", number_column="target")
    without = Invalid({"submission.csv": table_text(_answers(data).drop(last))}, f"no column '{last}'")
    return cases | {"a step's readings missing": without}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")
