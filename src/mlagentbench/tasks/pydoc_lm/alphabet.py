"""Text as numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

END = 0
"""The symbol after each text."""
ALPHABET = "\0\n" + "".join(map(chr, range(32, 127)))
"""The characters by their symbols; the first stands for no character."""
SYMBOLS = len(ALPHABET)


def symbols(texts: Iterable[str]) -> NDArray[np.int64]:
    """All texts one after another as symbols, with `END` after each."""
    joined = "".join(f"{text}\0" for text in texts)
    codes = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).astype(np.int64)
    return np.where(codes >= 32, codes - 30, np.where(codes == ord("\n"), 1, END))


def streams(texts: Iterable[str], count: int) -> NDArray[np.int64]:
    """The texts as `count` streams of equal length, one after another: shape (count, length). Up to `count - 1` symbols are left over."""
    line = symbols(texts)
    length = len(line) // count
    return line[: count * length].reshape(count, length)
