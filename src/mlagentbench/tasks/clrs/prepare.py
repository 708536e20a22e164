"""Prepare runs of the Floyd-Warshall algorithm: the benchmark's own training and validation sets, and a test set of a secret seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mlagentbench.tasks.clrs.sampler import Runs, sample

TEST_GRAPHS, TEST_NODES = 32, 64
"""The size of the benchmark's own test set, which is public and so is not used."""


def full(public: Path, private: Path, seed: int) -> None:
    """Write the benchmark's 1,000 training and 32 validation graphs of 16 nodes, and 32 new test graphs of 64."""
    _write(public, sample(1000, 16, seed=1), sample(32, 16, seed=2))
    _write_test(private, TEST_GRAPHS, TEST_NODES, seed % 2**32)


def mini(public: Path, private: Path, seed: int) -> None:
    """Write as many graphs for training as in full, of 6 nodes rather than 16; and 96 for the test, of 7."""
    seeds = [int(each) for each in np.random.SeedSequence(seed).generate_state(3)]
    _write(public, sample(1000, 6, seeds[0]), sample(32, 6, seeds[1]))
    _write_test(private, 96, 7, seeds[2])


def _write(public: Path, train: Runs, validation: Runs) -> None:
    folder = public / "data"
    folder.mkdir()
    for name, runs in (("train", train), ("val", validation)):
        arrays = {field: _small(array) for field, array in runs._asdict().items()}
        np.savez_compressed(folder / f"{name}.npz", allow_pickle=False, **arrays)


def _write_test(private: Path, count: int, nodes: int, seed: int) -> None:
    runs = sample(count, nodes, seed)
    np.savez_compressed(private / "test.npz", allow_pickle=False, A=runs.A, Pi=runs.Pi.astype(np.uint8), seed=seed)


def _small(array: np.ndarray) -> np.ndarray:
    """Return integers, and arrays of zeros and ones, as uint8, and others as float32, which is enough for training."""
    if array.dtype.kind == "i" or np.isin(array, (0, 1)).all():
        return array.astype(np.uint8)
    return array.astype(np.float32)
