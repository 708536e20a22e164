"""Types and helpers for a task's `proof.py`: submissions that must win, that must not, and that must be refused.

    def oracle(data: Prepared) -> Mapping[str, Files]     # score best
    def naive(data: Prepared) -> Mapping[str, Files]      # are graded, and score worse: a constant, a shuffled oracle
    def invalid(data: Prepared) -> Mapping[str, Invalid]  # are refused, for a reason that names what is wrong
    def solution() -> Files                               # written over the starter and run: a success
    def ineffective() -> Files                            # written over the starter and run: no success

`oracle`, `naive` and `invalid` return submissions by names of their choice; `data` is what `prepare` made, answers included. `solution`
and `ineffective` return the files that an agent would write: the task's script is then run as in a run.
"""

from __future__ import annotations

import io
import random
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

Files = Mapping[str, str | bytes]
"""The files' contents, by path in the workspace."""


class Invalid(NamedTuple):
    """A submission that must be refused, and words that the reason must contain."""

    files: Files
    reason: str


def table_text(frame: pl.DataFrame) -> str:
    """Return a table as CSV, as an agent would write it."""
    return frame.write_csv()


def shuffled(frame: pl.DataFrame, id_column: str, seed: int = 0) -> pl.DataFrame:
    """Return the same rows under each other's ids."""
    values = frame.drop(id_column).sample(fraction=1, shuffle=True, seed=seed)
    return pl.concat((frame.select(id_column), values), how="horizontal").select(frame.columns)


def invalid_tables(oracle: str, *, id_column: str | None, number_column: str, name: str = "submission.csv") -> dict[str, Invalid]:
    """Make tables that every grader of tables must refuse, from one that it accepts.

    Args:
        oracle: a table with a header that the grader accepts.
        id_column: the column of ids; None for a table known by its rows' order.
        number_column: a column of numbers, or of given words.
        name: the file's name.
    """
    frame = pl.read_csv(io.StringIO(oracle), infer_schema=False)

    def changed(value: str) -> str:
        return table_text(
            frame.with_columns(
                pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(pl.col(number_column)).alias(number_column)
            )
        )

    cases: dict[str, tuple[str | bytes, str]] = {
        "empty": ("", "empty"),
        "header only": (table_text(frame.head(0)), "rows"),
        "one row missing": (table_text(frame.head(-1)), "rows"),
        "column missing": (table_text(frame.drop(number_column)) if frame.width > 1 else "wrong\n" + "1\n" * len(frame), "column"),
        "index written": (table_text(frame.with_row_index("Unnamed: 0")), "Unnamed: 0"),
        "NaN": (changed("NaN"), number_column),
        "infinite": (changed("inf"), number_column),
        "too large for a number": (changed("1e400"), number_column),
        "a word for a number": (changed("high"), "'high'"),
        "blank": (changed(""), number_column),
        "UTF-16": (oracle.encode("utf-16"), "UTF-8"),
        "bytes": (random.Random(0).randbytes(2000), name),
    }
    if id_column is not None:
        ids = frame[id_column]
        cases["an id twice"] = (table_text(pl.concat((frame, frame.head(1)))), "more than once")
        cases["an id too many"] = (
            table_text(pl.concat((frame, frame.head(1).with_columns(pl.lit("no-such-id").alias(id_column))))),
            "no-such-id",
        )
        cases["other ids"] = (table_text(frame.with_columns((pl.lit("x") + ids).alias(id_column))), "lacks")
    else:
        cases["one row too many"] = (table_text(pl.concat((frame, frame.head(1)))), "rows")
    return {case: Invalid({name: content}, reason) for case, (content, reason) in cases.items()}
