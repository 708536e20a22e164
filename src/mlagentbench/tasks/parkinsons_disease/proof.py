"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.parkinsons_disease.grade import TABLE

PROTEINS = '''"""Predict the ratings of Parkinson's disease over time: a ridge regression on the proteins of the visits so far."""

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

PARTS = ["updrs_1", "updrs_2", "updrs_3", "updrs_4"]
WAITS = [0, 6, 12, 24]
KEYS = ["patient_id", "visit_month"]


def smape(truth, prediction):
    return 100 * np.mean(np.abs(prediction - truth) / ((truth + prediction) / 2 + 1))


def levels(name):
    """The logarithm of each protein: the mean of the patient's samples up to a month."""
    table = pd.read_csv(name)
    table = np.log(table.pivot_table(index=KEYS, columns="UniProt", values="NPX"))
    patients = table.index.get_level_values("patient_id")
    return table.groupby(patients).cumsum() / table.notna().groupby(patients).cumsum()


def features(visits, samples):
    """Month, wait and proteins of the last sample before each visit."""
    order = visits[[*KEYS, "wait"]].reset_index(names="row").sort_values("visit_month")
    found = pd.merge_asof(order, samples.reset_index().sort_values("visit_month"), on="visit_month", by="patient_id")
    found = found.set_index("row").sort_index().drop(columns="patient_id")
    return found.assign(later=found["visit_month"] + found["wait"])


def examples(clinical, part):
    later = clinical[[*KEYS, part]].dropna(subset=[part])
    shifted = [later.assign(visit_month=later["visit_month"] - wait, wait=wait) for wait in WAITS]
    return pd.concat([clinical[KEYS].merge(each, on=KEYS) for each in shifted], ignore_index=True)


def predict(X, y, X_test):
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 4, 9)))
    known = X.mean()
    model.fit(X.fillna(known), np.log1p(y))
    return np.expm1(model.predict(X_test.reindex(columns=X.columns).fillna(known))).clip(0)


clinical = pd.read_csv("train_clinical_data.csv")
samples, test_samples = levels("train_proteins.csv"), levels("test_proteins.csv")
submission = pd.read_csv("sample_submission.csv")
pattern = r"(?P<patient_id>\\d+)_(?P<visit_month>\\d+)_(?P<part>updrs_\\d)_plus_(?P<wait>\\d+)_months"
asked = submission["prediction_id"].str.extract(pattern).astype({"patient_id": int, "visit_month": int, "wait": int})

scores = []
for part in PARTS:
    table = examples(clinical, part)
    X, y = features(table, samples), table[part]
    train, valid = next(GroupShuffleSplit(1, test_size=0.25, random_state=0).split(X, groups=table["patient_id"]))
    scores.append(smape(y.iloc[valid], predict(X.iloc[train], y.iloc[train], X.iloc[valid])))
    print(f"{part}: validation SMAPE {scores[-1]:.2f}")
    rows = asked["part"] == part
    submission.loc[rows, "rating"] = predict(X, y, features(asked[rows], test_samples))
print(f"validation SMAPE: {np.mean(scores):.2f}")
submission.to_csv("submission.csv", index=False)
'''


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true ratings, also as integers."""
    return {**TABLE.oracle(data), "as integers": TABLE.changed(data, rating=pl.col("rating").cast(pl.Int64))}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one rating for all, one for each part, the ratings of other visits, and negative ones."""
    train = pl.read_csv(data.public / "train_clinical_data.csv").select("updrs_1", "updrs_2", "updrs_3", "updrs_4")
    part = pl.col("prediction_id").str.extract(r"_(updrs_[1-4])_plus_")
    return {
        **TABLE.naive(data),
        "constant": TABLE.changed(data, rating=5.0),
        "zero": TABLE.changed(data, rating=0),
        "median of each part": TABLE.changed(data, rating=part.replace_strict(train.median().row(0, named=True))),
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
    """Return a script with ridge regression on the proteins."""
    return {"train.py": PROTEINS}


def ineffective() -> Files:
    """Return the starter with a larger random forest."""
    return edited_starter(__file__, {"n_estimators=50": "n_estimators=80"})
