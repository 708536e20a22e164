"""Prepare the data of house-price: sales in Ames from Kaggle's training table, or as many synthetic ones.

Kaggle does not publish the prices of its test table, so the last fifth of its training table is the test set here, as in the paper.
Only the training table is downloaded.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mlagentbench.data.fetch import kaggle_competition
from mlagentbench.tasks.house_price.houses import houses

COMPETITION = "home-data-for-ml-course"
TARGET = "SalePrice"
TRAIN_SHARE = 0.8
MINI_HOUSES = 1460
"""As many as in Kaggle's training table."""


def mini(public: Path, private: Path, seed: int) -> None:
    """Write synthetic houses with the real columns."""
    split(houses(MINI_HOUSES, seed), public, private)


def full(public: Path, private: Path) -> None:
    """Write Kaggle's houses, each field with its original text."""
    folder = kaggle_competition(COMPETITION, ["train.csv"])
    split(pl.read_csv(folder / "train.csv", infer_schema=False), public, private)


def split(table: pl.DataFrame, public: Path, private: Path) -> None:
    """Write the first rows as `train.csv`, the others without their prices as `test.csv`, and those prices as `answers.csv`."""
    count = int(TRAIN_SHARE * len(table))
    train, test = table[:count], table[count:]
    train.write_csv(public / "train.csv")
    test.drop(TARGET).write_csv(public / "test.csv")
    median = train[TARGET].cast(pl.Float64).median()
    test.select("Id", pl.lit(median).alias(TARGET)).write_csv(public / "sample_submission.csv")
    test.select("Id", TARGET).write_csv(private / "answers.csv")
