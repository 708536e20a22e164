"""Find test rows and pictures whose copies, exact or nearly so, stand elsewhere in the public data with their answers.

A copy is a row far nearer than any other: at most `NEAR` of the distance to the `NEIGHBOURS`th nearest row. Rows of honest data have such
neighbours too, by chance; so there must be far more than among the other rows themselves. And what stands beside the copies must tell the
answers, as the lint measures with the columns that `duplicates` yields.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.checks.dependence import FEW_ROWS
from mlagentbench.checks.file_clues import THUMBNAIL, Sketch
from mlagentbench.checks.parts import Clue, words
from mlagentbench.checks.public_files import PROJECTED, PublicArray, PublicTable, projected
from mlagentbench.checks.public_tables import Answers, joined, numbers_or_text, places_in

Array = NDArray[Any]

NEAR = 0.25
NEIGHBOURS = 10
MOST = 1000
"""Test rows that are looked up, and rows that are looked up among the other rows to measure chance."""
MOST_OTHERS = 50_000
TIMES = 3.0
"""How many times as common copies must be as by chance."""
SHARE = 0.01
"""The least share of test rows with copies, beyond chance."""
MOST_COLUMNS = 40
"""Columns that tables may share for rows to be compared without one column after another."""
EXACT = 1e-9


class _Others(NamedTuple):
    """Rows of which test rows may be copies, with what is known of them."""

    name: str
    test: Array
    """The test rows, of shape (answers, columns); NaN where there is none."""
    rows: Array
    """The other rows, of shape (n, columns)."""
    known: pl.DataFrame
    """Columns of n values which stand beside the other rows, and not beside the test rows."""
    mixed: Array
    """The other rows with the values of each column in random order, for chance."""


def duplicates(answers: Answers, tables: list[PublicTable], grids: list[PublicArray], sketches: list[Sketch]) -> Iterator[Clue]:
    """Yield columns of what stands beside the test rows' copies, with gaps for test rows without a copy."""
    for others in (*_tables(answers, tables), *_arrays(answers, tables, grids), *_files(answers, tables, sketches)):
        copies = _copies(others)
        if copies is not None:
            yield from _beside(copies, others.known, f"copies of test rows in {others.name}")
    yield from _groups(answers, tables)
    yield from _all_but_one(answers, tables)


def _copies(others: _Others) -> Array | None:
    """Return the row of which each test row is a copy, -1 for none; None if there are not more than by chance."""
    if len(others.rows) < 5 * NEIGHBOURS or not others.rows.shape[1]:
        return None
    rng = np.random.default_rng(0)
    tested = rng.permutation(np.flatnonzero(~np.isnan(others.test).any(axis=1)))[:MOST]
    if len(tested) < FEW_ROWS:
        return None
    nearest, near, same = _nearest(others.test[tested], others.rows)
    if near.sum() >= FEW_ROWS:
        some = rng.permutation(len(others.rows))[:MOST]
        _, chance, _ = _nearest(others.rows[some], others.rows, own=some)
        if near.mean() > TIMES * chance.mean() + SHARE:
            return _places(len(others.test), tested[near], nearest[near])
    if same.sum() >= FEW_ROWS:
        _, _, chance = _nearest(others.test[tested], others.mixed)
        if same.mean() > TIMES * chance.mean() + SHARE:
            return _places(len(others.test), tested[same], nearest[same])
    return None


