"""The course of Parkinson's disease: the metric, which ratings are asked for, and that a patient is on one side only."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.parkinsons_disease import prepare
from mlagentbench.tasks.parkinsons_disease.grade import smape_terms
from mlagentbench.tasks.parkinsons_disease.visits import PATIENTS, tables
from tests.tasks.by_hand import folders, score

CLINICAL_HEADER = "visit_id,patient_id,visit_month,updrs_1,updrs_2,updrs_3,updrs_4,upd23b_clinical_state_on_medication"


def smape(truth: float, prediction: float) -> float:
    """As the challenge words it, of one pair."""
    a, f = truth + 1, prediction + 1
    if a == 0 and f == 0:
        return 0.0
    return 100 * abs(f - a) / ((abs(a) + abs(f)) / 2)


def test_the_score_is_smape_plus_1(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    guesses = np.random.default_rng(0).gamma(2, 4, len(answers)) * (np.arange(len(answers)) % 5 > 0)
    found = score(task, data, answers.with_columns(rating=pl.Series(guesses)), tmp_path)
    terms = [smape(truth, guess) for truth, guess in zip(answers["rating"], guesses.tolist(), strict=True)]
    assert found.value == pytest.approx(math.fsum(terms) / len(terms))
    third = [term for term, name in zip(terms, answers["prediction_id"], strict=True) if "_updrs_3_" in name]
    assert found.details["updrs_3"] == pytest.approx(math.fsum(third) / len(third))


@pytest.mark.parametrize(
    ("truth", "prediction", "term"), [(0, 0, 0), (-1, -1, 0), (0, 1, 200 / 3), (3, 0, 120), (0, -1, 200), (5, -9, 200), (0, 1e12, 200)]
)
def test_the_metrics_corners(truth: float, prediction: float, term: float) -> None:
    assert smape_terms(np.array([truth]), np.array([prediction]))[0] == pytest.approx(term) == pytest.approx(smape(truth, prediction))


def test_nobody_gains_by_negative_ratings(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    assert score(task, data, answers.with_columns(rating=pl.lit(-2.0)), tmp_path).value == pytest.approx(200)


def test_every_rating_that_was_made_is_asked_for_and_no_other() -> None:
    """Counted again by hand. Neither a missing medication nor another part's missing rating drops one."""
    clinical = tables(seed=3).clinical
    visits = {(row["patient_id"], int(row["visit_month"])): row for row in clinical.iter_rows(named=True)}
    expected = {}
    for patient, month in visits:
        for part in (1, 2, 3, 4):
            for wait in (0, 6, 12, 24):
                later = visits.get((patient, month + wait))
                if later is not None and later[f"updrs_{part}"] is not None:
                    expected[f"{patient}_{month}_updrs_{part}_plus_{wait}_months"] = later[f"updrs_{part}"]
    found = prepare.ratings(clinical)
    assert dict(found.iter_rows()) == expected
    assert len(found) == len(expected)


def test_a_patient_is_on_one_side_only(data: Prepared, answers: pl.DataFrame) -> None:
    patients = {
        name: set(pl.read_csv(data.public / f"{name}.csv")["patient_id"])
        for name in ("train_clinical_data", "train_proteins", "train_peptides", "supplemental_clinical_data", "test", "test_proteins")
    }
    assert len(patients["test"]) == 24 and len(patients["train_clinical_data"]) == PATIENTS - 24
    assert not patients["test"] & (patients["train_clinical_data"] | patients["train_proteins"] | patients["train_peptides"])
    assert not patients["test"] & patients["supplemental_clinical_data"]
    assert patients["test_proteins"] == patients["test"]
    assert {int(name.split("_")[0]) for name in answers["prediction_id"]} == patients["test"]


def test_no_file_of_the_test_holds_a_rating(data: Prepared) -> None:
    headers = {path.name: path.read_text().partition("\n")[0] for path in data.public.glob("*.csv")}
    assert headers["test.csv"] == "visit_id,visit_month,patient_id,updrs_test,row_id"
    assert headers["test_proteins.csv"] == headers["train_proteins.csv"] == "visit_id,visit_month,patient_id,UniProt,NPX"
    assert headers["test_peptides.csv"] == "visit_id,visit_month,patient_id,UniProt,Peptide,PeptideAbundance"
    assert headers["train_clinical_data.csv"] == headers["supplemental_clinical_data.csv"] == CLINICAL_HEADER
    assert set(pl.read_csv(data.public / "sample_submission.csv")["rating"]) == {0.0}


