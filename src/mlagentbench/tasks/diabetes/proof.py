"""The task's proof: predictions and scripts that must win, that must not, and tables that must be refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text

STARTER = Path(__file__).parent / "starter" / "train.py"
MODEL = "KNeighborsRegressor(n_neighbors=5)"
IMPORT = "from sklearn.neighbors import KNeighborsRegressor\n"


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the answers themselves, in two orders, and as integers."""
    answers = _answers(data)
    return {
        "answers": _files(answers),
        "reversed": _files(answers.reverse()),
        "as integers": _files(answers.with_columns(pl.col("progression").cast(pl.Int64))),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one answer for all, and the answers of other patients."""
    answers = _answers(data)
    mean = pl.read_csv(data.public / "train.csv")["progression"].mean()
    return {
        "constant": _files(answers.with_columns(progression=pl.lit(100.0))),
        "mean": _files(answers.with_columns(progression=pl.lit(mean))),
        "zero": _files(answers.with_columns(progression=pl.lit(0))),
        "shuffled": _files(shuffled(answers, "patient_id")),
        "reversed under the same ids": _files(answers.with_columns(answers["patient_id"].reverse())),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that must be refused."""
    answers = _answers(data)
    from_one = answers.with_columns(pl.Series("patient_id", range(1, len(answers) + 1)))
    return {
        **invalid_tables(table_text(answers), id_column="patient_id", number_column="progression"),
        "numbered anew": Invalid(_files(from_one), "lacks"),
        "scikit-learn's name": Invalid(_files(answers.rename({"progression": "target"})), "'progression'"),
        "no header": Invalid({"submission.csv": answers.write_csv(include_header=False)}, "header"),
    }


def solution() -> Files:
    """Return a script that must win: a ridge regression on scaled columns."""
    imports = (
        "from sklearn.linear_model import RidgeCV\n"
        "from sklearn.model_selection import KFold, cross_val_score\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n"
    )
    text = STARTER.read_text(encoding="utf-8").replace(IMPORT, "")
    text = text.replace("from sklearn.model_selection import KFold, cross_val_score\n", imports)
    text = text.replace("the mean of the most similar patients", "a ridge regression")
    return {"train.py": text.replace(MODEL, "make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 20)))")}


def ineffective() -> Files:
    """Return a script that must not win: the starter with one more neighbour."""
    return {"train.py": STARTER.read_text(encoding="utf-8").replace("n_neighbors=5", "n_neighbors=6")}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")


def _files(frame: pl.DataFrame) -> Files:
    return {"submission.csv": table_text(frame)}
