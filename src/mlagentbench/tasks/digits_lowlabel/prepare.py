"""Prepare the data of digits-lowlabel, from scikit-learn's own files.

It is the 1,797 digits of the test set of Alpaydin and Kaynak (UCI, 1998). There is nothing to make up or to fetch, so both variants use it.
In scikit-learn's table the digits count up, again and again; so the rows are in a random order here, and the ids in another.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.task.seeds import SEED

LABELLED_EACH, TEST = 10, 900
SIDE = 8


def mini(public: Path, private: Path, seed: int) -> None:
    """Write the real digits, in the order of the seed."""
    split(seed, public, private)


def full(public: Path, private: Path) -> None:
    """Write the real digits, in the order of the tasks' own seed."""
    split(SEED, public, private)


def split(seed: int, public: Path, private: Path) -> None:
    """Draw an order, and write ten labelled pictures of each digit, 900 for the test, and the others without labels."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits))
    test, rest = order[:TEST], order[TEST:]
    labelled = np.concatenate([rest[digits[rest] == digit][:LABELLED_EACH] for digit in range(10)])
    unlabelled = rest[~np.isin(rest, labelled)]
    names = [f"p{row}{column}" for row in range(SIDE) for column in range(SIDE)]
    table = pl.DataFrame(pixels.astype(np.int64), schema=names).with_columns(pl.Series("digit", digits))
    table = table.select(pl.Series("id", rng.permutation(len(digits)) + 1), "digit", *names)
    data = public / "data"
    data.mkdir()
    table[rng.permutation(labelled)].write_csv(data / "labelled.csv")
    table[unlabelled].drop("digit").write_csv(data / "unlabelled.csv")
    table[test].drop("digit").write_csv(data / "test.csv")
    table[test].select("id", pl.lit(0).alias("digit")).write_csv(data / "sample_submission.csv")
    table[test].select("id", "digit").write_csv(private / "answers.csv")
