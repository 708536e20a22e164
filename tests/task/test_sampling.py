"""A score's sampling error over the test rows: right for means and for functions of them, paired, and quick."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from mlagentbench import Column, Number, Score, SubmissionFiles, TableTask, row_score
from mlagentbench.records import Baseline
from mlagentbench.task.success import gain_error

Rows = NDArray[np.float64]


def f1(means: Rows) -> Rows:
    return np.asarray(2 * means[..., 0] / (means[..., 0] + means[..., 1]))


SCORES: Mapping[str, tuple[Callable[[np.random.Generator], Rows], Callable[[Rows], Score]]] = {
    "mean": (lambda random: random.exponential(1.0, 300), row_score),
    "root mean squared error": (lambda random: random.normal(0, 2, 300) ** 2, lambda rows: row_score(rows, np.sqrt)),
    "F1": (lambda random: random.random((300, 2)) < (0.6, 0.3), lambda rows: row_score(rows, f1)),
    "more rows than are drawn one by one": (lambda random: random.exponential(1.0, 5000), lambda rows: row_score(rows, np.sqrt)),
}


@pytest.mark.parametrize("name", SCORES)
def test_the_standard_error_is_how_far_scores_of_other_test_sets_scatter(name: str) -> None:
    rows_of, score_of = SCORES[name]
    random = np.random.default_rng(5)
    found = [score_of(rows_of(random)) for _ in range(400)]
    assert statistics.fmean(score.standard_error or 0 for score in found) == pytest.approx(
        statistics.stdev(score.value for score in found), rel=0.12
    )


def test_a_mean_has_the_textbook_error_and_the_samples_agree_with_it() -> None:
    right = np.random.default_rng(1).random(1000) < 0.7
    score = row_score(right, details={"rows": 1000})
    assert score.value == right.mean() and score.details == {"rows": 1000}
    assert score.standard_error == pytest.approx(right.std(ddof=1) / math.sqrt(1000))
    assert statistics.stdev(score.resampled) == pytest.approx(score.standard_error or 0, rel=0.1)


def test_a_difference_on_the_same_rows_is_known_better_than_either_score() -> None:
    random = np.random.default_rng(2)
    hard = random.exponential(1.0, 2500)
    ours, theirs = (row_score(hard + random.normal(0, 0.1, 2500)) for _ in range(2))
    baseline = Baseline(value=theirs.value, source="measured", resampled=theirs.resampled)
    error = gain_error(ours, baseline)
    assert error == pytest.approx(0.1 * math.sqrt(2 / 2500), rel=0.15), "the hard rows are the same"
    unpaired = gain_error(ours, Baseline(value=theirs.value, source="paper"))
    assert unpaired == pytest.approx(math.sqrt(2) * (ours.standard_error or 0)) and unpaired > 4 * error
    assert gain_error(theirs, baseline) == 0.0, "the starter itself"
    assert gain_error(Score(value=1.0), baseline) is None, "a time has no rows"


def test_what_has_no_error_has_none() -> None:
    assert row_score([1.0]).standard_error is None, "one row says nothing of others"
    rare = np.zeros((50, 2))
    rare[0] = 1
    found = row_score(rare, lambda means: means[..., 0] / means[..., 1])
    assert (found.value, found.standard_error, found.resampled) == (1.0, None, ()), "a third of the samples lack what it divides by"


def test_a_metric_of_whole_tables_gets_its_error_too(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    truth = random.normal(0, 1, 400)
    pl.DataFrame({"id": range(400), "y": truth}).write_csv(tmp_path / "answers.csv")
    (tmp_path / "left").mkdir()
    pl.DataFrame({"id": range(400), "y": truth + random.normal(0, 1, 400)}).write_csv(tmp_path / "left" / "submission.csv")

    def plain(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
        return Score(value=float(np.sqrt(np.mean((found["y"] - answers["y"].to_numpy()) ** 2))))

    def by_rows(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
        return row_score((found["y"] - answers["y"].to_numpy()) ** 2, np.sqrt)

    class Context:
        submission = SubmissionFiles(tmp_path / "left")
        private = tmp_path

    ours, theirs = (TableTask("id", {"y": Number(-99, 99)}, metric).grade(Context()) for metric in (plain, by_rows))
    assert ours.value == theirs.value
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=1e-6), "the same samples"

    def once(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
        if answers["id"].is_duplicated().any():
            raise ValueError("an id repeats")
        return plain(answers, found)

    refused = TableTask("id", {"y": Number(-99, 99)}, once).grade(Context())
    assert refused.value == ours.value and refused.standard_error is None


def test_it_takes_next_to_no_time_however_many_rows_there_are() -> None:
    rows = np.random.default_rng(4).random((1_000_000, 3))
    started = time.process_time()
    assert row_score(rows, lambda means: means.mean(axis=-1)).standard_error
    assert time.process_time() - started < 2
