"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text

STARTER = Path(__file__).parent / "starter" / "train.py"
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
    """Return the true ratings, in two row orders and as integers."""
    answers = _answers(data)
    return {
        "answers": _files(answers),
        "reversed": _files(answers.reverse()),
        "as integers": _files(answers.with_columns(pl.col("rating").cast(pl.Int64))),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one rating for all, one for each part, the ratings of other visits, and negative ones."""
    answers = _answers(data)
    part = pl.col("prediction_id").str.extract(r"_(updrs_[1-4])_plus_")
    medians = _train_ratings(data).median().transpose(include_header=True, header_name="part", column_names=["median"])
    by_part = answers.join(medians, left_on=part, right_on="part", how="left", maintain_order="left")
    return {
        "constant": _files(answers.with_columns(rating=pl.lit(5.0))),
        "zero": _files(answers.with_columns(rating=pl.lit(0))),
        "median of each part": _files(by_part.select("prediction_id", pl.col("median").alias("rating"))),
        "shuffled": _files(shuffled(answers, "prediction_id")),
        "reversed under the same ids": _files(answers.with_columns(answers["prediction_id"].reverse())),
        "negative": _files(answers.with_columns(rating=-pl.col("rating") - 2)),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    answers = _answers(data)
    every_wait = pl.col("prediction_id").str.replace("plus_24", "plus_36")
    return {
        **invalid_tables(table_text(answers), id_column="prediction_id", number_column="rating"),
        "other waits": Invalid(_files(answers.with_columns(prediction_id=every_wait)), "lacks"),
        "the challenge's key": Invalid(_files(answers.with_columns(group_key=pl.lit(0))), "'group_key'"),
        "no header": Invalid({"submission.csv": answers.write_csv(include_header=False)}, "header"),
    }


def solution() -> Files:
    """Return a script with ridge regression on the proteins."""
    return {"train.py": PROTEINS}


def ineffective() -> Files:
    """Return the starter with a larger random forest."""
    return {"train.py": STARTER.read_text(encoding="utf-8").replace("n_estimators=50", "n_estimators=80")}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")


def _train_ratings(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.public / "train_clinical_data.csv").select("updrs_1", "updrs_2", "updrs_3", "updrs_4")


def _files(frame: pl.DataFrame) -> Files:
    return {"submission.csv": table_text(frame)}
