"""What an agent leaves as a table that has read the graders of tables and knows no answer: none of it is a success.

Tricks with the form of a table, constants that suit the metric, and predictions from nothing but ids and the order of rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task, find_task
from mlagentbench.task.proofs import table_text
from mlagentbench.task.seeds import SEED
from mlagentbench.task.success import is_success
from mlagentbench.tasks.parkinsons_disease.grade import smape_terms
from mlagentbench.tasks.parkinsons_disease.prepare import ratings
from tests.tasks.by_hand import mini, score

Array = NDArray[Any]


class Table(NamedTuple):
    """What is public of a task's submission."""

    id: str
    column: str
    """One of those to be predicted."""
    train: str
    test: str
    hedges: tuple[str, ...]
    """All that the column may hold, or numbers between which the answers lie."""


TABLES: Mapping[str, Table] = {
    "house-price": Table("Id", "SalePrice", "train.csv", "test.csv", tuple(str(price) for price in range(50_000, 500_000, 50_000))),
    "spaceship-titanic": Table("PassengerId", "Transported", "train.csv", "test.csv", ("True", "False")),
    "feedback": Table("text_id", "grammar", "train.csv", "test.csv", tuple(str(1 + half / 2) for half in range(9))),
    "imdb": Table("idx", "positive", "data/train.csv", "data/test.csv", ("0.0", "1.0")),
    "parkinsons-disease": Table("prediction_id", "rating", "", "sample_submission.csv", tuple(map(str, range(0, 60, 5)))),
    "diabetes": Table("patient_id", "progression", "train.csv", "test.csv", tuple(map(str, range(25, 350, 50)))),
    "digits-lowlabel": Table("id", "digit", "data/labelled.csv", "data/test.csv", tuple("0123456789")),
    "ladder-3": Table("id", "target", "data/train.csv", "data/test.csv", ("-1", "0", "1")),
}
"""By task."""
STARTER_OF_PARKINSONS = 40.0
"""What its starter scores, as docs/tasks.md has it."""
NEEDS_SKLEARN = ("diabetes", "digits-lowlabel")


class Case(NamedTuple):
    """A task with its data, and what an honest agent reaches that does next to nothing."""

    task: Task
    data: Prepared
    table: Table
    guess: pl.DataFrame
    """The best of the task's naive submissions, as text."""
    baseline: float


@functools.cache
def case(task_id: str, root: Path) -> Case:
    if task_id in NEEDS_SKLEARN:
        pytest.importorskip("sklearn")
    task = find_task(task_id)
    data = mini(task, root / task_id, SEED)
    proof = task.module("proof")
    assert proof is not None
    metric = task.spec.metric
    naive = [files["submission.csv"] for files in proof.naive(data).values()]
    scores = [score(task, data, {"submission.csv": text}, root / task_id / "naive").value for text in naive]
    best = max(range(len(naive)), key=lambda place: metric.gain(scores[place], 0))
    text = naive[best]
    guess = pl.read_csv(text.encode() if isinstance(text, str) else text, infer_schema=False)
    return Case(task, data, TABLES[task_id], guess, scores[best])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def succeeds(found: Case, text: str | bytes, folder: Path) -> bool:
    """Whether a table is a success over the naive submission; a refused one is none, and says why."""
    try:
        value = score(found.task, found.data, {"submission.csv": text}, folder).value
    except InvalidSubmission as refused:
        assert "submission.csv" in str(refused) and len(str(refused)) < 600
        return False
    return is_success(found.task.spec.metric, value, found.baseline)


def _with(found: Case, value: str) -> str:
    return table_text(found.guess.with_columns(pl.lit(value).alias(found.table.column)))


def every_answer(found: Case) -> str:
    """Each row once for each thing that it may be, so that the right one is among them."""
    column = found.table.column
    rows = [found.guess.with_columns(pl.lit(value).alias(column)) for value in found.table.hedges]
    if found.table.column == "positive":
        rows = [rows[n].with_columns(pl.lit(found.table.hedges[1 - n]).alias("negative")) for n in (0, 1)]
    return table_text(pl.concat(rows))


def every_answer_under_other_ids(found: Case) -> str:
    """The same, with ids that only a careless comparison takes for equal."""
    name = found.table.id
    spellings = ("{}", " {}", "{} ", "0{}", "{}.0", "+{}", "{}\u00a0", "\u200b{}", "{}\t")
    values = (found.table.hedges * 9)[: len(spellings)]
    rows = [
        found.guess.with_columns(pl.format(spelling, pl.col(name)).alias(name), pl.lit(value).alias(found.table.column))
        for spelling, value in zip(spellings, values, strict=True)
    ]
    return table_text(pl.concat(rows))


def the_column_again_and_again(found: Case) -> str:
    """A column for each thing that a row may be, of one name or of names that differ in their capitals."""
    column, values = found.table.column, (found.table.hedges * 4)[:4]
    header, *rows = table_text(found.guess).splitlines()
    names = [column, column, column.upper(), column.title()]
    return "\n".join([",".join([header, *names]), *(",".join([row, *values]) for row in rows)])


