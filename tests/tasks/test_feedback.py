"""Scores of essays: the metric, Kaggle's table parted without splitting an essay, and texts that show their scores."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.feedback import prepare
from mlagentbench.tasks.feedback.essays import SCORES, essays
from tests.tasks.by_hand import folders, score

KAGGLE_COLUMNS = ["text_id", "full_text", "cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]
KAGGLE_TEXTS = (
    'I think that "students" would benefit, from home.\n\nFirst, they can sleep\r\nlonger.',
    "Dear Generic_Name,\n\n\nSome people say it's better to work alone… naïve as it is",
    "\tno commas no quotes ",
)


@pytest.fixture
def answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv", schema_overrides={"text_id": pl.String})


def test_the_score_is_the_mean_of_the_columns_root_mean_squared_errors(
    task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path
) -> None:
    guesses = answers.with_columns((pl.int_range(pl.len()) % (4 + place) + 0.5 * place).alias(name) for place, name in enumerate(SCORES))
    found = score(task, data, guesses, tmp_path)
    errors = [math.sqrt(sum((a - b) ** 2 for a, b in zip(answers[name], guesses[name], strict=True)) / len(answers)) for name in SCORES]
    assert found.value == pytest.approx(sum(errors) / 6)
    assert [found.details[name] for name in SCORES] == pytest.approx(errors)
    metrics = pytest.importorskip("sklearn.metrics")
    columns = list(SCORES)
    assert found.value == pytest.approx(metrics.root_mean_squared_error(answers[columns].to_numpy(), guesses[columns].to_numpy()))


def kaggle(folder: Path, count: int) -> list[list[str]]:
    """What Kaggle sends; the rows of its training table."""
    folder.mkdir()
    rows = [[f"{7919 * n:012X}", KAGGLE_TEXTS[n % 3], *(f"{1 + (n * k) % 9 / 2}" for k in range(1, 7))] for n in range(count)]
    with (folder / "train.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([KAGGLE_COLUMNS, *rows])
    (folder / "test.csv").write_text("text_id,full_text\n0000C359D63E,when a person\n")
    (folder / "sample_submission.csv").write_text(",".join(["text_id", *SCORES]) + "\n")
    return rows


def test_kaggles_essays_are_parted_and_kept_to_the_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = kaggle(tmp_path / "kaggle", 200)
    monkeypatch.setattr(prepare, "kaggle_competition", lambda slug, files: tmp_path / "kaggle" if files == ["train.csv"] else None)
    made = []
    for name in ("once", "twice"):
        public, private = folders(tmp_path / name)
        prepare.full(public, private)
        made.append({path.name: path.read_bytes().decode() for path in (tmp_path / name).rglob("*") if path.is_file()})
    assert made[0] == made[1], "preparing again must not split the split"
    assert sorted(made[0]) == ["answers.csv", "sample_submission.csv", "test.csv", "train.csv"]
    tables = {name: list(csv.reader(io.StringIO(text, newline=""))) for name, text in made[0].items()}
    assert tables["train.csv"][0] == KAGGLE_COLUMNS
    test = [[*asked, *answer[1:]] for asked, answer in zip(tables["test.csv"][1:], tables["answers.csv"][1:], strict=True)]
    assert len(test) == 4, "2% of the essays"
    assert sorted(test + tables["train.csv"][1:]) == rows
    assert tables["test.csv"][0] == ["text_id", "full_text"]
    assert [row[0] for row in tables["sample_submission.csv"]] == [row[0] for row in tables["answers.csv"]]


def test_made_up_essays_have_the_columns_and_oddities_of_real_ones() -> None:
    made = essays(300, seed=2)
    assert made.columns == KAGGLE_COLUMNS
    assert made["text_id"].str.contains(r"^[0-9A-F]{12}$").all() and made["text_id"].is_unique().all()
    assert {value for name in SCORES for value in made[name]} == {str(1 + half / 2) for half in range(9)}
    assert made["full_text"].str.contains("\n\n", literal=True).any() and made["full_text"].str.contains("_NAME").any()


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("cohesion", "However,|Therefore,|In addition,"),
        ("vocabulary", "opportunity|perspective|adolescents"),
        ("phraseology", "in the long run|daily"),
    ],
)
def test_a_text_shows_its_scores(name: str, sign: str) -> None:
    made = essays(600, seed=2).with_columns(shown=pl.col("full_text").str.count_matches(sign), score=pl.col(name).cast(pl.Float64))
    correlation = made.select(pl.corr("shown", "score")).item()
    assert correlation > 0.2
