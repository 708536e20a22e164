"""Prepare CIFAR-10 as arrays: the published archive, or drawn pictures of its shape."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from mlagentbench.data import fetch
from mlagentbench.tasks.cifar10.pictures import Difficulty, Pictures, draw, read_records, write

ARCHIVE = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
FOLDER = "cifar-10-batches-bin"
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
MINI_TRAIN, MINI_TEST = 2400, 2000
MINI = Difficulty(layout=0.45, wave=0.25, noise=1.2)


def full(public: Path, private: Path) -> None:
    """Fetch the 50,000 training and 10,000 test pictures of Krizhevsky (2009)."""
    with tempfile.TemporaryDirectory() as scratch:
        fetch.unpack(fetch.download(ARCHIVE), Path(scratch), keep=[f"{FOLDER}/*.bin", f"{FOLDER}/batches.meta.txt"])
        folder = Path(scratch) / FOLDER
        batches = [read_records(folder / f"data_batch_{number}.bin", label_bytes=1) for number in range(1, 6)]
        train = Pictures(np.concatenate([batch.images for batch in batches]), np.concatenate([batch.labels for batch in batches]))
        test = read_records(folder / "test_batch.bin", label_bytes=1)
        names = (folder / "batches.meta.txt").read_text(encoding="utf-8").split()
    write(train, test, names, public, private)


def mini(public: Path, private: Path, seed: int) -> None:
    """Draw pictures of ten classes."""
    train, test = draw(MINI_TRAIN, MINI_TEST, len(NAMES), MINI, seed)
    write(train, test, NAMES, public, private)
