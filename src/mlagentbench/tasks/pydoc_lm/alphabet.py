"""Encode texts as symbols, which are whole numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

END = 0
"""The symbol after each text."""
ALPHABET = "\0\n" + "".join(map(chr, range(32, 127)))
"""The character of each symbol; the first stands for `END`."""
SYMBOLS = len(ALPHABET)


def symbols(texts: Iterable[str]) -> NDArray[np.int64]:
    """Encode texts one after another as symbols, with `END` after each."""
    joined = "".join(f"{text}\0" for text in texts)
    codes = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).astype(np.int64)
    return np.where(codes >= 32, codes - 30, np.where(codes == ord("\n"), 1, END))


def streams(texts: Iterable[str], count: int) -> NDArray[np.int64]:
    """Cut texts into `count` streams of equal length, and drop the last symbols, up to `count - 1`.

    Returns:
        Symbols of shape (count, length).
    """
    line = symbols(texts)
    length = len(line) // count
    return line[: count * length].reshape(count, length)
