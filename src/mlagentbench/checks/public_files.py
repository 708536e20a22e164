"""Read everything public that holds rows: tables and arrays of common formats, in archives too."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.checks import dependence
from mlagentbench.checks.dependence import FEW_ROWS

Array = NDArray[Any]

MAX_BYTES = 512 << 20
"""Bytes above which a file is not read as a table."""
MAX_COLUMNS = 256
"""The most columns of an array that are checked one by one, since the columns of a wider one are data."""
PROJECTED = 64
"""Columns to which the rows of a wider array are projected, so that they can be compared with other rows."""
CHECKED = 4096
"""Bytes at the beginning of a file by which it is told whether it is text."""
NESTED = 4
"""How deep tables are looked for in a JSON file."""
SEPARATORS = {".csv": ",", ".tsv": "\t"}
DATABASES = (".db", ".sqlite", ".sqlite3")
MAX_TEXT = 16 << 20
"""Bytes above which a file of no known format is not read as a list."""
CORNERS = 4
"""Columns at each end of a wide array, such as the first and last pixels of pictures, that are checked one by one."""
LINE, KEYS = "the line's quotation marks and ends", "the record's keys"
"""The names of columns that are added to tables in which these differ."""


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A public table, as text."""

    name: str
    frame: pl.DataFrame


class PublicArray(NamedTuple):
    """A public array as a float64 table, its first axis being the rows."""

    name: str
    values: Array
    projected: bool = False
    """Whether `values` is a random projection of a wider array to `PROJECTED` columns."""
    ends: bool = False
    """Whether `values` are the first and last columns of a wider array."""


def read_tables(public: Path) -> tuple[list[PublicTable], list[PublicArray]]:
    """Read all public tables and arrays with at least `FEW_ROWS` rows, including those in archives."""
    tables: list[PublicTable] = []
    grids: list[PublicArray] = []
    for path in sorted(public.rglob("*")):
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            for name, data in unpacked(path.relative_to(public).as_posix(), path.read_bytes()):
                found = [_upright(table) for table in _parse_any(name, data)]
                tables += [table for table in found if len(table.frame) >= FEW_ROWS]
                grids += _parse_arrays(name, data)
    return tables, grids


def unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a file's name and bytes, or for an archive those of its comment and of each member, named `archive/member`."""
    if name.endswith(".gz") and not name.endswith(".tar.gz"):
        try:
            yield name.removesuffix(".gz"), gzip.decompress(data)
        except (OSError, EOFError):
            yield name, data
    elif name.endswith((".zip", ".npz", ".pt", ".pth")) and zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.comment:
                yield f"{name}/its comment", archive.comment
            for member in archive.infolist():
                if not member.is_dir() and member.file_size <= MAX_BYTES:
                    yield f"{name}/{member.filename}", archive.read(member)
    else:
        yield name, data


def parse_table(data: bytes, separator: str) -> pl.DataFrame | None:
    """Return a table of text; None if the bytes are none."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    try:
        return pl.read_csv(io.BytesIO(data), separator=separator, infer_schema=False)
    except (pl.exceptions.PolarsError, ValueError):
        return None


def projected(rows: Array) -> Array:
    """Project rows of shape (n, columns) to `PROJECTED` columns, which keeps the ratios of distances: Johnson and Lindenstrauss' lemma."""
    width = rows.shape[1]
    directions = np.random.default_rng(width).standard_normal((width, PROJECTED), dtype=np.float32) / np.float32(PROJECTED**0.5)
    return (rows.astype(np.float32) @ directions).astype(np.float64)


def _parse_any(name: str, data: bytes) -> Iterator[PublicTable]:
    suffix = Path(name).suffix
    try:
        if suffix in SEPARATORS:
            frame = parse_table(data, SEPARATORS[suffix])
            if frame is not None:
                frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
                lines = _lines(data, len(frame))
                yield PublicTable(name, frame if lines is None else frame.with_columns(lines))
        elif suffix == ".parquet":
            frame = pl.read_parquet(io.BytesIO(data))
            plain = not any(column.dtype.is_nested() or column.dtype == pl.Binary for column in frame)
            yield PublicTable(name, frame.select(pl.all().cast(pl.String)) if plain else _records(frame.to_dicts()))
            for key, text in pl.read_parquet_metadata(io.BytesIO(data)).items():
                yield from _parse_any(f"{name}/{key}.json", text.encode())
        elif suffix in (".jsonl", ".ndjson"):
            yield from _tables_in(name, [json.loads(line) for line in data.splitlines() if line.strip()])
        elif suffix == ".json":
            yield from _tables_in(name, json.loads(data))
        elif suffix in (".arrow", ".feather", ".ipc"):
            yield PublicTable(name, _records(pl.read_ipc(io.BytesIO(data)).to_dicts()))
        elif suffix in DATABASES:
            yield from _database(name, data)
        elif suffix != ".npy" and len(data) <= MAX_TEXT:
            yield from _list(name, data)
    except (pl.exceptions.PolarsError, sqlite3.Error, ValueError, TypeError, RecursionError):
        return


def _upright(table: PublicTable) -> PublicTable:
    """Return a table of few rows and many columns with a row for each column."""
    frame = table.frame
    wide = len(frame) < FEW_ROWS <= frame.width and len(frame)
    return replace(table, frame=frame.transpose(include_header=True, header_name="the column")) if wide else table


