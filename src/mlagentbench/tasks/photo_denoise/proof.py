"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlagentbench import Files, Invalid, Prepared
from mlagentbench.tasks.photo_denoise.grade import ARRAY, LARGEST

STARTER = Path(__file__).parent / "starter" / "train.py"

NON_LOCAL_MEANS = """\
import numpy as np
from scipy.ndimage import gaussian_filter

NOISE, REACH, PATCH, STRENGTH = 0.12, 6, 1.2, 0.35

noisy = np.load("data/noisy.npy")
total, weights = np.zeros_like(noisy), np.zeros(noisy.shape[:2], noisy.dtype)
for down in range(-REACH, REACH + 1):
    for right in range(-REACH, REACH + 1):
        moved = np.roll(noisy, (down, right), (0, 1))
        distance = gaussian_filter(((noisy - moved) ** 2).mean(2), PATCH)
        weight = np.exp(-np.maximum(distance - 2 * NOISE**2, 0) / (STRENGTH * NOISE) ** 2)
        total += weight[..., None] * moved
        weights += weight
np.save("denoised.npy", (total / weights[..., None]).clip(0, 1))
"""
"""Non-local means: the mean of nearby pixels, weighted by the similarity of their surroundings (Buades, Coll and Morel, 2005)."""


def _clean(data: Prepared) -> NDArray[Any]:
    return np.asarray(np.load(data.private / "clean.npy") / 255)


def _file(array: NDArray[Any], **options: bool) -> Files:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return {ARRAY: buffer.getvalue()}


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the photograph without noise, in several types and memory layouts of numpy."""
    clean = _clean(data)
    return {
        "float64": _file(clean),
        "float32": _file(clean.astype(np.float32)),
        "by columns": _file(np.asfortranarray(clean)),
        "big-endian": _file(clean.astype(">f8")),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one colour for all pixels, the noisy picture itself, and the photograph shuffled or mirrored."""
    clean, noisy = _clean(data), np.load(data.public / "data" / "noisy.npy")
    rows = np.random.default_rng(0).permutation(len(clean))
    return {
        "constant": _file(np.broadcast_to(noisy.mean(axis=(0, 1)), noisy.shape)),
        "shuffled": _file(clean[rows]),
        "noisy": _file(noisy),
        "in half precision": _file(noisy.astype(np.float16)),
        "mirrored": _file(clean[:, ::-1]),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that the grader must refuse."""
    clean = _clean(data)
    whole = bytes(_file(clean)[ARRAY])  # type: ignore[arg-type]
    with_nan, with_infinity = clean.copy(), clean.copy()
    with_nan[3, 4, 1], with_infinity[-1, -1, -1] = np.nan, -np.inf
    return {
        "empty": Invalid({ARRAY: b""}, "is no array"),
        "text": Invalid({ARRAY: "0.5 0.5 0.5\n"}, "is no array"),
        "a picture file": Invalid({ARRAY: b"\x89PNG\r\n\x1a\n" + whole[:1000]}, "is no array"),
        "a zip of arrays": Invalid({ARRAY: b"PK\x03\x04" + whole[:1000]}, "is no array"),
        "a pickle": Invalid(_file(np.array([{"a": clean.shape}], dtype=object), allow_pickle=True), "holds '|O'"),
        "whole numbers": Invalid(_file((255 * clean).astype(np.uint8)), "holds '|u1'"),
        "complex numbers": Invalid(_file(clean.astype(complex)), "holds '<c16'"),
        "grey levels": Invalid(_file(255 * clean), "from 0 to 1"),
        "no colour": Invalid(_file(clean.mean(axis=2)), "has shape (427, 640)"),
        "colours first": Invalid(_file(clean.transpose(2, 0, 1)), "has shape (3, 427, 640)"),
        "a batch": Invalid(_file(clean[None]), "has shape (1, 427, 640, 3)"),
        "NaN": Invalid(_file(with_nan), "nan at (3, 4, 1)"),
        "infinite": Invalid(_file(with_infinity), "-inf at (426, 639, 2)"),
        "cut off": Invalid({ARRAY: whole[:-8]}, "bytes of numbers"),
        "more than an array": Invalid({ARRAY: whole + b"\0"}, "bytes of numbers"),
        "a header that promises too much": Invalid({ARRAY: whole.replace(b"(427, 640, 3)", b"(99999,99999)")}, "has shape (99999, 99999)"),
        "too large": Invalid({ARRAY: bytes(LARGEST + 1)}, "more than"),
    }


def solution() -> Files:
    """Return a script with non-local means."""
    return {"train.py": NON_LOCAL_MEANS}


def ineffective() -> Files:
    """Return the starter with a weaker blur."""
    return {"train.py": STARTER.read_text(encoding="utf-8").replace("BLUR = 1.0", "BLUR = 0.8")}
