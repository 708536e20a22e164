"""Draw pictures of the sea floor: animals are coloured shapes, and deeper water is a little darker and has animals of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SIZE = 64
SHALLOW = (1, 9, 11, 20, 37, 51, 88, 108, 119, 146)
"""Categories found at every depth."""
DEEP = (160, 203, 216, 259)
"""Categories found in deep water only."""
WATER = {False: (20, 60, 90), True: (17, 51, 77)}
"""Mean colour by whether the water is deep. Pictures vary by about as much as these differ, so brightness alone hardly tells the depth."""
WATER_SPREAD = 12
COLOUR_SPREAD = 30
NOISE = 18
DEEP_WEIGHT = 3.0
SHAPES = 4


class Animal(NamedTuple):
    """An animal in a picture."""

    category: int
    box: tuple[int, int, int, int]
    """Left, top, width, height, in pixels."""


class SeaPicture(NamedTuple):
    """A picture, and the animals in it."""

    pixels: Array
    """(64, 64, 3), uint8, RGB."""
    animals: tuple[Animal, ...]
    deep: bool


def colours(rng: np.random.Generator) -> dict[int, Array]:
    """Draw each category's colour."""
    return {category: rng.integers(60, 256, 3) for category in (*SHALLOW, *DEEP)}


def draw(deep: bool, palette: dict[int, Array], rng: np.random.Generator) -> SeaPicture:
    """Draw a picture of one to three animals; those earlier in `SHALLOW` are commoner, and in deep water also those of `DEEP`."""
    pool = (*SHALLOW, *DEEP) if deep else SHALLOW
    weights = np.array([DEEP_WEIGHT if category in DEEP else 1.0 for category in pool]) / np.arange(3, len(pool) + 3)
    found = rng.choice(pool, rng.integers(1, 4), replace=False, p=weights / weights.sum())
    pixels = np.ones((SIZE, SIZE, 3)) * rng.normal(WATER[deep], WATER_SPREAD)
    animals = []
    for category in found.tolist():
        width = int(rng.integers(SIZE // 7, SIZE // 4))
        left, top = rng.integers(0, SIZE - width, 2).tolist()
        colour = palette[category] + rng.normal(0, COLOUR_SPREAD, 3)
        part = pixels[top : top + width, left : left + width]
        part[_shape(palette_place(category) % SHAPES, width)] = colour
        animals.append(Animal(category, (left, top, width, width)))
    pixels += rng.normal(0, NOISE, pixels.shape)
    return SeaPicture(pixels.clip(0, 255).astype(np.uint8), tuple(animals), deep)


def palette_place(category: int) -> int:
    """Return a category's place among all that are drawn."""
    return (*SHALLOW, *DEEP).index(category)


def _shape(kind: int, width: int) -> Array:
    """Return a mask, (width, width), bool, of a disc, a square, a triangle or a diagonal bar."""
    y, x = (np.mgrid[:width, :width] + 0.5) / width
    shapes = (
        (x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.25,
        np.ones((width, width), dtype=bool),
        np.abs(x - 0.5) < y / 2,
        np.abs(x - y) < 2 / width + 0.1,
    )
    return shapes[kind]
