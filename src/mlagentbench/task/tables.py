"""Read submitted tables strictly: exact columns, exact ids, typed values.

    answers = pl.read_csv(context.private / "answers.csv")
    found = align(context.submission.read_bytes("submission.csv"), "submission.csv",
                  ids=answers["Id"], id_column="Id", columns={"SalePrice": Number(low=0)})
    error = np.abs(found["SalePrice"] - answers["SalePrice"].to_numpy()).mean()

Nothing is guessed: a row too many, an id twice, a blank or a NaN is an `InvalidSubmission` whose reason names the row and what to write.
Rows may be in any order, since they are matched by their ids; where a table has none, `align_rows` matches them by position and count.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.errors import InvalidSubmission
from mlagentbench.util.text import some

MAX_BYTES = 64 * 2**20
"""The largest size of a table. Reading an ill-formed one takes up to 13 times as much memory."""
MAX_FIELD = 64
"""Bytes allowed for a number or a given word, on average, in a table without texts, in addition to 1 MB."""
MAX_LINE = 2**16
SPARE_COLUMNS = 20
"""The most bytes of a table's first line, and the most surplus columns, with which a table is read at all."""
MANY = 10
"""A table is refused unread if it has more than this many times the expected rows, and a thousand more lines."""
_EXPLAINED = 2**22
"""The largest table, in bytes, that is parsed a second time to explain an error."""
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
"""How gzip, zstd and zlib data begins, which polars would unpack to whatever size."""
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What polars raises for text that is no table; its panics are no `Exception`."""


class Number(NamedTuple):
    """A column of finite numbers, as float64."""

    low: float = -math.inf
    high: float = math.inf


class OneOf(NamedTuple):
    """A column of given words, as text."""

    values: tuple[str, ...]


class Text(NamedTuple):
    """A column of anything, as text; a blank is the empty text."""


Kind = Number | OneOf | Text
_IDS = OneOf(())
_MAX = sys.float_info.max
Column = NDArray[Any]


def align(data: bytes, name: str, *, ids: Iterable[object], id_column: str, columns: Mapping[str, Kind]) -> dict[str, Column]:
    """Read a table with ids, and put its rows in the order of the answers.

    Args:
        data: the file's bytes, UTF-8 with or without a byte order mark.
        name: the file's name, for reasons.
        ids: the answers' ids, each once; compared as text.
        id_column: the column that holds them.
        columns: the other columns, by name. The table must have these and no others, in any order.

    Returns:
        An array for each column, as long as `ids`.

    Raises:
        InvalidSubmission: it is no such table.
    """
    expected = _texts(ids)
    frame = _read(data, name, {id_column: _IDS, **columns}, len(expected))
    found = frame[id_column]
    if not found.equals(expected):
        found = found.str.strip_chars()
        _check_ids(found, expected, name, id_column)
        places = pl.DataFrame({"id": found}).with_row_index("place")
        order = pl.DataFrame({"id": expected}).join(places, on="id", how="left", maintain_order="left")["place"]
        frame = frame[order]
    return {column: _convert(frame, column, kind, name, frame[id_column]) for column, kind in columns.items()}


def align_rows(data: bytes, name: str, *, count: int, columns: Mapping[str, Kind]) -> dict[str, Column]:
    """Read a table whose rows are known by their position: exactly `count`, in the order that the task gives.

    Args:
        data: the file's bytes, UTF-8 with or without a byte order mark.
        name: the file's name, for reasons.
        count: how many rows there must be.
        columns: the columns, by name.

    Returns:
        An array for each column, of length `count`.

    Raises:
        InvalidSubmission: it is no such table.
    """
    frame = _read(data, name, columns, count)
    if len(frame) != count:
        raise InvalidSubmission(f"{name} has {len(frame):,} rows; write exactly {count:,}, one for each in the given order")
    return {column: _convert(frame, column, kind, name, None) for column, kind in columns.items()}


def _texts(ids: Iterable[object]) -> pl.Series:
    if isinstance(ids, pl.Series) and (ids.dtype.is_integer() or ids.dtype == pl.String):
        return ids.cast(pl.String)
    return pl.Series([str(each) for each in ids], dtype=pl.String)


def _read(data: bytes, name: str, columns: Mapping[str, Kind], rows: int) -> pl.DataFrame:
    """Read a table: with numbers as such where all of them are valid, otherwise everything as text, which reasons can quote."""
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # lines that end as on old Macs
    _check_size(data, name, columns, rows)
    data = data.rstrip(b"\r\n") + b"\n"  # blank lines at the end are no rows
    frame = _sound(data, columns)
    if frame is not None:
        return frame
    try:
        frame = _parsed(data, ())
    except _UNREADABLE as error:
        raise InvalidSubmission(f"{name} is no table of values: {_explained(data, error)}") from None
    names = [column.strip() for column in frame.columns]
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        raise InvalidSubmission(f"{name} has the column {_some(twice)} more than once; its header must be: {','.join(columns)}")
    frame.columns = names
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        raise InvalidSubmission(f"{name} has no column {_some(lacking)}; its header must be: {','.join(columns)}")
    surplus = [column for column in frame.columns if column not in columns]
    if surplus:
        raise InvalidSubmission(
            f"{name} has a column too many, {_some(surplus)}; its header must be: {','.join(columns)} (pandas: to_csv with index=False)"
        )
    return frame


def _check_size(data: bytes, name: str, columns: Mapping[str, Kind], rows: int) -> None:
    """Refuse data that is no text, or that could take far more memory than the expected table.

    Raises:
        InvalidSubmission: it is such data.
    """
    wanted = f"write one line for each of {rows:,} rows, of the columns {','.join(columns)}"
    most = MAX_BYTES
    if not any(isinstance(kind, Text) for kind in columns.values()):
        most = min(most, 2**20 + rows * len(columns) * MAX_FIELD)
    if len(data) > most:
        raise InvalidSubmission(f"{name} has {len(data) / 2**20:,.1f} MB, more than {most / 2**20:,.1f} MB; {wanted}")
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise InvalidSubmission(f"{name} is empty")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        raise InvalidSubmission(f"{name} is no text in UTF-8; write it as UTF-8 (pandas does so by itself)")
    if data.startswith(_COMPRESSED):
        raise InvalidSubmission(f"{name} is compressed; write it as plain text in UTF-8")
    first = io.BytesIO(data).readline()
    lines = np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n"))  # five times as fast as `bytes.count`
    if len(first) > MAX_LINE or first.count(b",") > len(columns) + SPARE_COLUMNS:
        raise InvalidSubmission(f"{name} has a first line of {len(first):,} bytes; {wanted}")
    if lines > MANY * rows + 1000:
        raise InvalidSubmission(f"{name} has {lines:,} lines; {wanted}")


def _sound(data: bytes, columns: Mapping[str, Kind]) -> pl.DataFrame | None:
    """Read a table with its numbers parsed on the way, which takes half the time; return None where anything in it is invalid."""
    numbers = {column: kind for column, kind in columns.items() if isinstance(kind, Number)}
    try:
        frame = _parsed(data, tuple(numbers))
    except _UNREADABLE:
        return None
    if set(frame.columns) != set(columns):
        return None
    for column, kind in numbers.items():
        values = frame[column]
        if values.has_nulls():
            return None
        array = values.to_numpy()
        if len(array) and not (max(kind.low, -_MAX) <= array.min() and array.max() <= min(kind.high, _MAX)):  # NaN is neither
            return None
    return frame


def _explained(data: bytes, error: BaseException) -> str:
    """Explain a parser's error, and say what to do about it."""
    if len(data) > _EXPLAINED:
        return " ".join(str(error).split("\n")[0].split())[:200]
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        width = len(next(lines, ()))
        for row in lines:
            if len(row) > width:
                many = f"line {lines.line_num:,} has {len(row):,} fields, more than the {width:,} of the first"
                return f"{many}; put quotes around a text that holds ','"
    except UnicodeDecodeError as wrong:
        return f"byte {wrong.start:,} is no UTF-8; write it as UTF-8"
    except csv.Error:
        return f"the quotes from line {lines.line_num:,} on do not come in pairs; put quotes around a text, and double those inside it"
    if b'"' in data:
        return "a quotation mark stands inside a field; put quotes around the whole of a text, and double those inside it"
    return " ".join(str(error).split("\n")[0].split())[:200]


