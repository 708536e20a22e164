"""The messages between a grader and the code it grades: frames of plain arrays over a pipe.

A frame is a header of fixed size, then a text, then arrays of little-endian float64, each after its shape. Nothing in it is ever unpickled
or evaluated, every length is checked against a bound before memory is allocated for it, and an answer repeats the number of its question.

Both sides use this file: it also runs inside the sandbox, beside the agent's code, and so imports nothing of this package.
"""

from __future__ import annotations

import os
import struct
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FAILED = 0
"""The kind of an answer whose text says why the question failed."""

MAX_TEXT = 4096
MAX_ARRAYS = 16
MAX_DIMENSIONS = 8

_MAGIC = b"MLAB"
_HEAD = struct.Struct("<4sQIII")
"""Magic, number of the question, kind, bytes of text, number of arrays."""
_SHAPE = struct.Struct("<9I")
"""Number of dimensions, then as many lengths; the rest is 0."""


class FrameError(ValueError):
    """The bytes received are no frame, or one that exceeds its bounds."""


class Frame(NamedTuple):
    """A question or an answer."""

    kind: int
    """What is asked or answered; each task defines its own kinds."""
    number: int
    """The question's number, which its answer repeats."""
    text: str = ""
    arrays: tuple[Array, ...] = ()


def send(descriptor: int, frame: Frame) -> None:
    """Write a frame.

    Raises:
        OSError: the other side has closed the pipe.
    """
    text = frame.text.encode("utf-8", "backslashreplace")[:MAX_TEXT]
    _write(descriptor, _HEAD.pack(_MAGIC, frame.number, frame.kind, len(text), len(frame.arrays)) + text)
    for array in frame.arrays:
        plain = np.asarray(array, dtype="<f8", order="C")
        lengths = plain.shape + (0,) * (MAX_DIMENSIONS - plain.ndim)
        _write(descriptor, _SHAPE.pack(plain.ndim, *lengths))
        _write(descriptor, plain.reshape(-1).view(np.uint8).data)


def receive(descriptor: int, max_values: int) -> Frame:
    """Read a frame.

    Args:
        descriptor: a pipe that blocks; the caller enforces a deadline by killing the other side.
        max_values: how many numbers the frame's arrays may hold together.

    Raises:
        EOFError: the other side has closed the pipe.
        FrameError: the bytes are no frame, or one that exceeds its bounds.
    """
    magic, number, kind, text_length, count = _HEAD.unpack(_read(descriptor, _HEAD.size).data)
    if magic != _MAGIC or text_length > MAX_TEXT or count > MAX_ARRAYS:
        raise FrameError("what came over the grader's pipe is no answer; only its own code may write there")
    text = bytes(_read(descriptor, text_length)).decode("utf-8", "replace")
    arrays: list[Array] = []
    for _ in range(count):
        dimensions, *lengths = _SHAPE.unpack(_read(descriptor, _SHAPE.size).data)
        if dimensions > MAX_DIMENSIONS:
            raise FrameError(f"an array has {dimensions} dimensions, more than {MAX_DIMENSIONS}")
        shape = tuple(lengths[:dimensions])
        max_values -= prod(shape)
        if max_values < 0:
            raise FrameError(f"an array of shape {shape} is larger than asked for")
        arrays.append(_read(descriptor, 8 * prod(shape)).view("<f8").reshape(shape))
    return Frame(kind, number, text, tuple(arrays))


def _write(descriptor: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _read(descriptor: int, length: int) -> NDArray[np.uint8]:
    """Read exactly `length` bytes into a new array."""
    data = np.empty(length, dtype=np.uint8)
    rest = data.data
    while rest:
        count = os.readv(descriptor, [rest])
        if not count:
            raise EOFError("the other side has gone")
        rest = rest[count:]
    return data
