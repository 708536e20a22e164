"""Read a task's tables for the leak lint: the oracle answers, and the public tables and arrays with a row for each answer."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.checks.dependence import FEW_ROWS, Target, as_target, codes

Array = NDArray[Any]

MAX_BYTES = 512 << 20
"""Bytes above which a file is not read as a table."""
MAX_COLUMNS = 256
"""The most columns of an array that is checked, since the columns of a wider one are data; and the most answer columns."""
SEPARATORS = {".csv": ",", ".tsv": "\t"}
ID, PLACE = "the row's id", "the row's place"
"""The names of columns that this module adds; no task uses them."""
ID_NAME = re.compile(r"(^|_)(id|idx|index|node|row|key)$|Id$|ID$")


class Clue(NamedTuple):
    """A value for each answer's row, from a table, an order or metadata."""

    name: str
    place: str
    """The file or other place that the column comes from, for messages."""
    values: Array
    """Float64 with NaN for gaps, or text with the empty string for them."""
    raw: Array | None = None
    """The values of a table's column as text; None for other columns."""


class Answers(NamedTuple):
    """The table of the right answers."""

    frame: pl.DataFrame
    """The whole table, as text."""
    id_column: str | None
    """The column that names the rows; None if they are known by their order."""
    targets: tuple[Target, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.frame)

    @property
    def ids(self) -> pl.Series:
        """The rows' ids; their numbers from 0 if there is no id column."""
        if self.id_column is None:
            return pl.Series(ID, [str(place) for place in range(self.rows)], dtype=pl.String)
        return self.frame[self.id_column].str.strip_chars().alias(ID)

    @property
    def values(self) -> pl.DataFrame:
        """The answer columns: all but the id column."""
        return self.frame.drop(self.id_column) if self.id_column else self.frame


class PublicTable(NamedTuple):
    """A public table, as text."""

    name: str
    frame: pl.DataFrame


class PublicArray(NamedTuple):
    """A public array as a float64 table, its first axis being the rows."""

    name: str
    values: Array


def read_answers(name: str, data: bytes, tables: Iterable[PublicTable], names: Iterable[str]) -> Answers | None:
    """Read an oracle submission.

    Args:
        name: the file's name; its suffix says whether it is a table.
        data: the file's bytes.
        tables: the public tables, in which ids may occur.
        names: the public files' names, which may be ids, too.

    Returns:
        The answers; None if the file is no table.
    """
    separator = SEPARATORS.get(Path(name).suffix)
    frame = _parse(data, separator) if separator else None
    if frame is None or not len(frame) or not frame.width:
        return None
    id_column = _id_column(frame, tables, names)
    values = frame.drop(id_column) if id_column else frame
    return Answers(frame, id_column, tuple(_targets(values)))


def read_tables(public: Path) -> tuple[list[PublicTable], list[PublicArray]]:
    """Read all public tables and arrays with at least `FEW_ROWS` rows, including those in archives."""
    tables: list[PublicTable] = []
    grids: list[PublicArray] = []
    for path in sorted(public.rglob("*")):
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            for name, data in unpacked(path.relative_to(public).as_posix(), path.read_bytes()):
                frame = _parse_any(name, data)
                if frame is not None and len(frame) >= FEW_ROWS:
                    tables.append(PublicTable(name, frame))
                grids += _parse_arrays(name, data)
    return tables, grids


def unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a file's name and bytes, or for an archive those of each member, named `archive/member`."""
    if name.endswith(".gz") and not name.endswith(".tar.gz"):
        try:
            yield name.removesuffix(".gz"), gzip.decompress(data)
        except (OSError, EOFError):
            yield name, data
    elif name.endswith((".zip", ".npz", ".pt", ".pth")) and zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                if not member.is_dir() and member.file_size <= MAX_BYTES:
                    yield f"{name}/{member.filename}", archive.read(member)
    else:
        yield name, data


def columns_of(table: PublicTable | PublicArray, answers: Answers) -> list[Clue]:
    """Return a table's columns, joined to the answers' rows; none if the rows do not correspond."""
    return _grid_columns(table, answers) if isinstance(table, PublicArray) else _table_columns(table, answers)


