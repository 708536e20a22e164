"""Prepare docstrings of an invented library: some for training, and others of the same library as the test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mlagentbench.tasks.pydoc_lm.docstrings import write_docstrings

MINI_TEXTS, FULL_TEXTS = 340, 3000
TEST_FRACTION = 0.15


def full(public: Path, private: Path, seed: int) -> None:
    """Write about 1.6 million characters, from a secret seed."""
    _write(public, private, FULL_TEXTS, np.random.default_rng(seed))


def mini(public: Path, private: Path, seed: int) -> None:
    """Write about 180,000 characters, from a given seed."""
    _write(public, private, MINI_TEXTS, np.random.default_rng(seed))


def _write(public: Path, private: Path, count: int, rng: np.random.Generator) -> None:
    """Write the files. All texts are different, so none is in both parts."""
    texts = write_docstrings(count, rng)
    test = round(TEST_FRACTION * count)
    (public / "data").mkdir()
    for path, part in ((public / "data" / "train.json", texts[test:]), (private / "test.json", texts[:test])):
        path.write_text(json.dumps(part, indent=0) + "\n", encoding="utf-8")
