"""The task's proof: predictions and scripts that must win, that must not, and tables that must be refused."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.diabetes.grade import TABLE

MODEL = "KNeighborsRegressor(n_neighbors=5)"
IMPORT = "from sklearn.neighbors import KNeighborsRegressor\n"


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the answers themselves, also as integers."""
    return {**TABLE.oracle(data), "as integers": TABLE.changed(data, progression=pl.col("progression").cast(pl.Int64))}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one answer for all, and the answers of other patients."""
    return {
        **TABLE.naive(data),
        "constant": TABLE.changed(data, progression=100.0),
        "mean": TABLE.changed(data, progression=pl.read_csv(data.public / "train.csv")["progression"].mean()),
        "zero": TABLE.changed(data, progression=0),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that must be refused."""
    best = TABLE.best(data)
    return {
        **TABLE.invalid(data),
        "numbered anew": TABLE.refused(data, "lacks", patient_id=pl.int_range(1, pl.len() + 1)),
        "scikit-learn's name": Invalid(TABLE.files(best.rename({"progression": "target"})), "'progression'"),
    }


def solution() -> Files:
    """Return a script that must win: a ridge regression on scaled columns."""
    validation = "from sklearn.model_selection import KFold, cross_val_score\n"
    imports = (
        "from sklearn.linear_model import RidgeCV\n"
        + validation
        + "from sklearn.pipeline import make_pipeline\n"
        + "from sklearn.preprocessing import StandardScaler\n"
    )
    edits = {
        IMPORT: "",
        validation: imports,
        "the mean of the most similar patients": "a ridge regression",
        MODEL: "make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 20)))",
    }
    return edited_starter(__file__, edits)


def ineffective() -> Files:
    """Return a script that must not win: the starter with four times as many neighbours."""
    return edited_starter(__file__, {"n_neighbors=5": "n_neighbors=20"})
