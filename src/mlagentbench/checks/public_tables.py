"""Join a task's tables for the leak lint: the oracle answers, and the public tables and arrays with a row for each answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.checks.dependence import FEW_ROWS, Target, as_target
from mlagentbench.checks.parts import Clue, parts_of_number, parts_of_text
from mlagentbench.checks.public_files import MAX_COLUMNS, SEPARATORS, PublicArray, PublicTable, parse_table

Array = NDArray[Any]

MOST_NEIGHBOURS = 200
"""Rows that are looked at for what other rows hold of them, which shows in a few of them."""
ID, PLACE = "the row's id", "the row's place"
"""The names of columns that this module adds; no task uses them."""
ID_NAME = re.compile(r"(^|_)(id|idx|index|node|row|key)$|Id$|ID$")


@dataclass(frozen=True, eq=False)
class Answers:
    """The table of the right answers."""

    frame: pl.DataFrame
    """The whole table, as text."""
    id_column: str | None
    """The column that names the rows; None if they are known by their order."""
    targets: tuple[Target, ...]
    keys: WeakKeyDictionary[PublicTable, str | None] = field(default_factory=WeakKeyDictionary)
    """The columns of tables that hold the rows' ids, as far as they have been looked for; None where a table has no such column."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.frame)

    @cached_property
    def ids(self) -> pl.Series:
        """The rows' ids; their numbers from 0 if there is no id column."""
        if self.id_column is None:
            return pl.Series(ID, [str(place) for place in range(self.rows)], dtype=pl.String)
        return self.frame[self.id_column].str.strip_chars().alias(ID)

    @cached_property
    def classes(self) -> int:
        """The most classes of a target; 0 if none has classes."""
        return max((len(np.unique(target.values)) for target in self.targets if target.classes), default=0)

    @property
    def values(self) -> pl.DataFrame:
        """The answer columns: all but the id column."""
        return self.frame.drop(self.id_column) if self.id_column else self.frame


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
    frame = parse_table(data, separator) if separator else None
    if frame is None or not len(frame) or not frame.width:
        return None
    id_column = _id_column(frame, tables, names)
    values = frame.drop(id_column) if id_column else frame
    return Answers(frame, id_column, tuple(_targets(values)))


def columns_of(table: PublicTable | PublicArray, answers: Answers) -> list[Clue]:
    """Return a table's columns, joined to the answers' rows; none if the rows do not correspond."""
    return _grid_columns(table, answers) if isinstance(table, PublicArray) else _table_columns(table, answers)


def place_of(table: PublicTable, answers: Answers) -> Array | None:
    """Return the row number of each answer in the table, NaN if it has none; None if too few of the ids are in the table."""
    key = _key(table, answers)
    if key is None:
        return None
    order = answers.ids.to_frame().join(_unique(table.frame, key, answers.ids).select(ID, PLACE), on=ID, how="left", maintain_order="left")
    return order[PLACE].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def numbers_or_text(column: pl.Series) -> Array:
    """Return a column of text as numbers if all values but gaps are numbers, else as text."""
    texts = column.fill_null("").str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False)
    gaps = texts.str.to_uppercase().is_in(["", "NA", "NAN"])
    if numbers.null_count() <= int(gaps.sum()):
        return numbers.fill_null(float("nan")).to_numpy().astype(np.float64)
    return texts.to_numpy()


def joined(table: PublicTable, answers: Answers) -> pl.DataFrame | None:
    """Return a table's columns but that of the ids, with a row for each answer; None if the rows do not correspond."""
    key = _key(table, answers)
    if key is not None:
        rows = answers.ids.to_frame().join(_unique(table.frame, key, answers.ids), on=ID, how="left", maintain_order="left")
        return rows.drop(ID, PLACE)
    return table.frame if len(table.frame) == answers.rows else None


def places_in(grid: PublicArray, answers: Answers) -> Array | None:
    """Return the row number of each answer in an array; None if the rows do not correspond."""
    rows = len(grid.values)
    if rows == answers.rows:
        return np.arange(rows)
    places = _whole_numbers(answers.ids)
    return None if places is None or places.min() < 0 or places.max() >= rows else places


def _table_columns(table: PublicTable, answers: Answers) -> list[Clue]:
    frame = joined(table, answers)
    found = _counts(table, answers)
    for column in frame.get_columns() if frame is not None else ():
        values = numbers_or_text(column)
        shown = f"the column {column.name!r}"
        texts = column.fill_null("").str.strip_chars()
        found.append(Clue(shown, table.name, values, texts.to_numpy()))
        written = column.fill_null("")
        if values.dtype.kind in "OU":
            parts = parts_of_text(written, shown, table.name)
        else:
            parts = parts_of_number(values, written, shown, table.name, answers.classes)
        found += [part._replace(whole=shown) for part in parts]
    if frame is not None and frame.width:
        gaps = frame.select(pl.sum_horizontal(pl.all().is_null() | (pl.all().str.strip_chars() == ""))).to_series()
        found.append(Clue("the number of gaps in the row", table.name, gaps.cast(pl.Float64).to_numpy()))
    return found


