"""Grade a task whose submission is a table with ids, and give the submissions that prove its grader.

    TABLE = TableTask("id", {"price": Number(-1e12, 1e12)}, mean_absolute_error)
    grade = TABLE.grade                                                 # in grade.py
    oracle, naive, invalid = TABLE.oracle, TABLE.naive, TABLE.invalid   # in proof.py

The task's `prepare.py` writes the right answers to `answers.csv` in the private folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.errors import InvalidSubmission
from mlagentbench.records import Score
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text
from mlagentbench.task.sampling import resample
from mlagentbench.task.tables import Column, Kind, Number, OneOf, Text, align

ANSWERS = "answers.csv"
MOST_ROWS = 20_000
"""The most rows of a metric that gives no standard error itself (`row_score`), since it is called on `RESAMPLES` samples of them."""
NO_SCORE = (ArithmeticError, LookupError, ValueError, InvalidSubmission, pl.exceptions.PolarsError)
"""What a metric may raise on a sample that lacks something, such as all rows of a class; the score then has no standard error."""


class DataFolders(Protocol):
    """The folders of prepared data, such as `data.prepare.Prepared`."""

    @property
    def public(self) -> Path:
        """The folder that agents see."""

    @property
    def private(self) -> Path:
        """The folder of the answers."""


class SubmittedFiles(Protocol):
    """The files of a submission, such as `grading.reader.SubmissionFiles`."""

    def read_bytes(self, name: str, /) -> bytes:
        """Return a file's content."""


class TableContext(Protocol):
    """What the grader of a table needs of `grading.context.GradingContext`."""

    @property
    def submission(self) -> SubmittedFiles:
        """The submission's files."""

    @property
    def private(self) -> Path:
        """The folder of the answers."""


@dataclass(frozen=True)
class TableTask:
    """A task whose submission is a CSV file with one row for each id of the answers."""

    id_column: str
    columns: Mapping[str, Kind]
    """The submission's other columns, by name."""
    metric: Callable[[pl.DataFrame, Mapping[str, Column]], Score]
    """Scores a submission: takes the answers, and the submission's columns in the order of their rows."""
    submitted: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    """Turns the answers into the best submission; None where the answers have the submission's columns."""
    file: str = "submission.csv"

    def grade(self, context: TableContext) -> Score:
        """Score a submission.

        Raises:
            InvalidSubmission: the file is not a table with exactly these columns, and one row for each id.
        """
        answers = self.answers(context.private)
        ids, text = answers[self.id_column], context.submission.read_bytes(self.file)
        found = align(text, self.file, ids=ids, id_column=self.id_column, columns=self.columns)
        score = self.metric(answers, found)
        if score.standard_error is not None or not 1 < len(answers) <= MOST_ROWS:
            return score

        def score_of(rows: NDArray[np.int64]) -> float:
            return self.metric(answers[rows], {name: column[rows] for name, column in found.items()}).value

        with suppress(*NO_SCORE), np.errstate(all="ignore"):
            return resample(score, len(answers), score_of)
        return score

    def answers(self, private: Path) -> pl.DataFrame:
        """Read the right answers, with ids, words and texts as text."""
        texts = [name for name, kind in self.columns.items() if isinstance(kind, OneOf | Text)]
        return pl.read_csv(private / ANSWERS, schema_overrides=dict.fromkeys([self.id_column, *texts], pl.String))

    def best(self, data: DataFolders) -> pl.DataFrame:
        """Return the best submission, as a table."""
        answers = self.answers(data.private)
        return answers.select(self.id_column, *self.columns) if self.submitted is None else self.submitted(answers)

    def files(self, table: pl.DataFrame) -> Files:
        """Return a table as the file of a submission."""
        return {self.file: table_text(table)}

    def changed(self, data: DataFolders, **columns: object) -> Files:
        """Return the best submission with other columns: values, the same for each row, or expressions of polars."""
        new = {name: value if isinstance(value, pl.Expr | pl.Series) else pl.lit(value) for name, value in columns.items()}
        return self.files(self.best(data).with_columns(**new))

    def refused(self, data: DataFolders, reason: str, **columns: object) -> Invalid:
        """Return the best submission with other columns, as `changed`, for which it must be refused with these words in the reason."""
        return Invalid(self.changed(data, **columns), reason)

    def first_row(self, data: DataFolders, column: str, value: str) -> Files:
        """Return the best submission with another value in a column of its first row."""
        return self.changed(data, **{column: pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(pl.col(column))})

    def oracle(self, data: DataFolders) -> dict[str, Files]:
        """Return the best submission: as it is, with its rows reversed, and with its columns reversed."""
        best = self.best(data)
        return {
            "answers": self.files(best),
            "rows reversed": self.files(best.reverse()),
            "columns reversed": self.files(best.select(best.columns[::-1])),
        }

    def naive(self, data: DataFolders) -> dict[str, Files]:
        """Return the mean or commonest answer for every row, and the right answers under other ids, in two orders."""
        best = self.best(data)
        constant = {
            name: best[name].mean() if isinstance(kind, Number) else best[name].mode().sort()[0] for name, kind in self.columns.items()
        }
        return {
            "constant": self.changed(data, **constant),
            "shuffled": self.files(shuffled(best, self.id_column)),
            "reversed under the same ids": self.files(best.with_columns(best[self.id_column].reverse())),
        }

    def invalid(self, data: DataFolders) -> dict[str, Invalid]:
        """Return tables that every grader must refuse; those with a wrong value have it in the first column that is not a text."""
        column = min(self.columns, key=lambda name: isinstance(self.columns[name], Text))
        return invalid_tables(table_text(self.best(data)), id_column=self.id_column, value_column=column, name=self.file)
