"""Docstrings of the running Python's standard library. Nothing is downloaded; another version of Python gives other texts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

from mlagentbench.tasks.pydoc_lm.docstrings import docstrings, library_files

SEED = 0
TEST_FRACTION = 0.1
MINI_MODULES = 60
MINI_TEST_FRACTION = 0.15


def full(public: Path, private: Path) -> None:
    """The whole library: about 1.4 million characters."""
    _write(public, private, library_files(), random.Random(SEED), TEST_FRACTION)


def mini(public: Path, private: Path, seed: int) -> None:
    """Some of its modules."""
    draw = random.Random(seed)
    _write(public, private, draw.sample(library_files(), MINI_MODULES), draw, MINI_TEST_FRACTION)


def _write(public: Path, private: Path, files: Iterable[Path], draw: random.Random, test_fraction: float) -> None:
    """Each text once, so that none is both learnt and tested."""
    texts = sorted({text for file in files for text in docstrings(file)})
    draw.shuffle(texts)
    test = round(test_fraction * len(texts))
    (public / "data").mkdir()
    for path, part in ((public / "data" / "train.json", texts[test:]), (private / "test.json", texts[:test])):
        path.write_text(json.dumps(part, indent=0) + "\n", encoding="utf-8")
