"""Predict the ratings of Parkinson's disease over time: a random forest that knows only the month."""

import os

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GroupKFold

SEED = int(os.environ.get("SEED", "0"))
PARTS = ["updrs_1", "updrs_2", "updrs_3", "updrs_4"]
WAITS = [0, 6, 12, 24]
FEATURES = ["visit_month", "wait"]


def smape(truth, prediction):
    """SMAPE+1 in percent, of ratings that are not negative."""
    return 100 * np.mean(np.abs(prediction - truth) / ((truth + prediction) / 2 + 1))


def examples(clinical, part):
    """One row for each visit and each wait after which the patient came again and was rated."""
    visits = clinical[["patient_id", "visit_month"]]
    tables = []
    for wait in WAITS:
        later = clinical[["patient_id", "visit_month", part]].dropna(subset=[part])
        later = later.assign(visit_month=later["visit_month"] - wait, wait=wait).rename(columns={part: "rating"})
        tables.append(visits.merge(later, on=["patient_id", "visit_month"]))
    return pd.concat(tables, ignore_index=True)


def fit(table):
    return RandomForestRegressor(n_estimators=50, random_state=SEED, n_jobs=2).fit(table[FEATURES], table["rating"])


def validate(table):
    """Cross-validated SMAPE; a patient is never on both sides."""
    scores = []
    for train, valid in GroupKFold(n_splits=4).split(table, groups=table["patient_id"]):
        prediction = fit(table.iloc[train]).predict(table.iloc[valid][FEATURES])
        scores.append(smape(table["rating"].iloc[valid], prediction))
    return np.mean(scores)


def main():
    clinical = pd.concat([pd.read_csv("train_clinical_data.csv"), pd.read_csv("supplemental_clinical_data.csv")])
    submission = pd.read_csv("sample_submission.csv")
    pattern = r"(?P<patient_id>\d+)_(?P<visit_month>\d+)_(?P<part>updrs_\d)_plus_(?P<wait>\d+)_months"
    asked = submission["prediction_id"].str.extract(pattern).astype({"visit_month": int, "wait": int})

    scores = []
    for part in PARTS:
        table = examples(clinical, part)
        scores.append(validate(table))
        print(f"{part}: validation SMAPE {scores[-1]:.2f} ({len(table)} examples)")
        rows = asked["part"] == part
        submission.loc[rows, "rating"] = fit(table).predict(asked.loc[rows, FEATURES]).round()
    print(f"validation SMAPE: {np.mean(scores):.2f}")
    submission.to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