def place_of(table: PublicTable, answers: Answers) -> Array | None:
    """Return the row number of each answer in the table, NaN if it has none; None if too few of the ids are in the table."""
    key = _key(table.frame, answers)
    if key is None:
        return None
    order = answers.ids.to_frame().join(_unique(table.frame, key).select(ID, PLACE), on=ID, how="left", maintain_order="left")
    return order[PLACE].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def features(texts: pl.Series, name: str, place: str) -> Iterator[Clue]:
    """Yield columns made from a column of text: its last number, its letters, its first and last character, its length and more."""
    texts = texts.fill_null("")
    last_number = texts.str.extract(r"(\d+(?:\.\d+)?)\D*$").cast(pl.Float64, strict=False).fill_null(float("nan"))
    yield Clue(f"the last number in {name}", place, last_number.to_numpy())
    # Such parts of a path are its folder, too.
    yield Clue(f"{name} without its digits", place, texts.str.replace_all(r"\d", "").to_numpy())
    yield Clue(f"the part of {name} before its last / or _", place, texts.str.replace(r"[/_][^/_]*$", "").to_numpy())
    yield Clue(f"the first character of {name}", place, texts.str.slice(0, 1).to_numpy())
    yield Clue(f"the last character of {name}", place, texts.str.slice(-1).to_numpy())
    yield Clue(f"the length of {name}", place, texts.str.len_chars().cast(pl.Float64).to_numpy())


def numbers_or_text(column: pl.Series) -> Array:
    """Return a column of text as numbers if all values but gaps are numbers, else as text."""
    texts = column.fill_null("").str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False)
    gaps = texts.str.to_uppercase().is_in(["", "NA", "NAN"])
    if numbers.null_count() <= int(gaps.sum()):
        return numbers.fill_null(float("nan")).to_numpy().astype(np.float64)
    return texts.to_numpy()


def _table_columns(table: PublicTable, answers: Answers) -> list[Clue]:
    key = _key(table.frame, answers)
    if key is not None:
        frame = answers.ids.to_frame().join(_unique(table.frame, key), on=ID, how="left", maintain_order="left").drop(ID, PLACE)
    elif len(table.frame) == answers.rows:
        frame = table.frame
    else:
        return []
    found = []
    for name in frame.columns:
        if name == key:
            continue
        values = numbers_or_text(frame[name])
        shown = f"the column {name!r}"
        found.append(Clue(shown, table.name, values, frame[name].fill_null("").str.strip_chars().to_numpy()))
        if values.dtype.kind in "OU":
            found += features(frame[name], shown, table.name)
    return found


def _grid_columns(grid: PublicArray, answers: Answers) -> list[Clue]:
    rows = len(grid.values)
    if rows == answers.rows:
        values = grid.values
    else:
        places = _whole_numbers(answers.ids)
        if places is None or places.min() < 0 or places.max() >= rows:
            return []
        values = grid.values[places]
    return [
        Clue(f"the column {number}" if values.shape[1] > 1 else "its only column", grid.name, values[:, number])
        for number in range(values.shape[1])
    ]


