"""Prepare the data of spaceship-titanic: Kaggle's training table, or a smaller one of synthetic passengers.

Kaggle does not publish the answers of its test table, so the last fifth of its training table is the test set here, as in the paper.
Only the training table is downloaded.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mlagentbench.data.fetch import kaggle_competition
from mlagentbench.tasks.spaceship_titanic.passengers import passengers

COMPETITION = "spaceship-titanic"
ID, TARGET = "PassengerId", "Transported"
TRAIN_SHARE = 0.8
MINI_PASSENGERS = 2000


def mini(public: Path, private: Path, seed: int) -> None:
    """Write synthetic passengers with the real columns."""
    split(passengers(MINI_PASSENGERS, seed), public, private)


def full(public: Path, private: Path) -> None:
    """Write Kaggle's passengers, each field with its original text."""
    folder = kaggle_competition(COMPETITION, ["train.csv"])
    split(pl.read_csv(folder / "train.csv", infer_schema=False), public, private)


def split(table: pl.DataFrame, public: Path, private: Path) -> None:
    """Write the first rows as `train.csv`, the others without their answers as `test.csv`, and those answers as `answers.csv`."""
    count = int(TRAIN_SHARE * len(table))
    train, test = table[:count], table[count:]
    train.write_csv(public / "train.csv")
    test.drop(TARGET).write_csv(public / "test.csv")
    test.select(ID, pl.lit("False").alias(TARGET)).write_csv(public / "sample_submission.csv")
    test.select(ID, TARGET).write_csv(private / "answers.csv")
