"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.parkinsons_disease.grade import TABLE
from mlagentbench.tasks.parkinsons_disease.prepare import PARTS

COURSE = '''"""Predict the ratings of Parkinson's disease over time: a line over the months for those who come often, one for others.

Both are those with the least SMAPE+1.
"""

import itertools

import numpy as np
import pandas as pd

PARTS = ["updrs_1", "updrs_2", "updrs_3", "updrs_4"]
OFTEN = 2
STARTS, SLOPES = np.arange(0, 40, 1.0), np.arange(-0.05, 0.3, 0.025)


def smape(truth, prediction):
    return 100 * np.mean(np.abs(prediction - truth) / ((truth + prediction) / 2 + 1))


def comes_often(visits):
    """Whether each patient came to visits between whole years."""
    between = visits.drop_duplicates(["patient_id", "visit_month"])["visit_month"] % 12 != 0
    return between.groupby(visits["patient_id"]).sum() >= OFTEN


def line(month, start, slope):
    return np.maximum(0, start + slope * month)


def fitted(table, part):
    """The start and slope of the best line."""
    rated = table.dropna(subset=[part])
    month, rating = rated["visit_month"].to_numpy(), rated[part].to_numpy()
    return min(itertools.product(STARTS, SLOPES), key=lambda pair: smape(rating, line(month, *pair)))


clinical = pd.concat([pd.read_csv("train_clinical_data.csv"), pd.read_csv("supplemental_clinical_data.csv")])
submission = pd.read_csv("sample_submission.csv")
pattern = r"(?P<patient_id>\\d+)_(?P<visit_month>\\d+)_(?P<part>updrs_\\d)_plus_(?P<wait>\\d+)_months"
asked = submission["prediction_id"].str.extract(pattern).astype({"patient_id": int, "visit_month": int, "wait": int})
often, asked_often = clinical["patient_id"].map(comes_often(clinical)), asked["patient_id"].map(comes_often(pd.read_csv("test.csv")))
for part, group in itertools.product(PARTS, (False, True)):
    start, slope = fitted(clinical[often == group], part)
    print(f"{part}, {'often' if group else 'seldom'}: {start:g} and {slope:.3f} a month")
    rows = (asked["part"] == part) & (asked_often == group)
    submission.loc[rows, "rating"] = line(asked.loc[rows, "visit_month"] + asked.loc[rows, "wait"], start, slope)
submission.to_csv("submission.csv", index=False)
'''


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true ratings, also as integers."""
    return {**TABLE.oracle(data), "as integers": TABLE.changed(data, rating=pl.col("rating").cast(pl.Int64))}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one rating for all, one for each part, one for each part and month, the ratings of other visits, and negative ones."""
    train = pl.read_csv(data.public / "train_clinical_data.csv").select("visit_month", *PARTS)
    part = pl.col("prediction_id").str.extract(r"_(updrs_[1-4])_plus_")
    month = pl.col("prediction_id").str.extract(r"^\d+_(\d+)_").cast(pl.Int64) + pl.col("prediction_id").str.extract(r"(\d+)_months$").cast(
        pl.Int64
    )
    medians = train.unpivot(PARTS, index="visit_month").group_by("variable", "visit_month").agg(pl.col("value").median())
    by_month = {f"{row['variable']} {row['visit_month']}": row["value"] for row in medians.iter_rows(named=True)}
    return {
        **TABLE.naive(data),
        "constant": TABLE.changed(data, rating=5.0),
        "zero": TABLE.changed(data, rating=0),
        "median of each part": TABLE.changed(data, rating=part.replace_strict(train.median().row(0, named=True))),
        "median of each part and month": TABLE.changed(data, rating=pl.format("{} {}", part, month).replace_strict(by_month)),
        "negative": TABLE.changed(data, rating=-pl.col("rating") - 2),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    return {
        **TABLE.invalid(data),
        "other waits": TABLE.refused(data, "lacks", prediction_id=pl.col("prediction_id").str.replace("plus_24", "plus_36")),
        "the challenge's key": TABLE.refused(data, "'group_key'", group_key=0),
    }


def solution() -> Files:
    """Return a script that tells the ill by their visits, and optimizes the metric."""
    return {"train.py": COURSE}


def ineffective() -> Files:
    """Return the starter with a random forest of four times as many trees."""
    return edited_starter(__file__, {"n_estimators=50": "n_estimators=200"})
