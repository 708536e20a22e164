"""Tables that agents leave, read strictly: exact columns, exact ids, typed values.

    answers = pl.read_csv(context.private / "answers.csv")
    found = align(context.submission.read_bytes("submission.csv"), "submission.csv",
                  ids=answers["Id"], id_column="Id", columns={"SalePrice": Number(low=0)})
    error = np.abs(found["SalePrice"] - answers["SalePrice"].to_numpy()).mean()

Nothing is guessed: a row too many, an id twice, a blank or a NaN is an `InvalidSubmission` whose reason names the row and what to write.
Rows may stand in any order, since they are found by their ids; where a table has none, `align_rows` takes them by position and count.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.errors import InvalidSubmission

_NAMED = 3
"""How many of several things a reason names."""


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
TEXT = Text()
_MAX = sys.float_info.max
Column = NDArray[Any]


def align(
    data: bytes, name: str, *, ids: Iterable[object], id_column: str, columns: Mapping[str, Kind], separator: str = ","
) -> dict[str, Column]:
    """Read a table with ids, and put its rows in the order of the answers.

    Args:
        data: the file's bytes, UTF-8 with or without a byte order mark.
        name: the file's name, for reasons.
        ids: the answers' ids, each once; compared as text.
        id_column: the column that holds them.
        columns: the other columns, by name. The table must have these and no others, in any order.
        separator: between two fields.

    Returns:
        An array a column, as long as `ids`.

    Raises:
        InvalidSubmission: it is no such table.
    """
    frame = _read(data, name, {id_column: TEXT, **columns}, separator)
    found, expected = frame[id_column], _texts(ids)
    if not found.equals(expected):
        found = found.str.strip_chars()
        _check_ids(found, expected, name, id_column)
        places = pl.DataFrame({"id": found}).with_row_index("place")
        order = pl.DataFrame({"id": expected}).join(places, on="id", how="left", maintain_order="left")["place"]
        frame = frame[order]
    return {column: _convert(frame, column, kind, name, frame[id_column]) for column, kind in columns.items()}


def align_rows(
    data: bytes, name: str, *, count: int, columns: Mapping[str, Kind], header: bool = True, separator: str = ","
) -> dict[str, Column]:
    """Read a table whose rows are known by their position: exactly `count`, in the order that the task gives.

    Args:
        data: the file's bytes, UTF-8 with or without a byte order mark.
        name: the file's name, for reasons.
        count: how many rows there must be.
        columns: the columns, by name; with no header, in their order.
        header: whether the first line names the columns.
        separator: between two fields.

    Returns:
        An array a column, each of length `count`.

    Raises:
        InvalidSubmission: it is no such table.
    """
    frame = _read(data, name, columns, separator, header=header)
    if len(frame) != count:
        raise InvalidSubmission(f"{name} has {len(frame):,} rows; write exactly {count:,}, one for each in the given order")
    return {column: _convert(frame, column, kind, name, None) for column, kind in columns.items()}


def _texts(ids: Iterable[object]) -> pl.Series:
    if isinstance(ids, pl.Series) and (ids.dtype.is_integer() or ids.dtype == pl.String):
        return ids.cast(pl.String)
    return pl.Series([str(each) for each in ids], dtype=pl.String)


def _read(data: bytes, name: str, columns: Mapping[str, Kind], separator: str, *, header: bool = True) -> pl.DataFrame:
    """The table: numbers as such where all of them are sound; else everything as the text that it is, by which reasons can quote it."""
    if not data.strip():
        raise InvalidSubmission(f"{name} is empty")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4096]:
        raise InvalidSubmission(f"{name} is no text in UTF-8; write it as UTF-8 (pandas does so by itself)")
    frame = _sound(data, columns, separator) if header else None
    if frame is not None:
        return frame
    try:
        frame = _parsed(data, separator, (), header=header)
    except pl.exceptions.PolarsError as error:
        reason = " ".join(str(error).split("\n")[0].split())
        raise InvalidSubmission(f"{name} is no table of values: {reason}") from None
    if not header:
        if frame.width != len(columns):
            raise InvalidSubmission(f"{name} has {frame.width} columns; write {len(columns)}: {', '.join(columns)}, and no header")
        return frame.rename(dict(zip(frame.columns, columns, strict=True)))
    frame = frame.rename({column: column.strip() for column in frame.columns})
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        raise InvalidSubmission(f"{name} has no column {_some(lacking)}; its header must be: {','.join(columns)}")
    surplus = [column for column in frame.columns if column not in columns]
    if surplus:
        raise InvalidSubmission(
            f"{name} has a column too many, {_some(surplus)}; its header must be: {','.join(columns)} (pandas: to_csv with index=False)"
        )
    return frame


def _sound(data: bytes, columns: Mapping[str, Kind], separator: str) -> pl.DataFrame | None:
    """The table with its numbers read on the way, which takes half the time; None where anything of it is not as it should be."""
    numbers = {column: kind for column, kind in columns.items() if isinstance(kind, Number)}
    try:
        frame = _parsed(data, separator, tuple(numbers))
    except pl.exceptions.PolarsError:
        return None
    if set(frame.columns) != set(columns) or any(frame[column].has_nulls() for column in numbers):
        return None
    for column, kind in numbers.items():
        values = frame[column].to_numpy()
        if len(values) and not (max(kind.low, -_MAX) <= values.min() and values.max() <= min(kind.high, _MAX)):  # NaN is neither
            return None
    return frame


def _parsed(data: bytes, separator: str, numbers: Sequence[str], *, header: bool = True) -> pl.DataFrame:
    """The table as text but for some columns, blanks as empty text."""
    return pl.read_csv(
        io.BytesIO(data),
        separator=separator,
        has_header=header,
        infer_schema=False,
        schema_overrides=dict.fromkeys(numbers, pl.Float64),
        empty_string_is_null=False,
        truncate_ragged_lines=False,
    )


def _check_ids(found: pl.Series, expected: pl.Series, name: str, column: str) -> None:
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
        raise InvalidSubmission(f"{name} has {len(surplus):,} rows too many: the {column} {_some(surplus)} is none of the test's")


def _texts(ids: Iterable[object]) -> pl.Series:
    if isinstance(ids, pl.Series) and (ids.dtype.is_integer() or ids.dtype == pl.String):
        return ids.cast(pl.String)
    return pl.Series([str(each) for each in ids], dtype=pl.String)


def _columns(frame: pl.DataFrame, columns: Mapping[str, Kind], name: str, ids: pl.Series | None) -> dict[str, Column]:
    """The columns as arrays. Numbers are read and looked at all at once; what is wrong with one is then found in its column."""
    names = [column for column, kind in columns.items() if isinstance(kind, Number)]
    values = frame.select(_numbers(pl.col(names))).to_numpy() if names else np.empty((len(frame), 0))  # what is no number is NaN
    found: dict[str, Column] = {}
    for column, kind in columns.items():
        if isinstance(kind, Number):
            numbers = np.ascontiguousarray(values[:, names.index(column)])
            if np.isfinite(numbers).all() and ((numbers >= kind.low) & (numbers <= kind.high)).all():
                found[column] = numbers
                continue
        found[column] = _convert(frame, column, kind, name, ids)
    return found


def _numbers(texts: pl.Expr) -> pl.Expr:
    return texts.str.strip_chars().cast(pl.Float64, strict=False)


def _convert(frame: pl.DataFrame, column: str, kind: Kind, name: str, ids: pl.Series | None) -> Column:
    if isinstance(kind, Text) or frame.schema[column] == pl.Float64:
        return frame[column].to_numpy()
    texts = frame[column].str.strip_chars()

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
    """The first few of some values, and how many more there are."""
    texts = [repr(str(value)[:60]) for value in values]
    more = f" and {len(texts) - _NAMED:,} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + more
