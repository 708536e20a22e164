"""Take values apart for the leak lint: the parts of a text and the digits of a number, any of which may hold an answer."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from functools import partial
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
MARKS = 100
"""The most characters, other than the letters and digits of English, whose presence is looked at one by one."""
COMPARED = 200
"""Words at the beginning of a text by which it is compared."""


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
    yield Clue(f"the order of {name}, as text,", place, texts.rank("dense").cast(pl.Float64).to_numpy())
    for mark in _marks(texts):
        yield Clue(f"whether {mark!a} stands in {name}", place, texts.str.contains(mark, literal=True).to_numpy())
    decoded = _decoded(texts)
    if decoded is not None:
        yield Clue(f"{name}, decoded,", place, decoded.to_numpy())
        yield from parts_of_text(decoded, f"{name}, decoded,", place)
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
        texts: the numbers as they are written, with what stands around them; None for an array's.
        name: the column's name, for messages.
        place: the file, for messages.
        classes: the number of classes of the answers, by which whole numbers may be divided; less than 2 for none.
    """
    if texts is not None:
        yield Clue(f"{name} without its digits", place, texts.str.replace_all(r"\d", "").to_numpy())
        yield Clue(f"the length of {name}", place, texts.str.len_chars().cast(pl.Float64).to_numpy())
        if texts.str.contains(".", literal=True).any():
            yield Clue(f"the last character of {name}", place, texts.str.slice(-1).to_numpy())
            decimals = texts.str.extract(r"\.(\d*)").fill_null("").str.len_chars()
            yield Clue(f"the number of decimals of {name}", place, decimals.cast(pl.Float64).to_numpy())
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


def words(text: str, size: int) -> Array:
    """Return the counts of a text's words, added with random signs, as a vector of length 1: few changed words move it little.

    Args:
        text: the text; its first words count, without regard to capitals and punctuation.
        size: the numbers in the vector.
    """
    vector = np.zeros(size)
    for word in re.findall(r"\w+", text.lower())[:COMPARED]:
        code = zlib.crc32(word.encode())
        vector[code % size] += 1 if code >> 16 & 1 else -1
        vector[code // 64 % size] += 1 if code >> 17 & 1 else -1
    length = float(np.sqrt((vector**2).sum()))
    return vector / length if length else vector


def _marks(texts: pl.Series) -> list[str]:
    """Return the characters, other than letters and digits of English, that some of the texts have and some have not."""
    having = texts.str.replace_all(r"[A-Za-z0-9]", "").str.split("").list.unique().explode().value_counts(name="texts")
    kept = having.filter((pl.col("texts") >= 2) & (pl.col("texts") < len(texts))).sort("texts", texts.name, descending=True)
    return [mark for mark in kept[texts.name] if mark][:MARKS]


def _decoded(texts: pl.Series) -> pl.Series | None:
    """Return what texts say if all of them are text in base64 or hexadecimal digits; None if they are not."""
    for decode in (bytes.fromhex, partial(base64.b64decode, validate=True)):
        try:
            found = pl.Series([decode(text).decode() for text in texts], dtype=pl.String)
        except ValueError:
            continue
        if found.n_unique() > 1 and all(text.isprintable() for text in found):
            return found
    return None


def _numbers(texts: pl.Series) -> Array:
    return texts.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
