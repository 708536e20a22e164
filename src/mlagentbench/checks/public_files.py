"""Read everything public that holds rows: tables and arrays of common formats, in archives too."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.checks.dependence import FEW_ROWS, codes

Array = NDArray[Any]

MAX_BYTES = 512 << 20
"""Bytes above which a file is not read as a table."""
MAX_COLUMNS = 256
"""The most columns of an array that are checked one by one, since the columns of a wider one are data."""
PROJECTED = 64
"""Columns to which the rows of a wider array are projected, so that they can be compared with other rows."""
NESTED = 4
"""How deep tables are looked for in a JSON file."""
SEPARATORS = {".csv": ",", ".tsv": "\t"}


class PublicTable(NamedTuple):
    """A public table, as text."""

    name: str
    frame: pl.DataFrame


class PublicArray(NamedTuple):
    """A public array as a float64 table, its first axis being the rows."""

    name: str
    values: Array
    projected: bool = False
    """Whether `values` is a random projection of a wider array to `PROJECTED` columns."""


def read_tables(public: Path) -> tuple[list[PublicTable], list[PublicArray]]:
    """Read all public tables and arrays with at least `FEW_ROWS` rows, including those in archives."""
    tables: list[PublicTable] = []
    grids: list[PublicArray] = []
    for path in sorted(public.rglob("*")):
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            for name, data in unpacked(path.relative_to(public).as_posix(), path.read_bytes()):
                tables += [table for table in _parse_any(name, data) if len(table.frame) >= FEW_ROWS]
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
    try:
        return pl.read_csv(io.BytesIO(data), separator=separator, infer_schema=False)
    except (pl.exceptions.PolarsError, ValueError):
        return None


def projected(rows: Array) -> Array:
    """Project rows of numbers to `PROJECTED` columns, which keeps the ratios of distances: Johnson and Lindenstrauss' lemma.

    Args:
        rows: the rows, of shape (n, columns).
    """
    width = rows.shape[1]
    directions = np.random.default_rng(width).standard_normal((width, PROJECTED), dtype=np.float32) / np.float32(PROJECTED**0.5)
    return (rows.astype(np.float32) @ directions).astype(np.float64)


def _parse_any(name: str, data: bytes) -> Iterator[PublicTable]:
    suffix = Path(name).suffix
    try:
        if suffix in SEPARATORS:
            frame = parse_table(data, SEPARATORS[suffix])
            if frame is not None:
                yield PublicTable(name, frame)
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
    except (pl.exceptions.PolarsError, ValueError, TypeError, RecursionError):
        return


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
        if depth < NESTED:
            for key, value in found.items():
                if isinstance(value, list | dict) and len(value) and len(found) < FEW_ROWS:
                    yield from _tables_in(f"{name}/{key}", value, depth + 1)


def _records(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return a table of text from records; the fields of a record within a record are named `outer.inner`."""
    return pl.DataFrame([{key: _flat(value) for key, value in _fields(row)} for row in rows], infer_schema_length=None)


def _fields(row: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, object]]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{outer}{key}.")
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
    elif flat.dtype.kind in "fiub":
        yield PublicArray(name, flat.astype(np.float64))
    elif flat.dtype.kind in "US":
        yield PublicArray(name, np.column_stack([codes(flat[:, number]) for number in range(flat.shape[1])]).astype(np.float64))
