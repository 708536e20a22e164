"""Prepare the data of the climbs, from scikit-learn's own digits.

They are the 1,797 digits of the test set of Alpaydin and Kaynak (UCI, 1998), so both variants use them. What is made up is the camera: each
picture has an exposure and a haze of its own, and the labels come in an order of their own where there are five changes to make.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.task.seeds import SEED

TRAIN = 500
STOPS = 5
"""A picture is at most this many times twice as bright as another."""
HAZE = 4000
"""The most counts of light that a picture has all over; its ink adds 16 to 512."""


def mini(public: Path, private: Path, seed: int, *, rungs: int) -> None:
    """Write the real digits, with the order and the light of the seed."""
    write(rungs, seed, public, private)


def full(public: Path, private: Path, *, rungs: int) -> None:
    """Write the real digits, with the order and the light of the tasks' own seed."""
    write(rungs, SEED, public, private)


def write(rungs: int, seed: int, public: Path, private: Path) -> None:
    """Write 500 labelled pictures and 1,297 for the test. The labels are in the order of the pictures only where `rungs` is 4."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits))
    exposure, haze = 2 ** rng.uniform(0, STOPS, len(digits)), rng.uniform(0, HAZE, len(digits))
    counts = np.round(pixels * exposure[:, None] + haze[:, None]).astype(np.int64)
    ids = pl.Series("id", rng.permutation(len(digits)) + 1)
    names = [f"p{row}{column}" for row in range(8) for column in range(8)]
    table = pl.DataFrame(counts, schema=names).select(ids, pl.Series("digit", digits), *names)[order]
    train, test = table[:TRAIN], table[TRAIN:]
    data = public / "data"
    data.mkdir()
    train.drop("digit").write_csv(data / "train.csv")
    labels = train.select("id", "digit")
    (labels.sort("id") if rungs > 4 else labels).write_csv(data / "labels.csv")
    test.drop("digit").write_csv(data / "test.csv")
    test.select("id", "digit").write_csv(private / "answers.csv")
