"""The progression of diabetes: the metric, and real patients of whom the tables do not tell which they are."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task
from mlagentbench.task.seeds import SEED
from mlagentbench.tasks.diabetes import prepare
from tests.tasks.by_hand import folders, mini, score

datasets = pytest.importorskip("sklearn.datasets")


@pytest.fixture(scope="module")
def data(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return mini(task, tmp_path_factory.mktemp("diabetes"), SEED)


def test_the_score_is_the_root_mean_squared_error(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    guesses = [100.5 + row for row in range(len(answers))]
    found = score(task, data, answers.with_columns(progression=pl.Series(guesses)), tmp_path)
    squares = [(guess - truth) ** 2 for guess, truth in zip(guesses, answers["progression"], strict=True)]
    assert found.value == pytest.approx(math.sqrt(math.fsum(squares) / len(squares)))
    metrics = pytest.importorskip("sklearn.metrics")
    assert found.value == pytest.approx(metrics.root_mean_squared_error(answers["progression"], guesses))


def test_numbers_whose_squares_overflow_are_the_submissions_fault(
    task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSubmission, match="progression is '1e\\+200'"):
        score(task, data, answers.with_columns(progression=pl.lit(1e200)), tmp_path)


def test_both_variants_are_the_real_patients(data: Prepared, tmp_path: Path) -> None:
    public, private = folders(tmp_path)
    prepare.full(public, private)
    for ours, theirs in ((data.public, public), (data.private, private)):
        assert {path.name: path.read_bytes() for path in ours.iterdir()} == {path.name: path.read_bytes() for path in theirs.iterdir()}
    train, test = pl.read_csv(public / "train.csv"), pl.read_csv(public / "test.csv")
    tested = test.join(pl.read_csv(private / "answers.csv"), on="patient_id")
    assert (len(train), len(test), len(tested)) == (292, 150, 150)
    assert "progression" not in test.columns
    real = datasets.load_diabetes(scaled=False)
    patients = sorted((*row, target) for row, target in zip(real.data.tolist(), real.target.tolist(), strict=True))
    assert sorted(pl.concat((train, tested)).drop("patient_id").rows()) == patients


def test_a_patients_number_does_not_tell_its_place_in_scikit_learns_table(data: Prepared) -> None:
    train = pl.read_csv(data.public / "train.csv")
    places = {tuple(row): place for place, row in enumerate(datasets.load_diabetes(scaled=False).data.tolist())}
    found = [places[row] for row in train.drop("patient_id", "progression").rows()]
    correlation = pl.DataFrame({"number": train["patient_id"], "place": found}).select(pl.corr("number", "place")).item()
    assert abs(correlation) < 0.15