def _lines(data: bytes, rows: int) -> pl.Series | None:
    """Return the quotation marks, line ends and blank lines of each row of a table; None if they are alike, or rows are not lines."""
    lines = re.findall(rb"[^\r\n]+[\r\n]*", data)[1:]
    if len(lines) != rows:
        return None
    marks = pl.Series(LINE, [re.sub(rb'[^"\r\n]', b"", line).decode() for line in lines[:-1]] + [""], dtype=pl.String)
    return marks if marks[:-1].n_unique() > 1 else None


def _list(name: str, data: bytes) -> Iterator[PublicTable]:
    """Yield the tables that a text is if its lines, or most of them, have the same number of words: a column for each place in the line.

    Words end at white space, commas and the like in the first table, and at any mark but `.+-_` in the second, as in YAML, XML and code.
    """
    if b"\0" in data[:CHECKED]:
        return
    lines = [line.strip() for line in data.decode().splitlines() if line.strip()]
    rows = [re.split(r"[\s,;|]+", line) for line in lines]
    if len({len(row) for row in rows}) == 1:
        yield _of_words(name, rows)
    marked = [re.findall(r"[\w.+-]+", line) for line in lines]
    width, count = Counter(map(len, marked)).most_common(1)[0] if marked else (0, 0)
    if width and 2 * count > len(lines) and marked != rows:
        yield _of_words(name, [row for row in marked if len(row) == width])


def _of_words(name: str, rows: list[list[str]]) -> PublicTable:
    width = min(len(rows[0]), MAX_COLUMNS)
    return PublicTable(
        name, pl.DataFrame([row[:width] for row in rows], schema=[f"word {place + 1}" for place in range(width)], orient="row")
    )


def _database(name: str, data: bytes) -> Iterator[PublicTable]:
    """Yield the tables of an SQLite database."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            found = connection.execute('select * from "{}"'.format(table.replace('"', '""')))
            columns = [column[0] for column in found.description]
            yield PublicTable(f"{name}/{table}", _records([dict(zip(columns, row, strict=True)) for row in found]))
    finally:
        connection.close()


def _tables_in(name: str, found: object, depth: int = 0) -> Iterator[PublicTable]:
    """Yield the tables of a JSON value: lists of records or values, columns by name, and records or values by key, at any of its levels."""
    if isinstance(found, list) and found:
        if all(isinstance(row, dict) for row in found):
            yield PublicTable(name, _records(found))
        elif not any(isinstance(value, list | dict) for value in found):
            yield PublicTable(name, pl.DataFrame({"value": [_flat(value) for value in found]}))
    elif isinstance(found, dict) and found:
        values = list(found.values())
        if all(isinstance(row, dict) for row in values):
            yield PublicTable(name, _records([{"key": key, **row} for key, row in found.items()]))
        elif all(isinstance(column, list) for column in values) and len({len(column) for column in values}) == 1:
            yield PublicTable(name, pl.DataFrame({key: [_flat(value) for value in column] for key, column in found.items()}))
        elif not any(isinstance(value, list | dict) for value in values):
            yield PublicTable(name, _records([{"key": key, "value": value} for key, value in found.items()]))
        elif all(isinstance(column, list) and not any(isinstance(value, list | dict) for value in column) for column in values):
            yield PublicTable(name, _records([{"value": value, "key": key} for key, column in found.items() for value in column]))
        if depth < NESTED:
            for key, value in found.items():
                if isinstance(value, list | dict) and len(value) and len(found) < FEW_ROWS:
                    yield from _tables_in(f"{name}/{key}", value, depth + 1)


def _records(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return a table of text from records; the fields of a record within a record are named `outer.inner`."""
    records = [{key: _flat(value) for key, value in fields_of(row)} for row in rows]
    keys = pl.Series(KEYS, [" ".join(record) for record in records], dtype=pl.String)
    frame = pl.DataFrame(records, infer_schema_length=None)
    return frame.with_columns(keys) if keys.n_unique() > 1 else frame


def fields_of(row: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields of a record and of the records within it, these named `outer.inner`."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from fields_of(value, f"{outer}{key}.")
        else:
            yield f"{outer}{key}", value


def _flat(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return None if value is None else value if isinstance(value, str) else json.dumps(value, default=str)


def _parse_arrays(name: str, data: bytes) -> Iterator[PublicArray]:
    if not name.endswith(".npy"):
        return
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except ValueError:
        return
    if array.ndim == 0 or len(array) < FEW_ROWS:
        return
    flat = array.reshape(len(array), -1)
    if flat.shape[1] > MAX_COLUMNS:
        if flat.dtype.kind in "fiub":
            yield PublicArray(name, projected(np.nan_to_num(flat)), projected=True)
            yield PublicArray(name, np.hstack([flat[:, :CORNERS], flat[:, -CORNERS:]]).astype(np.float64), ends=True)
    elif flat.dtype.kind in "fiub":
        yield PublicArray(name, flat.astype(np.float64))
    elif flat.dtype.kind in "US":
        yield PublicArray(name, np.column_stack([dependence.codes(flat[:, number]) for number in range(flat.shape[1])]).astype(np.float64))
