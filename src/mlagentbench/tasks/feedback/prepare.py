"""Prepare the data of feedback: Kaggle's essays, or fewer and shorter made-up ones.

Kaggle does not publish the scores of its test essays, so some essays of its training table are the test here: 2% of them, as in the paper,
drawn by a hash of their ids. Of the made-up essays, a quarter is the test.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl

from mlagentbench.data.fetch import kaggle_competition
from mlagentbench.tasks.feedback.essays import SCORES, essays

COMPETITION = "feedback-prize-english-language-learning"
TEST_SHARE, MINI_TEST_SHARE = 0.02, 0.25
MINI_ESSAYS = 1200


def mini(public: Path, private: Path, seed: int) -> None:
    """Make up essays with the real columns."""
    split(essays(MINI_ESSAYS, seed), MINI_TEST_SHARE, public, private)


def full(public: Path, private: Path) -> None:
    """Fetch Kaggle's essays."""
    folder = kaggle_competition(COMPETITION, ["train.csv"])
    split(pl.read_csv(folder / "train.csv", infer_schema=False), TEST_SHARE, public, private)


def split(table: pl.DataFrame, share: float, public: Path, private: Path) -> None:
    """Write some essays without their scores as `test.csv`, those scores as `answers.csv`, and the others as `train.csv`."""
    drawn = sorted(table["text_id"], key=lambda name: hashlib.sha256(str(name).encode()).digest())[: round(share * len(table))]
    chosen = pl.col("text_id").is_in(drawn)
    test = table.filter(chosen)
    table.filter(~chosen).write_csv(public / "train.csv")
    test.select("text_id", "full_text").write_csv(public / "test.csv")
    test.select("text_id", *(pl.lit(3.0).alias(name) for name in SCORES)).write_csv(public / "sample_submission.csv")
    test.select("text_id", *SCORES).write_csv(private / "answers.csv")
