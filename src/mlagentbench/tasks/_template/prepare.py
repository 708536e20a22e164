"""Make up batches of concrete: strength follows the ratio of water to cement (Abrams, 1918) and grows with the logarithm of age."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

TARGET = "strength"
TEST_SHARE = 1 / 3
NOISE = 2.0
"""Standard deviation of the noise of the measured strength, in MPa."""


def mini(public: Path, private: Path, seed: int) -> None:
    """Make a few batches."""
    write(batches(600, np.random.default_rng(seed)), public, private)


def full(public: Path, private: Path, seed: int) -> None:
    """Make many batches from a secret seed. Real data would be fetched here, without a seed: see mlagentbench.fetch."""
    write(batches(6000, np.random.default_rng(seed)), public, private)


def batches(count: int, rng: np.random.Generator) -> pl.DataFrame:
    """Draw batches, in an order that reveals nothing."""
    cement = rng.uniform(150, 500, count).round(1)
    water = rng.uniform(130, 230, count).round(1)
    fly_ash = rng.choice([0.0, 1.0], count) * rng.uniform(20, 180, count).round(1)
    age = rng.choice([3, 7, 14, 28, 56, 90], count)
    plasticizer = rng.uniform(0, 2, count).round(2)
    binder = cement + fly_ash * np.where(age >= 28, 0.5, 0.1)
    final = 110 / 5.5 ** ((water - 12 * plasticizer) / binder)
    strength = final * (0.35 + 0.2 * np.log(age)) + rng.normal(0, NOISE, count)
    return pl.DataFrame(
        {
            "id": rng.permutation(count) + 1,
            "cement": cement,
            "water": water,
            "fly_ash": fly_ash,
            "age": age,
            "plasticizer": plasticizer,
            TARGET: strength.clip(0.5).round(2),
        }
    )


def write(frame: pl.DataFrame, public: Path, private: Path) -> None:
    """Split batches into those to learn from and those to predict, and keep the answers of these apart."""
    test = frame.head(round(TEST_SHARE * len(frame)))
    frame.tail(-len(test)).write_csv(public / "train.csv")
    test.drop(TARGET).write_csv(public / "test.csv")
    test.select("id", TARGET).write_csv(private / "answers.csv")