def neighbours_of(table: PublicTable, answers: Answers) -> Iterator[Clue]:
    """Yield each column of numbers with its values of the next row, of the row before, and with their changes from the row before.

    The rows are in the order of the table, of the answers and of their ids: a column may hold the answer of another row, or their sum.
    """
    place, frame = place_of(table, answers), joined(table, answers)
    columns = [(column.name, numbers_or_text(column)) for column in (frame.get_columns() if frame is not None else ())]
    numbers = [(name, values) for name, values in columns if values.dtype.kind == "f"]
    by_id = np.argsort(np.argsort(numbers_or_text(answers.ids), kind="stable"))
    left_out = np.random.default_rng(0).permutation(answers.rows)[MOST_NEIGHBOURS:]
    known: set[bytes] = set()
    for by, rank in (("its rows", place), ("the answers", np.arange(answers.rows)), ("the ids", by_id)):
        if not numbers or rank is None or np.isnan(rank).any():
            continue
        order = np.argsort(rank, kind="stable")
        if order.tobytes() in known:
            continue
        known.add(order.tobytes())
        for name, values in numbers:
            after, before = np.full(len(values), np.nan), np.full(len(values), np.nan)
            after[order[:-1]], before[order[1:]] = values[order[1:]], values[order[:-1]]
            for which, found in (
                ("in the next row", after),
                ("in the row before", before),
                ("less that in the row before", values - before),
            ):
                found[left_out] = np.nan
                yield Clue(f"the column {name!r} {which}, in the order of {by},", table.name, found)


def _grid_columns(grid: PublicArray, answers: Answers) -> list[Clue]:
    places = places_in(grid, answers)
    if places is None or grid.projected:
        return []
    found = []
    width = grid.values.shape[1]
    for number in range(width):
        from_end = grid.ends and number >= width / 2
        which = f"{width - number} from the end" if from_end else str(number)
        shown = f"the column {which}" if width > 1 else "its only column"
        values = grid.values[places, number]
        parts = parts_of_number(values, None, shown, grid.name, answers.classes)
        found += [Clue(shown, grid.name, values), *(part._replace(whole=shown) for part in parts)]
    return found


def _key(table: PublicTable, answers: Answers) -> str | None:
    """Return the column with the most of the answers' ids; None if no column has at least a tenth of them, and `FEW_ROWS`."""
    if answers.id_column is None:
        return None
    if table not in answers.keys:
        answers.keys[table] = _find_key(table.frame, answers.id_column, answers.ids)
    return answers.keys[table]


def _find_key(frame: pl.DataFrame, id_column: str, ids: pl.Series) -> str | None:
    least = max(FEW_ROWS, len(ids) // 10)
    for named in (_named, _as_ids):
        best, most = None, least - 1
        for name in (id_column, *frame.columns):
            if name in frame.columns:
                hits = _hits(named(frame[name], ids), ids)
                if hits > most:
                    best, most = name, hits
        if best is not None:
            return best
    return None


def _as_ids(column: pl.Series, ids: pl.Series) -> pl.Series:
    """Return a column's values as ids, as `_named` does, or if these are few and differ, without regard to capitals, marks and zeros."""
    values = _named(column, ids)
    if _hits(values, ids) >= FEW_ROWS or values.n_unique() < len(values):
        return values
    for form in (_bare, _digits):
        known = form(ids)
        if known.n_unique() == len(known) and _hits(form(values), known) >= FEW_ROWS:
            return form(values).replace(known, ids)
    return values


def _named(column: pl.Series, ids: pl.Series) -> pl.Series:
    """Return a column's values as they are, or the stems of file names where more ids are among these."""
    values = column.str.strip_chars()
    stems = values.str.replace(r"^.*/", "").str.replace(r"\.[A-Za-z]\w*$", "")
    if (stems == values).all():
        return values
    return stems if _hits(stems, ids) > _hits(values, ids) else values


def _hits(values: pl.Series, ids: pl.Series) -> int:
    return int(ids.is_in(values.implode()).sum())


def _bare(texts: pl.Series) -> pl.Series:
    return texts.str.to_lowercase().str.replace_all(r"[^a-z0-9]", "")


def _digits(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(r"\D", "").str.strip_chars_start("0")


def _counts(table: PublicTable, answers: Answers) -> list[Clue]:
    """Return the number of rows that a table has for each answer, if it is not one."""
    key = _key(table, answers)
    if key is None:
        return []
    counts = _as_ids(table.frame[key], answers.ids).alias(ID).value_counts(name=PLACE)
    found = answers.ids.to_frame().join(counts, on=ID, how="left", maintain_order="left")[PLACE].fill_null(0)
    return [Clue("the number of rows", table.name, found.cast(pl.Float64).to_numpy())] if found.n_unique() > 1 else []


def _unique(frame: pl.DataFrame, key: str, ids: pl.Series) -> pl.DataFrame:
    """Return the first row of each id in a table, with columns for the id and the row's number."""
    named = frame.with_columns(_as_ids(frame[key], ids).alias(ID)).drop(key if key != ID else [])
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
