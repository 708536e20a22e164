"""Grade a denoised picture by its root mean squared error, and read its .npy file without unpickling."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlagentbench import GradingContext, InvalidSubmission, Score, row_score

ARRAY = "denoised.npy"
LARGEST = 32 * 2**20
"""Largest file accepted, in bytes; the picture takes 6.6 million as float64."""
LONGEST_HEADER = 1024
BLOCK = 32
"""Height and width of a block, in pixels."""
FLOATS = ("'<f2'", "'>f2'", "'<f4'", "'>f4'", "'<f8'", "'>f8'")
_HEADER = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|\x02\x00....)"
    rb"{'descr': (?P<dtype>[^\n]{1,400}), 'fortran_order': (?P<fortran_order>True|False), 'shape': \((?P<shape>[0-9, ]{0,80})\), } *\n",
    re.DOTALL,
)
"""The header that numpy.save writes. Numpy's reader would evaluate it as Python, and fails in many ways on a damaged one."""
SCALE = (-1.0, 2.0)
"""Smallest and largest brightness accepted: predictions may overshoot the range from 0 to 1."""
ADVICE = "write it with numpy.save, as floating-point numbers of shape"


def grade(context: GradingContext) -> Score:
    """Score the root mean squared error over all pixels and colours, in grey levels from 0 to 255.

    Raises:
        InvalidSubmission: the file is not an array of the picture's shape, or holds values that are not brightness.
    """
    clean = np.load(context.private / "clean.npy") / 255
    found = read_array(context.submission.read_bytes(ARRAY, LARGEST), clean.shape)
    error = found.clip(0, 1) - clean
    # Neighbouring pixels are wrong together, so the blocks are the rows.
    squares, pixels = _by_block(error**2), _by_block(np.ones_like(error))
    return row_score(
        np.stack([squares, pixels], axis=1),
        lambda means: 255 * np.sqrt(means[..., 0] / means[..., 1]),
        details={"bias": 255 * float(error.mean())},
    )


def _by_block(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over square blocks of a picture of shape (height, width, colours)."""
    height, width, _ = values.shape
    columns = np.add.reduceat(values.sum(axis=2), np.arange(0, width, BLOCK), axis=1)
    return np.asarray(np.add.reduceat(columns, np.arange(0, height, BLOCK), axis=0)).ravel()


def read_array(data: bytes, shape: tuple[int, ...]) -> NDArray[Any]:
    """Read an array in numpy's .npy format, as float64.

    Args:
        data: the file's bytes.
        shape: the shape that the array must have.

    Raises:
        InvalidSubmission: the bytes are not an array, it has another shape or type, or its values are not finite or not within `SCALE`.
    """
    header = _HEADER.match(data[:LONGEST_HEADER])
    if not header:
        raise InvalidSubmission(f"{ARRAY} is no array; {ADVICE} {shape}")
    dtype, fortran_order = header["dtype"].decode("latin-1"), header["fortran_order"] == b"True"
    if dtype not in FLOATS:
        raise InvalidSubmission(f"{ARRAY} holds {dtype[:40]}; {ADVICE} {shape}, from 0 to 1")
    sizes = [size.strip() for size in header["shape"].decode().rstrip(", ").split(",")]
    if sizes != [str(size) for size in shape]:
        raise InvalidSubmission(f"{ARRAY} has shape ({', '.join(sizes)[:60]}); {ADVICE} {shape}")
    values, kind = data[header.end() :], np.dtype(dtype.strip("'"))
    if len(values) != kind.itemsize * math.prod(shape):
        raise InvalidSubmission(f"{ARRAY} has {len(values):,} bytes of numbers, not as many as its shape needs; {ADVICE} {shape}")
    array = np.frombuffer(values, kind).reshape(shape, order="F" if fortran_order else "C").astype(np.float64)
    if not np.isfinite(array).all():
        place = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise InvalidSubmission(f"{ARRAY} is {array[place]} at {place}; write finite numbers only")
    low, high = float(array.min()), float(array.max())
    if low < SCALE[0] or high > SCALE[1]:
        raise InvalidSubmission(f"{ARRAY} has numbers from {low:g} to {high:g}; write brightness from 0 to 1")
    return array
