"""Make synthetic scenes as a weather satellite sees them in the infrared.

Contrails are thin, straight and cold; cirrus is round and cold. The difference of bands 15 and 14 (the split window) is lower in ice than
in the sky around it, and lower in contrails than in cirrus, but by no more than the noise of one frame. Each of the first three frames may
lack a contrail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BANDS = (11, 14, 15)
"""The three of nine infrared bands in which ice shows, around 8.4, 11.2 and 12.3 micrometres."""
SKY = {11: 1.5, 14: 0.0, 15: -0.9}
"""Difference to band 14 where there is no ice, in kelvin."""
CONTRAIL = {11: -1.0, 14: -3.0, 15: -4.9}
CIRRUS = {11: -1.0, 14: -3.2, 15: -4.3}
"""Change of temperature where a contrail or cirrus is densest, in kelvin."""
SIZE = 32
"""Height and width in pixels; those of the real scenes are 256."""
NOISE = 2.2
FRAMES, LABELLED = 8, 4
LABELLERS = 5
SEES = 0.8
"""Probability that a labeller marks a pixel of a contrail."""
EMPTY = 0.4


class Scene(NamedTuple):
    """Eight frames, ten minutes apart, and the labels of the fifth."""

    bands: Mapping[int, Array]
    """Brightness temperatures in kelvin by band, (height, width, frames), float32."""
    mask: Array
    """(height, width, 1), int32: 1 where more than half of the labellers saw a contrail."""
    individual_masks: Array
    """(height, width, 1, labellers), int32."""


def draw(rng: np.random.Generator) -> Scene:
    """Draw a scene; two of five have no contrail."""
    size = SIZE
    y, x = np.mgrid[:size, :size].astype(np.float32)
    cells = rng.normal(0, 6, (size // 8 + 1, size // 8 + 1))
    ground = 283 + np.kron(cells, np.ones((8, 8)))[:size, :size]
    contrails, seen = np.zeros((size, size, FRAMES)), np.zeros((size, size), dtype=bool)
    for _ in range(0 if rng.random() < EMPTY else rng.integers(1, 3)):
        density, core = _contrail(x, y, rng)
        contrails = np.maximum(contrails, density)
        seen |= core
    cirrus = np.zeros((size, size))
    for _ in range(rng.integers(0, 3)):
        centre = rng.uniform(0, size, 2)
        cirrus = np.maximum(cirrus, np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * rng.uniform(3, 7) ** 2)))
    bands = {}
    for band in BANDS:
        still = ground + SKY[band] + CIRRUS[band] * cirrus
        noise = rng.normal(0, NOISE, contrails.shape)
        bands[band] = (still[..., None] + CONTRAIL[band] * contrails + noise).astype(np.float32)
    individual = (seen[..., None, None] & (rng.random((size, size, 1, LABELLERS)) < SEES)).astype(np.int32)
    return Scene(bands, (individual.mean(axis=-1) > 0.5).astype(np.int32), individual)


def _contrail(x: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw a contrail, which drifts, and which any of the first three frames may lack.

    Returns:
        Its density in each frame, (height, width, frames), and the pixels that it covers in the labelled one, (height, width).
    """
    size = SIZE
    angle, length = rng.uniform(0, np.pi), rng.uniform(0.4, 0.9) * size
    centre, drift = rng.uniform(0.3, 0.7, 2) * size, rng.normal(0, 0.4, 2)
    frames, core = [], np.zeros(x.shape, dtype=bool)
    for frame in range(FRAMES):
        right, down = (at - start - move * (frame - LABELLED) for at, start, move in zip((x, y), centre, drift, strict=True))
        along, across = right * np.cos(angle) + down * np.sin(angle), down * np.cos(angle) - right * np.sin(angle)
        inside = np.abs(along) < length / 2
        there = frame >= LABELLED - 1 or rng.random() < 0.5
        frames.append(np.exp(-(across**2) / (2 * 1.1**2)) * inside * there)
        if frame == LABELLED:
            core = (np.abs(across) < 1.6) & inside
    return np.stack(frames, axis=-1), core
