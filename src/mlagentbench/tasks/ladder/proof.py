"""Submissions and scripts by which every ladder proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared
from mlagentbench.tasks.ladder.grade import table

SOLVER = '''"""The steps, each worked out from its note; the column and numbers that it lacks are those that meet most references."""

import re
from pathlib import Path

import numpy as np

MODULUS = 97
LINKS = ("previous", "sibling", "control")
NOT_COLUMNS = ("id", "day", "temperature", "load", "reading", *LINKS)
NUMBERS = np.arange(MODULUS)[:, None]
KINDS = {{
    "mirror": "subtracted from a number",
    "gain": "multiplied by a number",
    "drift": "number times `day`",
    "partner": "another row's reading",
    "raw": "number times the raw reading",
    "echo": "raised by the tens",
    "offset": "number is added",
}}


def taken(kind, number, reading, table, earlier, rows, link):
    if kind == "mirror":
        return number - reading[rows]
    if kind == "gain":
        return number * reading[rows]
    if kind == "drift":
        return reading[rows] + number * table["day"][rows]
    if kind == "partner":
        return reading[rows] + number * reading[table[link][rows]]
    if kind == "raw":
        return reading[rows] + number * earlier[0][rows]
    return reading[rows] + number


def codes(kind, note, table, earlier):
    tens = earlier[-1] // 10 if kind == "echo" else 0
    one, a, two, b = re.search(r"multiply `(\\w+)` by (\\d+), `(\\w+)` by (\\d+)", note).groups()
    c, prime, levels = map(int, re.search(r"third column by (\\d+).* by (\\d+), .* by (\\d+)[.]", note).groups())
    for name, column in table.items():
        if name not in (*NOT_COLUMNS, one, two):
            yield ((table[one] * int(a) + table[two] * int(b) + column * c) % prime + tens) % levels


def solve(number, reading, table, earlier):
    path = Path(f"notes/step_{{number}}.md")
    if not path.exists():
        return reading
    note = path.read_text()
    kind = next(kind for kind, words in KINDS.items() if words in note)
    rows, truth = np.loadtxt(f"notes/references_{{number}}.csv", delimiter=",", skiprows=1, dtype=int).T
    best = None
    for code in codes(kind, note, table, earlier):
        for link in LINKS if kind == "partner" else ("",):
            met = taken(kind, NUMBERS, reading, table, earlier, rows, link) % MODULUS == truth
            by_code = np.zeros((MODULUS, code.max() + 1))
            np.add.at(by_code.T, code[rows], met.T)
            total = by_code.max(axis=0).sum()
            if best is None or total > best[0]:
                best = total, link, by_code.argmax(axis=0)[code]
    print(f"step {{number}}: {{kind}}")
    return taken(kind, best[2], reading, table, earlier, np.arange(len(reading)), best[1])


def step(number):
    return lambda reading, table, earlier: solve(number, reading, table, earlier)


STEPS = [step(number) for number in range(1, {rungs} + 1)]
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
    return {"steps.py": SOLVER.format(rungs=rungs, undone=undone)}


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
