"""Generate cases of a made-up station, which are good or bad by a rule that no paper has, and documents of which one states the rule.

A case is good if the sum of three parts is above the middle: one in plain sight, one that only the rule tells, and noise. The rule picks by
a code: the fifth power of a weighted sum, modulo a large prime, and then modulo a small number. There are too many weights to be searched
for, and the codes of cases that look alike have nothing in common, so that the training cases alone do not tell it. Without the power they
would: the remainder of a weighted sum is made of plane waves, which a Fourier transform of the training answers finds. The families:

- table: the code of three of a row's columns is one of twelve, each of which is better or worse by an amount of its own.
- text: the code of each rare word, of its letters, is 0, 1 or 2; those with 1 count as good, those with 2 as bad.
- graph: an edge has two numbers; only edges with the code 0 pass on the charge of the node that they lead to.

What shows in plain sight gives an accuracy of 0.65 to 0.7, and the rule more than 0.9.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

Family = Literal["table", "text", "graph"]
FAMILIES: tuple[Family, ...] = get_args(Family)

PRIME = 2**31 - 1
"""Codes are powers modulo this prime."""
POWER = 5
"""It has no factor in common with `PRIME - 1`, so that every remainder has its own power, and all codes are as frequent."""
HIDDEN, NOISE = 1.6, 0.35
"""The standard deviations of the part that the rule decides, and of the noise; that of the part in plain sight is 1."""
LETTERS = "abdegiklmnoprstu"
COLUMNS = ("ash", "bale", "cord", "dusk", "ember", "flint", "gale", "husk")
VALUES = 1000
"""Distinct values of each column of a table: so many that no two cases agree in the columns of the code."""
CODES = 12
"""Codes of a table's rows."""
COMMON, RARE = 12, 9
"""Words of a text: of the forty that occur in many texts, and of those that hardly occur twice."""
EDGES, SHARE = 16, 8
"""Edges of a node, and one in how many has the code 0."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class HiddenRule(NamedTuple):
    """What a document states of a station."""

    columns: tuple[str, ...]
    """The columns of the code; empty for texts."""
    weights: tuple[int, ...]
    """For each of these columns, or for each of `LETTERS`, what it is multiplied by."""


class FreshWorld(NamedTuple):
    """A station's cases, in the order of their ids."""

    table: pl.DataFrame
    """The columns of the cases."""
    edges: pl.DataFrame | None
    good: Ints
    """1 or 0, of shape (n,)."""


def draw_rule(family: Family, rng: np.random.Generator) -> HiddenRule:
    """Draw a rule."""
    columns = {"table": rng.choice(COLUMNS, 3, replace=False).tolist(), "text": [], "graph": ["channel", "grade"]}[family]
    count = len(columns) or len(LETTERS)
    return HiddenRule(tuple(columns), tuple(rng.integers(10**8, PRIME, count).tolist()))


def make(family: Family, rule: HiddenRule, cases: int, rng: np.random.Generator) -> FreshWorld:
    """Draw cases, and decide by a rule which of them are good."""
    table, edges, plain, hidden = {"table": _table, "text": _texts, "graph": _graph}[family](rule, cases, rng)
    total = _standard(plain) + HIDDEN * _standard(hidden) + NOISE * rng.normal(size=cases)
    return FreshWorld(table, edges, (total > np.median(total)).astype(np.int64))


Parts = tuple[pl.DataFrame, pl.DataFrame | None, Floats, Floats]
"""The columns of the cases, the edges, the part of each case that shows in plain sight, and the part that the rule decides."""


def _table(rule: HiddenRule, cases: int, rng: np.random.Generator) -> Parts:
    columns = {name: rng.integers(VALUES, size=cases) for name in COLUMNS}
    heat, load = rng.normal(size=(2, cases)).round(3)
    weighted = np.stack([columns[name] * weight for name, weight in zip(rule.columns, rule.weights, strict=True)])
    code = powers(weighted.sum(axis=0)) % CODES
    worth = rng.permutation(np.linspace(-1, 1, CODES))
    return pl.DataFrame({**columns, "heat": heat, "load": load}), None, heat - load, worth[code]


def powers(sums: Ints) -> Ints:
    """Return the remainders modulo `PRIME` of powers of sums."""
    return np.array([pow(each, POWER, PRIME) for each in sums.tolist()])


def _texts(rule: HiddenRule, cases: int, rng: np.random.Generator) -> Parts:
    # Words that occur often would tell their worth without the rule.
    common = np.array([word for word in _words(400, rng) if word_worth(word, rule.weights) == 0][:40])
    weights = rng.normal(size=len(common))
    chosen = rng.integers(len(common), size=(cases, COMMON))
    rare = _words(cases * RARE, rng).reshape(cases, RARE)
    texts = []
    for row, words in zip(chosen, rare, strict=True):
        text = np.concatenate((common[row], words))
        texts.append(" ".join(rng.permutation(text)))
    hidden = np.array([sum(word_worth(word, rule.weights) for word in text.split()) for text in texts], dtype=float)
    return pl.DataFrame({"text": texts}), None, weights[chosen].sum(axis=1), hidden


def word_worth(word: str, weights: tuple[int, ...]) -> int:
    """Return 1 for a word that counts as good, -1 for one that counts as bad, and 0 for any other."""
    code = sum((place + 1) * weights[LETTERS.index(letter)] for place, letter in enumerate(word))
    return (0, 1, -1)[pow(code, POWER, PRIME) % 3]


def _words(count: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """Return words of five to eight letters."""
    lengths, letters = rng.integers(5, 9, size=count), rng.choice(list(LETTERS), size=(count, 8))
    return np.array(["".join(row[:length]) for row, length in zip(letters, lengths, strict=True)])


def _graph(rule: HiddenRule, cases: int, rng: np.random.Generator) -> Parts:
    heat, charge = rng.normal(size=(2, cases)).round(3)
    source = np.repeat(np.arange(cases), EDGES)
    target = rng.integers(cases, size=len(source))
    channel, grade = rng.integers(1000, size=(2, len(source)))
    live = powers(channel * rule.weights[0] + grade * rule.weights[1]) % SHARE == 0
    hidden = np.bincount(source, charge[target] * live, cases).astype(float)
    edges = pl.DataFrame({"source": source, "target": target, "channel": channel, "grade": grade})
    return pl.DataFrame({"heat": heat, "charge": charge}), edges, heat, hidden


def _standard(part: Floats) -> Floats:
    """Return a part with mean 0 and standard deviation 1."""
    return np.asarray((part - part.mean()) / part.std(), float)
