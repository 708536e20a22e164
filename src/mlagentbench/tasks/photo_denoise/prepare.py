"""Prepare the data of photo-denoise: a photograph from scikit-learn, with noise. Variants and seeds differ only in the noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mlagentbench.task.seeds import SEED

SIGMA = 0.12
"""Standard deviation of the noise, where white is 1."""


def mini(public: Path, private: Path, seed: int) -> None:
    """Write the photograph, with noise drawn from the given seed."""
    add_noise(seed, public, private)


def full(public: Path, private: Path) -> None:
    """Write the photograph, with noise drawn from `SEED`."""
    add_noise(SEED, public, private)


def add_noise(seed: int, public: Path, private: Path) -> None:
    """Write the photograph as uint8 to `private`, and with noise as float32 to `public`."""
    from sklearn.datasets import load_sample_image

    clean = load_sample_image("china.jpg")
    noise = np.random.default_rng(seed).normal(0, SIGMA, clean.shape)
    (public / "data").mkdir()
    np.save(public / "data" / "noisy.npy", (clean / 255 + noise).clip(0, 1).astype(np.float32))
    np.save(private / "clean.npy", clean)
