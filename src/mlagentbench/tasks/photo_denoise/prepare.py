"""The data of photo-denoise: a photograph that comes with scikit-learn, and noise. Variants and seeds differ in the noise only."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mlagentbench.tasks.seeds import SEED

SIGMA = 0.12
"""Standard deviation of the noise, where white is 1."""


def mini(public: Path, private: Path, seed: int) -> None:
    """The photograph, with the noise of the seed."""
    add_noise(seed, public, private)


def full(public: Path, private: Path) -> None:
    """The photograph with noise."""
    add_noise(SEED, public, private)


def add_noise(seed: int, public: Path, private: Path) -> None:
    """Write the photograph as uint8 for the grader, and with noise as float32 for the agent."""
    from sklearn.datasets import load_sample_image

    clean = load_sample_image("china.jpg")
    noise = np.random.default_rng(seed).normal(0, SIGMA, clean.shape)
    (public / "data").mkdir()
    np.save(public / "data" / "noisy.npy", (clean / 255 + noise).clip(0, 1).astype(np.float32))
    np.save(private / "clean.npy", clean)
