"""Spaceship Titanic: the metric, Kaggle's table cut into train and test, and what made-up passengers have of Kaggle's."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.spaceship_titanic import prepare
from mlagentbench.tasks.spaceship_titanic.passengers import passengers
from tests.tasks.by_hand import folders, score

KAGGLE_HEADER = "PassengerId,HomePlanet,CryoSleep,Cabin,Destination,Age,VIP,RoomService,FoodCourt,ShoppingMall,Spa,VRDeck,Name,Transported"
KAGGLE_ROWS = (
    "{id},Europa,False,B/0/P,TRAPPIST-1e,39.0,False,0.0,0.0,0.0,0.0,0.0,Doria Bellarson,False",
    "{id},Earth,True,,55 Cancri e,,False,,0.0,0.0,0.0,0.0,,True",
    "{id},,,T/3/S,,16.0,,303.0,70.0,151.0,565.0,2.0,Holley Faomson,True",
)


@pytest.fixture
def answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv", infer_schema=False)


def test_the_score_is_the_share_of_right_answers(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    guesses = ["True" if row % 3 else "False" for row in range(len(answers))]
    found = score(task, data, answers.with_columns(Transported=pl.Series(guesses)), tmp_path)
    right = [guess == answer for guess, answer in zip(guesses, answers["Transported"], strict=True)]
    assert found.value == pytest.approx(sum(right) / len(right))
    metrics = pytest.importorskip("sklearn.metrics")
    assert found.value == pytest.approx(metrics.accuracy_score(answers["Transported"], guesses))


def test_what_pandas_writes_of_booleans_is_taken(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"PassengerId": answers["PassengerId"].to_list(), "Transported": (answers["Transported"] == "True").to_list()})
    assert score(task, data, {"submission.csv": table.to_csv(index=False)}, tmp_path).value == 1


def test_kaggles_table_is_cut_at_four_fifths_and_kept_to_the_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "kaggle"
    source.mkdir()
    ids = ["0001_01", "0002_01", "0003_01", "0003_02", "0005_01", "0006_01", "0006_02", "0009_01", "0010_01", "0010_02", "0012_01"]
    lines = [KAGGLE_HEADER, *(KAGGLE_ROWS[row % 3].format(id=each) for row, each in enumerate(ids))]
    (source / "train.csv").write_text("\n".join(lines) + "\n")
    (source / "test.csv").write_text(KAGGLE_HEADER.removesuffix(",Transported") + "\n")
    monkeypatch.setattr(prepare, "kaggle_competition", lambda slug, files: source if files == ["train.csv"] else None)
    made = []
    for name in ("once", "twice"):
        public, private = folders(tmp_path / name)
        prepare.full(public, private)
        made.append({str(path.relative_to(tmp_path / name)): path.read_text() for path in (tmp_path / name).rglob("*.csv")})
    assert made[0] == made[1], "preparing again must not split the split"
    assert sorted(made[0]) == ["private/answers.csv", "public/sample_submission.csv", "public/test.csv", "public/train.csv"]
    assert made[0]["public/train.csv"].splitlines() == lines[:9]
    assert made[0]["public/test.csv"].splitlines() == [line.rpartition(",")[0] for line in (lines[0], *lines[9:])]
    kept = [f"{line.split(',')[0]},{line.rpartition(',')[2]}" for line in lines[9:]]
    assert made[0]["private/answers.csv"].splitlines() == ["PassengerId,Transported", *kept]


def test_made_up_passengers_look_like_kaggles() -> None:
    made = passengers(3000, seed=4)
    assert ",".join(made.columns) == KAGGLE_HEADER
    assert made["PassengerId"].str.contains(r"^\d{4}_\d{2}$").all() and made["PassengerId"].is_unique().all()
    assert made["PassengerId"].is_sorted()
    gaps = {column: made[column].null_count() / len(made) for column in made.columns}
    assert gaps["PassengerId"] == gaps["Transported"] == 0
    assert all(0.01 < share < 0.04 for column, share in gaps.items() if column not in ("PassengerId", "Transported"))
    assert made["Cabin"].drop_nulls().str.contains(r"^[A-GT]/\d+/[PS]$").all()
    assert made["Age"].drop_nulls().str.contains(r"^\d+\.0$").all()
    assert set(made["CryoSleep"].drop_nulls()) == set(made["Transported"]) == {"True", "False"}
    in_group = made.with_columns(group=pl.col("PassengerId").str.head(4)).drop_nulls("Cabin")
    assert (in_group.group_by("group").agg(pl.col("Cabin").n_unique())["Cabin"] == 1).all()


def test_who_sleeps_spends_nothing() -> None:
    asleep = passengers(3000, seed=4).filter(pl.col("CryoSleep") == "True")
    for column in ("RoomService", "FoodCourt", "ShoppingMall", "Spa", "VRDeck"):
        assert set(asleep[column].drop_nulls()) == {"0.0"}
