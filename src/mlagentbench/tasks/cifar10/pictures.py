"""Read pictures from CIFAR's archives, and draw pictures of their shape for the mini variants of cifar10 and cifar100."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]

SIZE = 32
BYTES = 3 * SIZE * SIZE
KINDS = 2
"""Layouts of each class."""
CELLS, BLUR = 5, 11
"""Coloured cells along a layout's side, and the width in pixels of the box filter that blurs them."""
FREQUENCIES = (4.0, 6.0)
"""Waves along a picture's side, for the first and the second half of the classes."""
BLUR_SHIFTS = range(-(BLUR // 2), BLUR // 2 + 1)
ORDER_SEED = 10
"""The seed of the order of the test pictures."""


class Pictures(NamedTuple):
    """Labelled pictures."""

    images: Array
    """(count, 32, 32, 3), uint8, RGB."""
    labels: Array
    """(count,), uint8, from 0."""


class Difficulty(NamedTuple):
    """How strong the drawn classes and the noise are, in units of 42 grey levels, and how far pictures are shifted."""

    layout: float
    wave: float
    noise: float
    shift: int = 12
    """The most pixels by which a picture's part of its layout is shifted."""


def read_records(path: Path, label_bytes: int) -> Pictures:
    """Read a file of the archives' binary version: records of `label_bytes` labels, the last of which counts, and 3,072 pixels.

    The binary version holds what the Python version holds, without pickles.
    """
    records = np.fromfile(path, np.uint8).reshape(-1, label_bytes + BYTES)
    pixels = records[:, label_bytes:].reshape(-1, 3, SIZE, SIZE)
    return Pictures(np.ascontiguousarray(pixels.transpose(0, 2, 3, 1)), records[:, label_bytes - 1].copy())


def draw(train: int, test: int, classes: int, difficulty: Difficulty, seed: int) -> tuple[Pictures, Pictures]:
    """Draw training and test pictures, with the same share of every class in each.

    A class is two smooth layouts of colour, seen in part and sometimes mirrored, under waves of the class's frequency and angle;
    brightness, contrast and every pixel vary. So convolution, mirroring and shifting help, and a plain average does not.
    """
    rng = np.random.default_rng(seed)
    layouts = _layouts(classes, SIZE + difficulty.shift, rng)
    return _draw(train, layouts, difficulty, rng), _draw(test, layouts, difficulty, rng)


def write(train: Pictures, test: Pictures, names: list[str], public: Path, private: Path) -> None:
    """Write a task's data, with the test pictures in an order of their own, since models may know the published order."""
    order = np.random.default_rng(ORDER_SEED).permutation(len(test.images))
    data = public / "data"
    data.mkdir()
    np.save(data / "train_images.npy", train.images)
    np.save(data / "train_labels.npy", train.labels)
    np.save(data / "test_images.npy", test.images[order])
    (data / "class_names.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    pl.DataFrame({"id": np.arange(len(order)), "label": test.labels[order]}).write_csv(private / "answers.csv")


def _layouts(classes: int, room: int, rng: np.random.Generator) -> Array:
    """Draw layouts, (classes, KINDS, 3, room, room), of standard deviation 1; a picture shows a part of one."""
    cells = rng.standard_normal((classes, KINDS, 3, CELLS, CELLS))
    layouts = np.kron(cells, np.ones((9, 9)))[..., :room, :room]
    for axis in (-1, -2):
        layouts = np.mean([np.roll(layouts, shift, axis) for shift in BLUR_SHIFTS], axis=0)
    return np.asarray(layouts / layouts.std(), dtype=np.float32)


def _draw(count: int, layouts: Array, difficulty: Difficulty, rng: np.random.Generator) -> Pictures:
    classes = len(layouts)
    labels = rng.permutation(np.arange(count) % classes)
    parts = np.lib.stride_tricks.sliding_window_view(layouts, (SIZE, SIZE), axis=(3, 4))
    kinds, down, right = rng.integers(KINDS, size=count), *rng.integers(parts.shape[3], size=(2, count))
    pictures = parts[labels, kinds, :, down, right]
    mirrored = rng.random(count) < 0.5
    pictures[mirrored] = pictures[mirrored, :, :, ::-1]
    pictures *= difficulty.layout * _column(rng.uniform(0.5, 1.3, count))
    pictures += difficulty.wave * _waves(labels, classes, rng)
    pictures += rng.normal(0, 0.5, (count, 3, 1, 1))
    pictures += difficulty.noise * rng.standard_normal(pictures.shape, dtype=np.float32)
    levels = np.clip(120 + 42 * pictures, 0, 255).astype(np.uint8)
    return Pictures(np.ascontiguousarray(levels.transpose(0, 2, 3, 1)), labels.astype(np.uint8))


def _waves(labels: Array, classes: int, rng: np.random.Generator) -> Array:
    """Draw waves, (count, 1, SIZE, SIZE), of a few angles and two frequencies, by class, each picture's at its own phase."""
    half = classes // 2
    angles = labels % half * np.pi / half + rng.normal(0, 0.2, len(labels))
    frequencies = np.where(labels < half, *FREQUENCIES)
    along = np.arange(SIZE) / SIZE
    place = _column(np.cos(angles)) * along + _column(np.sin(angles)) * along[:, None]
    phases = rng.uniform(0, 2 * np.pi, len(labels))
    return np.asarray(np.sin(2 * np.pi * _column(frequencies) * place + _column(phases)))


def _column(values: Array) -> Array:
    return values[:, None, None, None]
