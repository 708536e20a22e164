"""House prices: the metric, Kaggle's table cut into train and test, and what made-up houses have of real ones."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.house_price import prepare
from mlagentbench.tasks.house_price.houses import COLUMNS, houses
from tests.tasks.by_hand import folders, score

KAGGLE_HEADER = (
    "Id,MSSubClass,MSZoning,LotFrontage,LotArea,Street,Alley,LotShape,LandContour,Utilities,LotConfig,LandSlope,Neighborhood,Condition1,"
    "Condition2,BldgType,HouseStyle,OverallQual,OverallCond,YearBuilt,YearRemodAdd,RoofStyle,RoofMatl,Exterior1st,Exterior2nd,MasVnrType,"
    "MasVnrArea,ExterQual,ExterCond,Foundation,BsmtQual,BsmtCond,BsmtExposure,BsmtFinType1,BsmtFinSF1,BsmtFinType2,BsmtFinSF2,BsmtUnfSF,"
    "TotalBsmtSF,Heating,HeatingQC,CentralAir,Electrical,1stFlrSF,2ndFlrSF,LowQualFinSF,GrLivArea,BsmtFullBath,BsmtHalfBath,FullBath,"
    "HalfBath,BedroomAbvGr,KitchenAbvGr,KitchenQual,TotRmsAbvGrd,Functional,Fireplaces,FireplaceQu,GarageType,GarageYrBlt,GarageFinish,"
    "GarageCars,GarageArea,GarageQual,GarageCond,PavedDrive,WoodDeckSF,OpenPorchSF,EnclosedPorch,3SsnPorch,ScreenPorch,PoolArea,PoolQC,"
    "Fence,MiscFeature,MiscVal,MoSold,YrSold,SaleType,SaleCondition,SalePrice"
)
KAGGLE_ROW = (
    "{id},30,C (all),NA,6300,Pave,NA,Reg,Lvl,AllPub,Inside,Gtl,IDOTRR,Feedr,Norm,1Fam,1Story,5,6,1925,1950,Gable,CompShg,Wd Sdng,Wd Shng,"
    "None,0,TA,TA,BrkTil,TA,TA,No,Unf,0,Unf,0,780,780,GasA,TA,N,FuseA,780,0,0,780,0,0,1,0,2,1,TA,4,Typ,0,NA,NA,NA,NA,0,0,NA,NA,N,0,0,98,0,0,"
    "0,NA,NA,NA,0,5,2009,WD,Normal,{price}"
)


def test_the_score_is_the_mean_absolute_error(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    guesses = [150_000 + 137.25 * row for row in range(len(answers))]
    found = score(task, data, answers.with_columns(SalePrice=pl.Series(guesses)), tmp_path)
    assert found.value == pytest.approx(sum(abs(g - p) for g, p in zip(guesses, answers["SalePrice"], strict=True)) / len(answers))
    metrics = pytest.importorskip("sklearn.metrics")
    assert found.value == pytest.approx(metrics.mean_absolute_error(answers["SalePrice"], guesses))


def test_prices_too_large_to_be_summed_are_the_submissions_fault(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(InvalidSubmission, match="SalePrice is '1e\\+308'"):
        score(task, data, answers.with_columns(SalePrice=pl.lit(1e308)), tmp_path)


def kaggle(folder: Path, rows: int) -> Path:
    """What Kaggle sends: more files than are wanted."""
    folder.mkdir()
    lines = [KAGGLE_HEADER, *(KAGGLE_ROW.format(id=row + 1, price=100_000 + row) for row in range(rows))]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    (folder / "test.csv").write_text("Id\n1461\n")
    (folder / "sample_submission.csv").write_text("Id,SalePrice\n1461,1\n")
    (folder / "data_description.txt").write_text("MSSubClass: ...\n")
    return folder


def test_kaggles_table_is_cut_at_four_fifths_and_kept_to_the_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = kaggle(tmp_path / "kaggle", 12)
    asked: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(prepare, "kaggle_competition", lambda slug, files: asked.append((slug, files)) or source)
    made = []
    for name in ("once", "twice"):
        public, private = folders(tmp_path / name)
        prepare.full(public, private)
        made.append({path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.csv")})
    assert asked[0] == ("home-data-for-ml-course", ["train.csv"])
    assert made[0] == made[1], "preparing again must not split the split"
    texts = {str(path): content.decode() for path, content in made[0].items()}
    assert sorted(texts) == ["private/answers.csv", "public/sample_submission.csv", "public/test.csv", "public/train.csv"]
    lines = (source / "train.csv").read_text().splitlines(keepends=True)
    assert texts["public/train.csv"] == "".join(lines[:10])
    assert texts["public/test.csv"] == "".join(line.rpartition(",")[0] + "\n" for line in (lines[0], *lines[10:]))
    assert texts["private/answers.csv"] == "Id,SalePrice\n10,100009\n11,100010\n12,100011\n"
    assert texts["public/sample_submission.csv"].startswith("Id,SalePrice\n10,100004")


def test_made_up_houses_have_the_columns_of_real_ones() -> None:
    assert ",".join(COLUMNS) == KAGGLE_HEADER
    assert houses(50, seed=3).columns == list(COLUMNS)


def test_made_up_houses_hang_together() -> None:
    made = houses(2000, seed=5)
    for column in ("GarageType", "GarageYrBlt", "GarageFinish", "GarageQual", "GarageCond"):
        assert ((made[column] == "NA") == (made["GarageCars"] == 0)).all()
    for column in ("BsmtQual", "BsmtCond", "BsmtExposure", "BsmtFinType1"):
        assert ((made[column] == "NA") == (made["TotalBsmtSF"] == 0)).all()
    assert ((made["FireplaceQu"] == "NA") == (made["Fireplaces"] == 0)).all()
    assert (made["BsmtFinSF1"] + made["BsmtFinSF2"] + made["BsmtUnfSF"] == made["TotalBsmtSF"]).all()
    assert (made["1stFlrSF"] + made["2ndFlrSF"] == made["GrLivArea"]).all()
    assert (made["YearRemodAdd"] >= made["YearBuilt"]).all()
    assert {"None", "NA"} <= set(made["MasVnrType"])


def test_every_column_is_described(task: Task) -> None:
    words = set((task.starter / "data_description.txt").read_text().replace(",", " ").replace(";", " ").split())
    assert not set(COLUMNS) - words
