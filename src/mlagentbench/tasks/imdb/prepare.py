"""Prepare film reviews, and a DistilBERT model to fine-tune.

Source: the Large Movie Review Dataset of Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011: 25,000 reviews for training
and 25,000 for testing, half of each positive. Its files list all negative reviews first, so the agent must not see that order.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.data.fetch import hugging_face
from mlagentbench.tasks.imdb.reviews import make_reviews
from mlagentbench.tasks.imdb.tiny_model import write_tiny_model

REVIEWS = ("stanfordnlp/imdb", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31")
MODEL = ("distilbert/distilbert-base-uncased", "12040accade4e8a0f71eabdb258fecc2e7e948be")
"""A repository on Hugging Face and its revision, as in `REVIEWS`."""
SPLITS = {split: f"plain_text/{split}-00000-of-00001.parquet" for split in ("train", "test")}
MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt")

MINI_TRAIN, MINI_TEST = 2000, 1000


def full(public: Path, private: Path) -> None:
    """Write the real reviews and the real model, so that a run needs no network."""
    reviews = hugging_face(REVIEWS[0], tuple(SPLITS.values()), revision=REVIEWS[1])
    train, test = (pl.read_parquet(reviews / file, columns=["text", "label"]) for file in SPLITS.values())
    _write(public, private, train, test)
    model = hugging_face(MODEL[0], MODEL_FILES, kind="model", revision=MODEL[1])
    (public / "distilbert").mkdir()
    for file in MODEL_FILES:
        shutil.copyfile(model / file, public / "distilbert" / file)


def mini(public: Path, private: Path, seed: int) -> None:
    """Write synthetic reviews and a tiny model."""
    rng = np.random.default_rng(seed)
    train, test = make_reviews(MINI_TRAIN, rng), make_reviews(MINI_TEST, rng)
    _write(public, private, train, test)
    write_tiny_model(public / "distilbert", train["text"], rng)


def _write(public: Path, private: Path, train: pl.DataFrame, test: pl.DataFrame) -> None:
    """Write the tables of texts and labels; the labels of the test go to `private`."""
    data = public / "data"
    data.mkdir()
    _numbered(train).write_csv(data / "train.csv")
    test = _numbered(test)
    test.drop("label").write_csv(data / "test.csv")
    test.select("idx", "label").write_csv(private / "answers.csv")


def _numbered(reviews: pl.DataFrame) -> pl.DataFrame:
    """Sort reviews by the digests of their texts, an order that tells nothing of the labels, and number them from 0."""
    digests = [hashlib.sha256(text.encode()).digest() for text in reviews["text"]]
    ordered = reviews.with_columns(pl.Series("digest", digests)).sort("digest", maintain_order=True)
    return ordered.select(pl.int_range(pl.len()).alias("idx"), "text", pl.col("label").cast(pl.Int64))
