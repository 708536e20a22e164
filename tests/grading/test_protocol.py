"""Frames over a real pipe: what goes in comes out, and what is no frame is refused before memory is taken for it."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from mlagentbench.grading.code.protocol import MAX_TEXT, Frame, FrameError, receive, send


class Pipe:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def through(self, frame: Frame, max_values: int = 10**6) -> Frame:
        sender = threading.Thread(target=send, args=(self.writer, frame))
        sender.start()
        try:
            return receive(self.reader, max_values)
        finally:
            sender.join()

    def raw(self, data: bytes, max_values: int = 10**6) -> Frame:
        os.write(self.writer, data)
        os.close(self.writer)
        return receive(self.reader, max_values)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    for descriptor in (pipe.reader, pipe.writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4), (300, 400)])
def test_arrays_come_out_as_they_went_in(pipe: Pipe, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).standard_normal(shape)
    array = np.asarray(array)
    got = pipe.through(Frame(7, 2**40, "wörds", (array, array.T)))
    assert (got.kind, got.number, got.text) == (7, 2**40, "wörds")
    assert [out.shape for out in got.arrays] == [array.shape, array.T.shape]
    assert np.array_equal(got.arrays[0], array) and np.array_equal(got.arrays[1], array.T)


def test_a_long_text_is_cut_not_refused(pipe: Pipe) -> None:
    assert len(pipe.through(Frame(0, 1, "x" * 10**6)).text) == MAX_TEXT


def head(text: int = 0, arrays: int = 0, magic: bytes = b"MLAB") -> bytes:
    return struct.pack("<4sQIII", magic, 1, 1, text, arrays)


@pytest.mark.parametrize(
    "data",
    [
        head(magic=b"forw"),
        head(text=2**32 - 1),
        head(arrays=2**31),
        head(arrays=1) + struct.pack("<9I", 9, *[1] * 8),
        head(arrays=1) + struct.pack("<9I", 4, *[2**32 - 1] * 4, *[0] * 4),  # 2^131 bytes
        head(arrays=2) + struct.pack("<9I", 1, 0, *[0] * 7) + struct.pack("<9I", 1, 10**6 + 1, *[0] * 7),
    ],
)
def test_what_is_no_frame_is_refused_at_once(pipe: Pipe, data: bytes) -> None:
    with pytest.raises(FrameError):
        pipe.raw(data)


@pytest.mark.parametrize("data", [b"", head()[:10], head(text=5) + b"abc", head(arrays=1) + struct.pack("<9I", 1, 4, *[0] * 7) + b"1234"])
def test_a_frame_that_breaks_off_is_the_end(pipe: Pipe, data: bytes) -> None:
    with pytest.raises(EOFError):
        pipe.raw(data)
