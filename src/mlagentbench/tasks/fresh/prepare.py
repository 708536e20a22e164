"""Write the cases of a station and its documents from a seed, which each preparation of the full variant draws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.tasks.fresh.documents import OTHERS, about, other, statement
from mlagentbench.tasks.fresh.world import FAMILIES, draw_rule, make

MINI = (2000, 1500)
FULL = (6000, 4000)
"""Cases of the training and of the test data."""
STATIONS = ("Arbor", "Belmar", "Corvath", "Dunmere", "Eskil", "Farrow", "Gilden", "Harrowby")


def full(public: Path, private: Path, seed: int, *, family: int) -> None:
    """Write a station from a secret seed, so that nobody has seen it before."""
    write(family, FULL, seed, public, private)


def mini(public: Path, private: Path, seed: int, *, family: int) -> None:
    """Write a small station from a given seed."""
    write(family, MINI, seed, public, private)


def write(family: int, sizes: tuple[int, int], seed: int, public: Path, private: Path) -> None:
    """Write the cases and the documents to `public`, and the test's answers and the rule to `private`."""
    rng = np.random.default_rng([seed, family])
    kind, cases = FAMILIES[family], sum(sizes)
    station, *others = rng.permutation(STATIONS).tolist()
    rule = draw_rule(kind, rng)
    world = make(kind, rule, cases, rng)
    data, documents = public / "data", public / "documents"
    data.mkdir()
    documents.mkdir()
    (data / "about.md").write_text(about(kind, station), encoding="utf-8")
    # The cases are independent of one another, so their order tells nothing.
    table = pl.DataFrame({"id": np.arange(cases)}).hstack(world.table)
    answers = pl.DataFrame({"id": np.arange(cases), "good": world.good})
    train, test = sizes
    table.head(train).join(answers, on="id").write_csv(data / "train.csv")
    table.tail(test).write_csv(data / "test.csv")
    answers.tail(test).write_csv(private / "answers.csv")
    if world.edges is not None:
        world.edges.write_csv(data / "edges.csv")
    texts = [statement(kind, station, rule)]
    texts += [statement(kind, name, draw_rule(kind, rng)) for name in others]
    texts += [other(number, station, others[number % len(others)], rng) for number in range(len(OTHERS))]
    order = rng.permutation(len(texts))
    for number, place in enumerate(order, 1):
        (documents / f"note_{number:02}.md").write_text(texts[place], encoding="utf-8")
    found = f"note_{int(np.flatnonzero(order == 0)[0]) + 1:02}.md"
    facts = {"document": found, "station": station, "columns": rule.columns, "weights": rule.weights}
    (private / "rule.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
