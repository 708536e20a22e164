"""digits-lowlabel: what the parts hold, that nothing tells the test digits, and the error rate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.grading.grade import grade
from mlagentbench.task.catalogue import find_task
from mlagentbench.task.seeds import SEED

datasets = pytest.importorskip("sklearn.datasets")
linear_model = pytest.importorskip("sklearn.linear_model")

PARTS = ("labelled", "unlabelled", "test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mlagentbench.tasks.digits_lowlabel import prepare

    folder = tmp_path_factory.mktemp("digits")
    (folder / "public").mkdir()
    (folder / "private").mkdir()
    prepare.mini(folder / "public", folder / "private", seed=SEED)
    return folder


@pytest.fixture(scope="module")
def parts(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_csv(folder / "public" / "data" / f"{name}.csv") for name in PARTS}


def test_every_picture_is_in_one_part_and_ten_of_each_digit_are_labelled(parts: dict[str, pl.DataFrame]) -> None:
    assert [len(parts[name]) for name in PARTS] == [100, 797, 900]
    ids = pl.concat([part["id"] for part in parts.values()])
    assert sorted(ids) == list(range(1, 1798))
    assert parts["labelled"]["digit"].value_counts()["count"].to_list() == [10] * 10
    assert "digit" not in parts["unlabelled"].columns and "digit" not in parts["test"].columns


def test_pixels_and_digits_are_scikit_learns(folder: Path, parts: dict[str, pl.DataFrame]) -> None:
    pixels, digits = datasets.load_digits(return_X_y=True)
    known = {tuple(row): digit for row, digit in zip(pixels.astype(int).tolist(), digits.tolist(), strict=True)}
    answers = pl.read_csv(folder / "private" / "answers.csv")
    assert [known[row[1:]] for row in parts["test"].rows()] == answers["digit"].to_list()
    assert [known[row[2:]] for row in parts["labelled"].rows()] == parts["labelled"]["digit"].to_list()


def test_neither_the_order_nor_the_ids_tell_a_digit(folder: Path, parts: dict[str, pl.DataFrame]) -> None:
    pixels, digits = datasets.load_digits(return_X_y=True)
    known = {tuple(row): digit for row, digit in zip(pixels.astype(int).tolist(), digits.tolist(), strict=True)}
    for name, first in (("labelled", 2), ("unlabelled", 1), ("test", 1)):
        found = np.array([known[row[first:]] for row in parts[name].rows()])
        ids = parts[name]["id"].to_numpy()
        for numbers in (ids, np.arange(len(ids))):
            # In scikit-learn's table the digits count up, again and again.
            features = np.column_stack([numbers, np.eye(10)[numbers % 10], np.eye(10)[(numbers - 1) % 10]]) / len(ids)
            half = len(found) // 2
            model = linear_model.LogisticRegression(max_iter=2000).fit(features[:half], found[:half])
            assert model.score(features[half:], found[half:]) < 0.25


def test_the_error_rate_is_what_a_loop_counts(folder: Path, tmp_path: Path) -> None:
    answers = pl.read_csv(folder / "private" / "answers.csv")
    guesses = np.random.default_rng(0).integers(10, size=900)
    answers.with_columns(digit=guesses).reverse().write_csv(tmp_path / "submission.csv")
    found = asyncio.run(grade(find_task("digits-lowlabel"), tmp_path, variant="mini", private=folder / "private", sandbox="none")).score
    wrong = sum(guess != digit for guess, digit in zip(guesses, answers["digit"], strict=True))
    assert found is not None and found.value == pytest.approx(wrong / 900)


def test_the_starter_and_what_can_be_made_of_it_score_as_measured(folder: Path, parts: dict[str, pl.DataFrame]) -> None:
    svm = pytest.importorskip("sklearn.svm")
    answers = pl.read_csv(folder / "private" / "answers.csv")["digit"].to_numpy()
    pixels, digits = parts["labelled"].drop("id", "digit").to_numpy(), parts["labelled"]["digit"].to_numpy()
    test = parts["test"].drop("id").to_numpy()

    def error(model: object, pixels: np.typing.NDArray[np.float64], digits: np.typing.NDArray[np.int64]) -> float:
        return float((model.fit(pixels, digits).predict(test) != answers).mean())  # type: ignore[attr-defined]

    starter = error(linear_model.LogisticRegression(max_iter=5000), pixels, digits)
    assert starter == pytest.approx(0.0967, abs=0.003)
    plain = error(svm.SVC(gamma=0.001, C=10), pixels, digits)
    assert plain > 0.9 * starter  # another model alone is no success
