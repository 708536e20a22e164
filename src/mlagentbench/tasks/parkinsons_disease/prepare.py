"""Prepare the data of parkinsons-disease: the patients of the AMP-PD challenge, or fewer synthetic ones.

Kaggle does not publish its test set. Here the test set is all visits of some patients of the training tables; the other patients are the
training set. The paper took two patients, and the score varies by 30% with the choice of these two; with the 24 taken here, by 6%.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl

from mlagentbench.data.fetch import kaggle_competition
from mlagentbench.tasks.parkinsons_disease.visits import Tables, tables

COMPETITION = "amp-parkinsons-disease-progression-prediction"
CLINICAL, PROTEINS, PEPTIDES = "train_clinical_data.csv", "train_proteins.csv", "train_peptides.csv"
SUPPLEMENT = "supplemental_clinical_data.csv"
TEST_PATIENTS = 24
PARTS = tuple(f"updrs_{part}" for part in (1, 2, 3, 4))
WAITS = (0, 6, 12, 24)
"""Months from a visit to the ratings that are predicted."""


def mini(public: Path, private: Path, seed: int) -> None:
    """Write synthetic patients, in the same tables."""
    split(tables(seed), public, private)


def full(public: Path, private: Path) -> None:
    """Write Kaggle's patients, each field with its original text."""
    names = [CLINICAL, PROTEINS, PEPTIDES, SUPPLEMENT]
    folder = kaggle_competition(COMPETITION, names)
    split(Tables(*(pl.read_csv(folder / name, infer_schema=False) for name in names)), public, private)


def split(data: Tables, public: Path, private: Path) -> None:
    """Write the training patients' tables, the test patients' visits and samples without ratings, and their ratings as `answers.csv`."""
    chosen = pl.col("patient_id").is_in(list(test_patients(data.clinical["patient_id"])))
    data.clinical.filter(~chosen).write_csv(public / CLINICAL)
    data.supplement.filter(~chosen).write_csv(public / SUPPLEMENT)
    for table, name in ((data.proteins, PROTEINS), (data.peptides, PEPTIDES)):
        table.filter(~chosen).write_csv(public / name)
        table.filter(chosen).write_csv(public / name.replace("train", "test"))
    test = data.clinical.filter(chosen)
    visits = test.select("visit_id", "visit_month", "patient_id").join(pl.DataFrame({"updrs_test": PARTS}), how="cross")
    visits.with_columns(row_id=pl.format("{}_{}", "visit_id", "updrs_test")).write_csv(public / "test.csv")
    answers = ratings(test)
    answers.write_csv(private / "answers.csv")
    answers.with_columns(rating=pl.lit(0.0)).write_csv(public / "sample_submission.csv")


def test_patients(patients: pl.Series) -> tuple[str, ...]:
    """Choose the test patients by a hash of their ids, so that they are always the same."""
    return tuple(sorted(patients.unique(), key=lambda patient: hashlib.sha256(str(patient).encode()).digest())[:TEST_PATIENTS])


def ratings(clinical: pl.DataFrame) -> pl.DataFrame:
    """Find the ratings to predict: for each visit, part and wait, the rating that many months later, where there is one.

    Returns:
        The columns `prediction_id` and `rating`, in the order of visits, parts and waits.
    """
    month = pl.col("visit_month").cast(pl.Int64)
    asked = (
        clinical.select("visit_id", "patient_id", visit_month=month)
        .join(pl.DataFrame({"part": PARTS}), how="cross")
        .join(pl.DataFrame({"wait": WAITS}), how="cross")
        .with_columns(later=pl.col("visit_month") + pl.col("wait"))
    )
    known = clinical.select("patient_id", *PARTS, later=month).unpivot(
        PARTS, index=["patient_id", "later"], variable_name="part", value_name="rating"
    )
    found = asked.join(known.drop_nulls("rating"), on=["patient_id", "later", "part"], how="inner", maintain_order="left")
    return found.select(pl.format("{}_{}_plus_{}_months", "visit_id", "part", "wait").alias("prediction_id"), "rating")
