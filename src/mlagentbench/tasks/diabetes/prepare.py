"""Prepare the data of diabetes, from scikit-learn's own files.

It is that of 442 patients (Efron, Hastie, Johnstone and Tibshirani, Annals of Statistics 32(2), 2004). There is nothing to make up or to
fetch, so both variants use it. The patients are numbered anew in a random order, which hides their place in scikit-learn's table; another
seed gives another order.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.task.seeds import SEED

TARGET = "progression"
TRAIN_PATIENTS = 292


def mini(public: Path, private: Path, seed: int) -> None:
    """Write the real patients, in the order of the seed."""
    split(seed, public, private)


def full(public: Path, private: Path) -> None:
    """Write the real patients, in the order of the tasks' own seed."""
    split(SEED, public, private)


def split(seed: int, public: Path, private: Path) -> None:
    """Draw an order, and write 292 patients for training and 150 for the test."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    order = np.random.default_rng(seed).permutation(len(data.target))
    columns = {name: data.data[order, place] for place, name in enumerate(data.feature_names)}
    table = pl.DataFrame({"patient_id": np.arange(1, len(order) + 1), **columns, TARGET: data.target[order]})
    train, test = table[:TRAIN_PATIENTS], table[TRAIN_PATIENTS:]
    train.write_csv(public / "train.csv")
    test.drop(TARGET).write_csv(public / "test.csv")
    test.select("patient_id", pl.lit(train[TARGET].median()).alias(TARGET)).write_csv(public / "sample_submission.csv")
    test.select("patient_id", TARGET).write_csv(private / "answers.csv")
