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
from pathlib import Path
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


def edited_starter(proof: str, edits: Mapping[str, str], script: str = "train.py") -> Files:
    """Return a script of the task's starter with some texts replaced.

    Args:
        proof: the path of a module in the task's folder, `__file__`.
        edits: the new texts by the old, each of which must occur exactly once.
        script: the script's name.
    """
    text = (Path(proof).parent / "starter" / script).read_text(encoding="utf-8")
    for old, new in edits.items():
        if text.count(old) != 1:
            raise ValueError(f"starter/{script} has {old[:60]!r} {text.count(old)} times, not once")
        text = text.replace(old, new)
    return {script: text}


def invalid_tables(oracle: str, *, id_column: str, value_column: str, name: str = "submission.csv") -> dict[str, Invalid]:
    """Make tables that every grader of tables must refuse, from one that it accepts.

    Args:
        oracle: a table with a header that the grader accepts.
        id_column: the column of ids.
        value_column: a column of numbers, or of given words.
        name: the file's name.
    """
    frame = pl.read_csv(io.StringIO(oracle), infer_schema=False)

    def changed(value: str) -> str:
        return table_text(
            frame.with_columns(pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(pl.col(value_column)).alias(value_column))
        )

    cases: dict[str, tuple[str | bytes, str]] = {
        "empty": ("", "empty"),
        "header only": (table_text(frame.head(0)), "rows"),
        "one row missing": (table_text(frame.head(-1)), "rows"),
        "column missing": (table_text(frame.drop(value_column)), "column"),
        "index written": (table_text(frame.with_row_index("Unnamed: 0")), "Unnamed: 0"),
        "NaN": (changed("NaN"), value_column),
        "infinite": (changed("inf"), value_column),
        "too large for a number": (changed("1e400"), value_column),
        "a word for a number": (changed("high"), "'high'"),
        "blank": (changed(""), value_column),
        "UTF-16": (oracle.encode("utf-16"), "UTF-8"),
        "bytes": (random.Random(0).randbytes(2000), name),
        "no header": (frame.write_csv(include_header=False), "header"),
        "an id twice": (table_text(pl.concat((frame, frame.head(1)))), "more than once"),
        "an id too many": (table_text(pl.concat((frame, frame.head(1).with_columns(pl.lit("no-such-id").alias(id_column))))), "no-such-id"),
        "other ids": (table_text(frame.with_columns((pl.lit("x") + pl.col(id_column)).alias(id_column))), "lacks"),
    }
    return {case: Invalid({name: content}, reason) for case, (content, reason) in cases.items()}