def test_dropping_all_rows_with_a_gap_would_drop_most_of_them(data: Prepared) -> None:
    """As in the challenge: the trap is in the mini data, too."""
    clinical = pl.read_csv(data.public / "train_clinical_data.csv")
    assert 0.55 < 1 - len(clinical.drop_nulls()) / len(clinical) < 0.75
    assert clinical["upd23b_clinical_state_on_medication"].null_count() / len(clinical) == pytest.approx(0.5, abs=0.05)


def challenge(folder: Path) -> Path:
    """What Kaggle sends: more files than are wanted, among them an example of the test."""
    (folder / "example_test_files").mkdir(parents=True)
    (folder / "amp_pd_peptide").mkdir()
    (folder / "public_timeseries_testing_util.py").write_text("class MockApi: ...\n")
    (folder / "example_test_files" / "test.csv").write_text("visit_id,visit_month,patient_id,updrs_test,row_id,group_key\n")
    states = ("On", "", "Off", "")

    def rows(patients: range) -> list[str]:
        return [f"{p}_{m},{p},{m},{p % 9}.0,{m}.0,{'' if m == 6 else 7.0},,{states[p % 4]}" for p in patients for m in (0, 3, 6, 12, 24)]

    def table(name: str, header: str, lines: list[str]) -> None:
        (folder / name).write_text("\n".join([header, *lines]) + "\n")

    table("train_clinical_data.csv", CLINICAL_HEADER, rows(range(55, 95)))
    table("supplemental_clinical_data.csv", CLINICAL_HEADER, rows(range(35000, 35010)))
    samples = [(p, m) for p in range(55, 95) for m in (0, 12)]
    table(
        "train_proteins.csv",
        "visit_id,visit_month,patient_id,UniProt,NPX",
        [f"{p}_{m},{m},{p},{protein},{p}.125" for p, m in samples for protein in ("O00391", "O00533")],
    )
    table(
        "train_peptides.csv",
        "visit_id,visit_month,patient_id,UniProt,Peptide,PeptideAbundance",
        [f"{p}_{m},{m},{p},O00533,KPQSAVYC(UniMod_4)EAEGK,{p}5.75" for p, m in samples],
    )
    return folder


def test_the_challenges_tables_are_parted_by_patients_and_kept_to_the_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = challenge(tmp_path / "kaggle")
    monkeypatch.setattr(prepare, "kaggle_competition", lambda slug, files: source)
    made = []
    for name in ("once", "twice"):
        public, private = folders(tmp_path / name)
        prepare.full(public, private)
        made.append({path.name: path.read_text() for path in (tmp_path / name).rglob("*") if path.is_file()})
    assert made[0] == made[1], "preparing again must not split the split"
    assert sorted(made[0]) == sorted(
        [
            *(
                "answers.csv",
                "sample_submission.csv",
                "supplemental_clinical_data.csv",
                "test.csv",
                "test_peptides.csv",
                "test_proteins.csv",
            ),
            *("train_clinical_data.csv", "train_peptides.csv", "train_proteins.csv"),
        ]
    )
    assert made[0]["supplemental_clinical_data.csv"] == (source / "supplemental_clinical_data.csv").read_text(), "it has no test patients"
    for kind in ("proteins", "peptides"):
        lines = (source / f"train_{kind}.csv").read_text().splitlines()
        parted = made[0][f"train_{kind}.csv"].splitlines() + made[0][f"test_{kind}.csv"].splitlines()[1:]
        assert sorted(parted) == sorted(lines)
    asked = {row["prediction_id"]: row["rating"] for row in csv.DictReader(made[0]["answers.csv"].splitlines())}
    patients = {name.split("_")[0] for name in asked}
    assert len(patients) == 24
    patient = min(patients)
    assert asked[f"{patient}_0_updrs_2_plus_24_months"] == "24.0"
    assert f"{patient}_0_updrs_3_plus_6_months" not in asked, "no rating was made"
    assert f"{patient}_0_updrs_4_plus_0_months" not in asked, "no rating was made"
    assert f"{patient}_3_updrs_1_plus_6_months" not in asked, "no visit in month 9"
    # Per patient: 5 visits at once; 0 -> 6, 6 -> 12; 0 -> 12, 12 -> 24; 0 -> 24. Part 3 lacks month 6, part 4 all.
    assert len(asked) == 24 * (10 + 10 + 8)
