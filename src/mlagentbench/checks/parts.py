"""Take values apart for the leak lint: the parts of a text and the digits of a number, any of which may hold an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]

SHOWN = 400
"""Characters of a text, from its beginning, that are taken apart."""
LONGEST_CODE = 64
"""The most characters of texts of one length that are looked at one by one, as in a hexadecimal id."""
WORDS = 4
"""Words, and numbers, at the beginning of a text that are looked at one by one."""
DIGITS = range(-2, 9)
"""Decimal places that are looked at one by one; the negative ones are those before the point."""


class Clue(NamedTuple):
    """A value for each answer's row, from a table, an order or metadata."""

    name: str
    place: str
    """The file or other place that the column comes from, for messages."""
    values: Array
    """Float64 with NaN for gaps, or text with the empty string for them."""
    raw: Array | None = None
    """The values of a table's column as text; None for other columns."""
    whole: str | None = None
    """The column of the same place that this is a part of."""


def parts_of_text(texts: pl.Series, name: str, place: str) -> Iterator[Clue]:
    """Yield columns made from a column of text: its words, numbers, letters, its first and last character, its length and more."""
    texts = texts.fill_null("")
    yield Clue(f"the length of {name}", place, texts.str.len_chars().cast(pl.Float64).to_numpy())
    yield Clue(f"the last number in {name}", place, _numbers(texts.str.slice(-SHOWN).str.extract(r"(\d+(?:\.\d+)?)\D*$")))
    yield Clue(f"the last character of {name}", place, texts.str.slice(-1).to_numpy())
    texts = texts.str.slice(0, SHOWN)
    # Such parts of a path are its folder, too.
    yield Clue(f"{name} without its digits", place, texts.str.replace_all(r"\d", "").to_numpy())
    yield Clue(f"the part of {name} before its last / or _", place, texts.str.replace(r"[/_][^/_]*$", "").to_numpy())
    yield Clue(f"the first character of {name}", place, texts.str.slice(0, 1).to_numpy())
    words, numbers = texts.str.extract_all(r"[^\W\d_]+"), texts.str.extract_all(r"\d+(?:\.\d+)?")
    for number in range(WORDS):
        yield Clue(f"word {number + 1} of {name}", place, words.list.get(number, null_on_oob=True).fill_null("").to_numpy())
        yield Clue(f"number {number + 1} in {name}", place, _numbers(numbers.list.get(number, null_on_oob=True)))
    lengths = texts.filter(texts != "").str.len_chars().unique()
    if len(lengths) == 1 and lengths[0] <= LONGEST_CODE:
        for number in range(int(lengths[0])):
            yield Clue(f"character {number + 1} of {name}", place, texts.str.slice(number, 1).to_numpy())


def parts_of_number(values: Array, texts: pl.Series | None, name: str, place: str, classes: int) -> Iterator[Clue]:
    """Yield columns made from a column of numbers: its digits, what follows each digit, and its remainder.

    Args:
        values: the numbers, NaN for gaps.
        texts: the numbers as they are written; None for an array's.
        name: the column's name, for messages.
        place: the file, for messages.
        classes: the number of classes of the answers, by which whole numbers may be divided; less than 2 for none.
    """
    if texts is not None and texts.str.contains(".", literal=True).any():
        yield Clue(f"the last character of {name}", place, texts.str.slice(-1).to_numpy())
        yield Clue(f"the length of {name}", place, texts.str.len_chars().cast(pl.Float64).to_numpy())
    there = values[~np.isnan(values)]
    if not len(there) or np.abs(there).max() > 1e15:
        return
    size = np.abs(values)
    if classes > 2 and (there == np.round(there)).all():
        yield Clue(f"the remainder of {name} after division by {classes}", place, size % classes)
    for digit in DIGITS:
        scaled = size * 10.0**digit
        # What follows a digit is rounded, since floats are not exact: 0.3 * 10 is less than 3.
        after = np.round(scaled % 1, 6) % 1
        whole = np.round(scaled - after)
        if digit >= 0:
            yield Clue(f"what follows digit {digit} after the point of {name}", place, after)
        yield Clue(f"the digit for {10.0**-digit:g} of {name}", place, whole % 10)


def _numbers(texts: pl.Series) -> Array:
    return texts.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