def _key(frame: pl.DataFrame, answers: Answers) -> str | None:
    """Return the column with the most of the answers' ids; None if no column has at least a tenth of them, and `FEW_ROWS`."""
    if answers.id_column is None:
        return None
    ids = answers.ids
    best, most = None, max(FEW_ROWS, len(ids) // 10) - 1
    for name in (answers.id_column, *frame.columns):
        if name in frame.columns:
            hits = int(ids.is_in(frame[name].str.strip_chars().implode()).sum())
            if hits > most:
                best, most = name, hits
    return best


def _unique(frame: pl.DataFrame, key: str) -> pl.DataFrame:
    """Return the first row of each id in a table, with columns for the id and the row's number."""
    named = frame.with_columns(frame[key].str.strip_chars().alias(ID)).drop(key if key != ID else [])
    return named.with_row_index(PLACE).unique(ID, keep="first", maintain_order=True)


def _id_column(frame: pl.DataFrame, tables: Iterable[PublicTable], names: Iterable[str]) -> str | None:
    """Return the column that names rows: its values are distinct, and an agent can know them; None if there is none."""
    known = {stem for name in names for stem in (name, Path(name).name, Path(name).stem)}
    tables = list(tables)
    for column in frame.columns:
        values = frame[column].str.strip_chars()
        if values.n_unique() < len(values) or frame.width == 1:
            continue
        numbers = _whole_numbers(values)
        counted = numbers is not None and int(numbers.max() - numbers.min()) == len(numbers) - 1
        met = values.is_in(list(known)).mean() or any(
            values.is_in(table.frame[other].str.strip_chars().implode()).all() for table in tables for other in table.frame.columns
        )
        if counted or met or ID_NAME.search(column):
            return column
    return None


def _whole_numbers(texts: pl.Series) -> Array | None:
    """Return a column of text as int64; None if a value is something else."""
    numbers = texts.cast(pl.Int64, strict=False)
    return None if numbers.null_count() else numbers.to_numpy()


def _targets(values: pl.DataFrame) -> Iterator[Target]:
    numbers = values.select(pl.all().cast(pl.Float64, strict=False))
    complete = sum(numbers.null_count().row(0)) == 0
    if values.width > 2 and complete:
        grid = numbers.to_numpy()
        if (grid >= 0).all() and np.allclose(grid.sum(axis=1), 1, atol=0.01):
            yield Target("the likeliest class", grid.argmax(axis=1).astype(np.float64), classes=True)
            return
    for name in values.columns[:MAX_COLUMNS]:
        target = as_target(name, values[name].str.strip_chars())
        kinds = len(np.unique(target.values))
        if target.classes and kinds > max(2, len(target.values) // 4):
            # Long answers, such as masks, rarely repeat, so the target is whether an answer is the commonest one (an empty mask).
            commonest = values[name].fill_null("").mode().sort()[0]
            target = Target(
                f"{name} being {commonest[:20]!r}", (values[name].fill_null("") == commonest).to_numpy().astype(np.float64), True
            )
            kinds = len(np.unique(target.values))
        if kinds > 1:
            yield target


def _parse_any(name: str, data: bytes) -> pl.DataFrame | None:
    suffix = Path(name).suffix
    try:
        if suffix in SEPARATORS:
            return _parse(data, SEPARATORS[suffix])
        if suffix == ".parquet":
            return _as_text(pl.read_parquet(io.BytesIO(data)))
        if suffix in (".jsonl", ".ndjson"):
            return _records([json.loads(line) for line in data.splitlines() if line.strip()])
        if suffix == ".json":
            found = json.loads(data)
            if isinstance(found, dict) and found and not isinstance(next(iter(found.values())), list | dict):
                found = [{"key": key, "value": value} for key, value in found.items()]
            return _records(found)
    except (pl.exceptions.PolarsError, ValueError, TypeError):
        return None
    return None


def _parse(data: bytes, separator: str) -> pl.DataFrame | None:
    try:
        return pl.read_csv(io.BytesIO(data), separator=separator, infer_schema=False)
    except (pl.exceptions.PolarsError, ValueError):
        return None


def _records(found: object) -> pl.DataFrame | None:
    """Return a table from a JSON list of objects or of values, or from an object of lists of one length; None for all else."""
    if isinstance(found, list) and found and all(isinstance(row, dict) for row in found):
        return _as_text(pl.DataFrame([{key: _flat(value) for key, value in row.items()} for row in found], infer_schema_length=None))
    if isinstance(found, list) and found and not any(isinstance(value, list | dict) for value in found):
        return pl.DataFrame({"value": [_flat(value) for value in found]})
    if isinstance(found, dict) and found and all(isinstance(column, list) for column in found.values()):
        if len({len(column) for column in found.values()}) > 1:
            return None
        return pl.DataFrame({key: [_flat(value) for value in column] for key, column in found.items()})
    return None


def _flat(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else json.dumps(value)


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    flat = [column.name for column in frame if not column.dtype.is_nested() and column.dtype != pl.Binary]
    return frame.select(pl.col(flat).cast(pl.String))


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
        return
    if flat.dtype.kind in "fiub":
        yield PublicArray(name, flat.astype(np.float64))
    elif flat.dtype.kind in "US":
        yield PublicArray(name, np.column_stack([codes(flat[:, number]) for number in range(flat.shape[1])]).astype(np.float64))