FORMS: Mapping[str, Callable[[Case], str | bytes]] = {
    "every answer": every_answer,
    "every answer under other ids": every_answer_under_other_ids,
    "the column again and again": the_column_again_and_again,
    "the first rows alone": lambda found: table_text(found.guess.head(1)),
    "one row for all": lambda found: table_text(found.guess.head(1).with_columns(pl.lit("*").alias(found.table.id))),
    "another table behind the first": lambda found: table_text(found.guess) + "\n\n" + table_text(found.guess),
    "a million rows": lambda found: table_text(found.guess) + "x,1\n" * 1_000_000,
    "quotes around half of it": lambda found: table_text(found.guess).replace("\n", '\n"', 1) + '"',
    "no rows": lambda found: table_text(found.guess.head(0)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("task_id", TABLES)
def test_no_form_of_a_table_is_a_success(task_id: str, form: str, root: Path, tmp_path: Path) -> None:
    found = case(task_id, root)
    assert not succeeds(found, FORMS[form](found), tmp_path)


WORDS = "NaN nan inf -inf Infinity 1e400 -1e308 1e12 -1e12 -0.0 1e-320 0x1p3 1_000 1,5 \u0661 True true TRUE 1 0 null None NA True|False"
VALUES = (*WORDS.split(), "", "True False", "[0-9]", ".*", "%", "0.5", "-1", "2", "=A1", "5.0")


@pytest.mark.parametrize("task_id", TABLES)
def test_no_value_that_suits_every_answer_is_taken_for_one(task_id: str, root: Path, tmp_path: Path) -> None:
    found = case(task_id, root)
    others = [column for column in found.guess.columns if column != found.table.id]
    for value in VALUES:
        assert not succeeds(found, _with(found, value), tmp_path), value
        everywhere = found.guess.with_columns(pl.lit(value).alias(column) for column in others)
        assert not succeeds(found, table_text(everywhere), tmp_path), value


@pytest.mark.parametrize("task_id", [name for name, table in TABLES.items() if table.train])
def test_ids_and_the_order_of_rows_tell_nothing(task_id: str, root: Path, tmp_path: Path) -> None:
    """What stands at similar numbers, at equal remainders, at equal digits of an id: the nearest rows of the training table by these."""
    found = case(task_id, root)
    table = found.table
    train, test = (pl.read_csv(found.data.public / part, infer_schema=False) for part in (table.train, table.test))
    known = train["label" if task_id == "imdb" else table.column].to_numpy()
    for seen in (_numbers, _remainders, _letters):
        x, asked = (seen(part[table.id].to_list()) for part in (train, test))
        scale = x.std(axis=0) + 1e-9
        apart = (((asked / scale)[:, None] - (x / scale)[None]) ** 2).sum(axis=2)
        nearest = np.argsort(apart, axis=1, kind="stable")[:, :25]
        said = pl.DataFrame({table.id: test[table.id], table.column: [_typical(known[rows]) for rows in nearest]})
        if task_id == "imdb":
            said = said.with_columns((1 - pl.col("positive").cast(pl.Float64)).alias("negative"))
        rest = found.guess.drop(table.column, *(["negative"] if task_id == "imdb" else []))
        assert not succeeds(found, table_text(rest.join(said, on=table.id)), tmp_path), seen.__name__


def _numbers(ids: Sequence[str]) -> Array:
    """The id as a number, and its place."""
    return np.array([[int("".join(c for c in each if c.isalnum()), 16), 20 * place / len(ids)] for place, each in enumerate(ids)], float)


def _remainders(ids: Sequence[str]) -> Array:
    numbers = [int("".join(c for c in each if c.isalnum()), 16) for each in ids]
    return np.array([[number % modulus for modulus in (2, 3, 5, 7, 10, 16)] for number in numbers], float)


def _letters(ids: Sequence[str]) -> Array:
    return np.array([[ord(c) for c in each.rjust(12)[-6:]] for each in ids], float)


def _typical(values: Array) -> str:
    """The median of numbers, the most frequent of words and of classes."""
    words: list[str] = values.tolist()
    if len(set(words)) <= 2 or all(len(word) == 1 for word in words):
        return max(words, key=words.count)
    return str(np.median(values.astype(float)))


def test_a_constant_for_each_part_that_suits_smape_is_no_success(root: Path, tmp_path: Path) -> None:
    """Of all constants, those that cost the least on the training patients: by part, and by part and wait."""
    found = case("parkinsons-disease", root)
    train = ratings(pl.read_csv(found.data.public / "train_clinical_data.csv", infer_schema=False)).with_columns(
        pl.col("rating").cast(float)
    )
    for pattern in (r"(updrs_\d)", r"(updrs_\d_plus_\d+)"):
        kind = pl.col("prediction_id").str.extract(pattern).alias("kind")
        best = {}
        for (name,), rows in train.with_columns(kind).group_by("kind"):
            truth = rows["rating"].to_numpy()
            best[name] = min(
                np.arange(0, 60, 0.25), key=lambda constant, truth=truth: smape_terms(truth, np.full(len(truth), constant)).mean()
            )
        said = found.guess.with_columns(kind.replace_strict(best, return_dtype=pl.Float64).alias("rating"))
        value = score(found.task, found.data, said, tmp_path).value
        assert not is_success(found.task.spec.metric, value, STARTER_OF_PARKINSONS), value
