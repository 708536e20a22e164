"""A table task: it goes by ids and column names, and its own submissions score best, score worse, or are refused as they must."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.records import Score
from mlagentbench.task.proofs import Files, edited_starter
from mlagentbench.task.table_task import TableTask
from mlagentbench.task.tables import Column, Number, OneOf, Text


def error(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    wrong = (found["kind"] != answers["kind"].to_numpy()) | (found["note"] != answers["note"].to_numpy())
    return Score(value=float(abs(found["size"] - answers["size"].to_numpy()).mean() + wrong.mean()))


TABLE = TableTask("id", {"note": Text(), "size": Number(0, 100), "kind": OneOf(("01", "2"))}, error)


class Submitted(NamedTuple):
    """A submission that is in memory, with the answers."""

    submission: Submitted | None
    private: Path
    files: Files

    def read_bytes(self, name: str, /) -> bytes:
        content = self.files[name]
        return content.encode() if isinstance(content, str) else content


@pytest.fixture
def data(tmp_path: Path) -> Prepared:
    data = Prepared.empty(tmp_path)
    rows = {"id": [f"{number:03}" for number in range(40)], "size": [7 * number % 40 for number in range(40)]}
    kinds = {"kind": ["2" if number % 3 else "01" for number in range(40)], "note": ["a"] * 30 + ["b"] * 10}
    pl.DataFrame({**rows, **kinds, "unasked": [1] * 40}).write_csv(data.private / "answers.csv")
    return data


def score(data: Prepared, files: Files) -> float:
    files_of = Submitted(None, data.private, files)
    return TABLE.grade(files_of._replace(submission=files_of)).value  # type: ignore[arg-type]


def test_right_answers_score_best_in_any_order_of_rows_and_columns(data: Prepared) -> None:
    oracle = TABLE.oracle(data)
    assert len(set(map(str, oracle.values()))) == 3
    assert [score(data, files) for files in oracle.values()] == [0, 0, 0]


def test_naive_answers_are_graded_and_score_worse(data: Prepared) -> None:
    naive = {name: score(data, files) for name, files in TABLE.naive(data).items()}
    assert naive.keys() >= {"constant", "shuffled"} and min(naive.values()) > 5
    row = str(TABLE.naive(data)["constant"]["submission.csv"]).splitlines()[1]
    assert row == "000,a,19.5,2", "the commonest text and word, the mean number"


def test_every_invalid_table_is_refused_for_its_reason(data: Prepared) -> None:
    invalid = TABLE.invalid(data)
    assert len(invalid) > 12
    for case, (files, reason) in invalid.items():
        with pytest.raises(InvalidSubmission) as refused:
            score(data, files)
        assert reason in str(refused.value), case


def test_a_value_can_be_changed_in_every_row_or_the_first(data: Prepared) -> None:
    assert score(data, TABLE.changed(data, size=pl.col("size") + 1)) == pytest.approx(1)
    assert score(data, TABLE.first_row(data, "note", "z")) == pytest.approx(1 / 40)
    with pytest.raises(InvalidSubmission, match="kind is '1' in the row of 000"):
        score(data, TABLE.refused(data, "kind", kind="1").files)


def test_the_best_submission_can_have_other_columns_than_the_answers(data: Prepared) -> None:
    def submitted(answers: pl.DataFrame) -> pl.DataFrame:
        return answers.select("id", pl.col("size").alias("guess"))

    table = TableTask("id", {"guess": Number()}, lambda answers, found: Score(value=float(len(found))), submitted=submitted)
    assert table.best(data).columns == ["id", "guess"]


def test_a_starter_is_edited_where_the_text_is_there_once(tmp_path: Path) -> None:
    (tmp_path / "starter").mkdir()
    (tmp_path / "starter" / "train.py").write_text("RATE = 1\nPATH = 'x'\n")
    assert edited_starter(str(tmp_path / "proof.py"), {"RATE = 1": "RATE = 2"}) == {"train.py": "RATE = 2\nPATH = 'x'\n"}
    for old in ("RATE = 3", "A"):
        with pytest.raises(ValueError, match="times, not once"):
            edited_starter(str(tmp_path / "proof.py"), {old: ""})