def _parsed(data: bytes, numbers: Sequence[str]) -> pl.DataFrame:
    """Parse a table, the columns `numbers` as float64 and all others as text, in which blanks are empty."""
    return pl.read_csv(
        io.BytesIO(data),
        infer_schema=False,
        schema_overrides=dict.fromkeys(numbers, pl.Float64),
        empty_string_is_null=False,
        truncate_ragged_lines=False,
    )


def _check_ids(found: pl.Series, expected: pl.Series, name: str, column: str) -> None:
    blank = (found == "").arg_true()
    if len(blank):
        raise InvalidSubmission(f"{name} has no {column} in row {blank[0] + 1}; if that is a blank line, remove it")
    twice = found.filter(found.is_duplicated()).unique(maintain_order=True)
    if len(twice):
        raise InvalidSubmission(f"{name} has the {column} {_some(twice)} more than once; write one row for each")
    lacking = expected.filter(~expected.is_in(found.implode()))
    surplus = found.filter(~found.is_in(expected.implode()))
    if len(lacking):
        instead = f", but has {_some(surplus)}, which is none of them" if len(surplus) else ""
        count = f"{len(lacking):,} of {len(expected):,} rows"
        raise InvalidSubmission(f"{name} lacks {count}: there is no {column} {_some(lacking)}{instead}; write one row for each")
    if len(surplus):
        raise InvalidSubmission(
            f"{name} has {len(surplus):,} row{'s' * (len(surplus) > 1)} too many: the {column} {_some(surplus)} is none of the test's"
        )


def _convert(frame: pl.DataFrame, column: str, kind: Kind, name: str, ids: pl.Series | None) -> Column:
    values = frame[column]
    if isinstance(kind, Text) or values.dtype == pl.Float64:
        return values.to_numpy()
    texts = values.str.strip_chars()

    def refuse(bad: pl.Series, why: str) -> None:
        if bad.any():
            place = int(bad.arg_true()[0])
            where = f"row {place + 1}" if ids is None else f"the row of {ids[place]}"
            more = f" (and {bad.sum() - 1:,} more)" if bad.sum() > 1 else ""
            raise InvalidSubmission(f"{name}: {column} is {texts[place][:40]!r} in {where}{more}; {why}")

    if isinstance(kind, OneOf):
        refuse(~texts.is_in(list(kind.values)), f"write {' or '.join(kind.values)}")
        return texts.to_numpy()
    numbers = texts.cast(pl.Float64, strict=False)
    refuse(numbers.is_null() | ~numbers.fill_null(0).is_finite(), "write a finite number")
    refuse((numbers < kind.low) | (numbers > kind.high), f"write a number from {kind.low:g} to {kind.high:g}")
    return np.ascontiguousarray(numbers.to_numpy())


def _some(values: Iterable[object]) -> str:
    """Name the first few of some values, and how many more there are."""
    return some([repr(str(value)[:60]) for value in values])