def _nearest(rows: Array, others: Array, own: Array | None = None) -> tuple[Array, Array, Array]:
    """Return the nearest other row of each row, whether it is far nearer than the next ones, and whether it is the same.

    Args:
        rows: rows of shape (n, columns).
        others: rows of shape (m, columns).
        own: where each row is among the others, to leave it out; None if it is not.
    """
    squares = (others**2).sum(axis=1)
    nearest, near, same = np.zeros(len(rows), int), np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    for start in range(0, len(rows), 100):
        part = rows[start : start + 100]
        distances = squares + (part**2).sum(axis=1)[:, None] - 2 * part @ others.T
        if own is not None:
            distances[np.arange(len(part)), own[start : start + 100]] = np.inf
        kth = np.argpartition(distances, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
        closest = np.take_along_axis(distances, kth, axis=1)
        found = kth[np.arange(len(part)), closest.argmin(axis=1)]
        # The short form of the distance is not exact enough for equal rows.
        exact = ((part - others[found]) ** 2).sum(axis=1)
        chunk = slice(start, start + 100)
        nearest[chunk], near[chunk] = found, exact < NEAR**2 * closest.max(axis=1) - EXACT
        same[chunk] = exact < EXACT
    return nearest, near, same


def _places(rows: int, tested: Array, nearest: Array) -> Array:
    places = np.full(rows, -1)
    places[tested] = nearest
    return places


def _beside(places: Array, known: pl.DataFrame, where: str) -> Iterator[Clue]:
    there = places >= 0
    for column in known:
        values = numbers_or_text(column)
        found = np.full(len(places), np.nan) if values.dtype.kind == "f" else np.full(len(places), "", dtype=object)
        found[there] = values[places[there]]
        raw = np.full(len(places), "", dtype=object)
        raw[there] = column.fill_null("").str.strip_chars().to_numpy()[places[there]]
        yield Clue(f"the column {column.name!r}", where, found, raw)


def _tables(answers: Answers, tables: list[PublicTable]) -> Iterator[_Others]:
    """Yield pairs of a table with the test rows and one with other rows that shares columns with it, and has more."""
    for _, other, test, frame in _pairs(answers, tables):
        shared = [name for name in test.columns if name in frame.columns and test[name].null_count() < len(test)]
        known = frame.drop(shared)
        if not shared or not known.width or len(frame) < FEW_ROWS:
            continue
        blocks = [_vector(column) for column in pl.concat([test.select(shared), frame.select(shared)])]
        vectors = _narrow(np.hstack(blocks))
        vectors[: len(test)][test.select(pl.all_horizontal(pl.col(shared).is_null())).to_series().to_numpy()] = np.nan
        rng = np.random.default_rng(0)
        some = np.sort(rng.permutation(len(frame))[:MOST_OTHERS])
        mixed = _narrow(np.hstack([rng.permutation(block[len(test) :])[some] for block in blocks]))
        yield _Others(other.name, vectors[: len(test)], vectors[len(test) :][some], known[some.tolist()], mixed)


def _narrow(rows: Array) -> Array:
    return projected(rows) if rows.shape[1] > PROJECTED else rows


def _without_answers(table: PublicTable, answers: Answers) -> pl.DataFrame:
    """Return a table without the rows of the answers' ids."""
    ids = answers.ids.implode()
    key = answers.id_column if answers.id_column in table.frame.columns else None
    return table.frame.filter(~pl.col(key).str.strip_chars().is_in(ids)) if key else table.frame


def _vector(column: pl.Series) -> Array:
    """Return a column as numbers of unit variance: of shape (rows, 1), or (rows, some) for texts, so that equal values have equal rows."""
    values = numbers_or_text(column)
    if values.dtype.kind == "f":
        size = float(np.nanstd(values)) if (~np.isnan(values)).any() else 0.0
        centred = (values - np.nanmean(values)) / size if size else np.zeros(len(values))
        return np.nan_to_num(centred).reshape(-1, 1)
    vectors: dict[str, Array] = {}
    for text in dict.fromkeys(values):
        vectors[text] = words(text, PROJECTED // 4)
    return np.array([vectors[text] for text in values])


def _arrays(answers: Answers, tables: list[PublicTable], grids: list[PublicArray]) -> Iterator[_Others]:
    """Yield pairs of an array with the test rows and one with rows of the same form beside which columns of the same length stand."""
    rng = np.random.default_rng(0)
    for grid in grids:
        places = places_in(grid, answers)
        if places is None or grid.values.shape[1] < 2:
            continue
        for other in grids:
            if other.values.shape[1] != grid.values.shape[1] or other.projected != grid.projected or grid.ends or other.ends:
                continue
            left = np.ones(len(other.values), bool)
            if other is grid:
                left[places] = False
            known = _beside_array(other, tables, grids)
            some = np.sort(rng.permutation(np.flatnonzero(left))[:MOST_OTHERS])
            if len(some) and known.width:
                rows = other.values[some]
                yield _Others(other.name, grid.values[places], rows, known[some.tolist()], rng.permuted(rows, axis=0))


def _beside_array(array: PublicArray, tables: list[PublicTable], grids: list[PublicArray]) -> pl.DataFrame:
    """Return the columns of other arrays and tables that have a row for each row of an array."""
    found: dict[str, pl.Series] = {}
    for grid in grids:
        if len(grid.values) == len(array.values) and grid.values.shape[1] == 1:
            found[grid.name] = pl.Series([f"{value:g}" for value in grid.values[:, 0]], dtype=pl.String)
    for table in tables:
        if len(table.frame) == len(array.values):
            found |= {f"{column.name} of {table.name}": column for column in table.frame}
    return pl.DataFrame(found)


def _files(answers: Answers, tables: list[PublicTable], sketches: list[Sketch]) -> Iterator[_Others]:
    """Yield the files of test rows, and the others of their kind with their folders and the tables' columns; pictures mirrored, too."""
    for kind in dict.fromkeys(sketch.kind for sketch in sketches):
        test = {sketch.row: sketch for sketch in sketches if sketch.kind == kind and sketch.row is not None}
        others = [sketch for sketch in sketches if sketch.kind == kind and sketch.row is None]
        if len(test) < FEW_ROWS or len(others) < FEW_ROWS:
            continue
        rows = np.array([sketch.vector for sketch in others])
        vectors = np.full((answers.rows, rows.shape[1]), np.nan)
        for row, sketch in test.items():
            vectors[row] = sketch.vector
        known, mixed = _beside_files(others, tables), np.random.default_rng(0).permuted(rows, axis=0)
        yield _Others(f"the {kind}", vectors, rows, known, mixed)
        if kind == "pictures":
            mirrored = vectors.reshape(-1, THUMBNAIL, THUMBNAIL)[:, :, ::-1].reshape(vectors.shape)
            yield _Others("the pictures, mirrored,", mirrored, rows, known, mixed)


def _beside_files(files: list[Sketch], tables: list[PublicTable]) -> pl.DataFrame:
    """Return the folders of files, and the columns of the tables that name these files."""
    names = pl.DataFrame({"name": [Path(each.name).name for each in files], "stem": [Path(each.name).stem for each in files]})
    known = {"the folder": pl.Series([Path(each.name).parent.as_posix() for each in files])}
    for table in tables:
        for column in table.frame:
            for by in ("name", "stem"):
                if int(names[by].is_in(column.implode()).sum()) >= FEW_ROWS and column.n_unique() > len(column) / 2:
                    first = table.frame.unique(column.name, keep="first")
                    beside = names.select(by).join(first, left_on=by, right_on=column.name, how="left", maintain_order="left").drop(by)
                    known |= {f"{each.name} of {table.name}": each for each in beside}
    return pl.DataFrame(known)


def _all_but_one(answers: Answers, tables: list[PublicTable]) -> Iterator[Clue]:
    """Yield what stands beside rows that are equal to test rows in all columns but one, such as a time or a number of the row."""
    for table, other, test, frame in _pairs(answers, tables):
        shared = [name for name in test.columns if name in frame.columns and test[name].null_count() < len(test)]
        known = frame.drop(shared)
        if not known.width or not 3 <= len(shared) <= MOST_COLUMNS:
            continue
        numbered = frame.with_row_index("the row")
        for left_out in shared:
            rest = [name for name in shared if name != left_out]
            first = numbered.unique(rest, keep="none").select("the row", *rest)
            places = test.select(rest).join(first, on=rest, how="left", maintain_order="left")["the row"]
            found = np.where(test.select(rest).is_unique(), places.cast(pl.Int64).fill_null(-1), -1)
            if (found >= 0).sum() >= FEW_ROWS and _distinct(numbered.select(rest)):
                yield from _beside(found, known, f"rows of {other.name} that equal test rows of {table.name} but for {left_out!r}")
                break


def _distinct(frame: pl.DataFrame) -> bool:
    """Return whether rows with the values of each column in random order are nearly all different, so that equal rows are no chance."""
    mixed = frame.select(column.shuffle(seed=number) for number, column in enumerate(frame))
    return mixed.join(frame.unique(), on=frame.columns, how="semi").height <= SHARE * len(frame)


def _pairs(answers: Answers, tables: list[PublicTable]) -> Iterator[tuple[PublicTable, PublicTable, pl.DataFrame, pl.DataFrame]]:
    """Yield each table with the test rows, another table, the columns of the test rows, and the other table without these rows."""
    for table in tables:
        test = joined(table, answers)
        for other in tables if test is not None else ():
            assert test is not None
            yield table, other, test, _without_answers(other, answers)


def _groups(answers: Answers, tables: list[PublicTable]) -> Iterator[Clue]:
    """Yield what stands beside equal values of one column in other rows, where most values are rare: groups with one answer.

    Values that are common in the test rows need no other rows to be looked up.
    """
    for _, other, test, frame in _pairs(answers, tables):
        known = frame.drop([name for name in test.columns if name in frame.columns])
        for name in test.columns if known.width else ():
            if name not in frame.columns or not _names_groups(test[name]):
                continue
            first = frame.with_row_index("the row").unique(name, keep="first").select(pl.col(name), "the row")
            places = test.select(name).join(first, on=name, how="left", maintain_order="left")["the row"].cast(pl.Int64)
            found = places.fill_null(-1).to_numpy()
            if (found >= 0).sum() >= FEW_ROWS:
                yield from _beside(found, known, f"equal values of {name!r} in {other.name}")


def _names_groups(column: pl.Series) -> bool:
    """Return whether a column may name groups: it is no column of measurements, and many of its values are rare."""
    values = numbers_or_text(column)
    measured = values.dtype.kind == "f" and (values != np.round(values)).any()
    return not measured and column.n_unique() > len(column) / 3
