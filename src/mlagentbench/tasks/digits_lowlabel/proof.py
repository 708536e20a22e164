"""The task's proof: submissions and scripts that must win, that must not, and that must be refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text
from mlagentbench.tasks.digits_lowlabel.grade import TABLE

STARTER = Path(__file__).parent / "starter" / "train.py"

SHIFTED = """\
import numpy as np
import pandas as pd
from sklearn.svm import SVC

labelled = pd.read_csv("data/labelled.csv", index_col="id")
test = pd.read_csv("data/test.csv", index_col="id")
images = labelled.drop(columns="digit").to_numpy(float).reshape(-1, 8, 8)
shifts = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
more = np.concatenate([np.roll(images, shift, axis=(1, 2)) for shift in shifts]).reshape(-1, 64)
model = SVC(gamma=0.001, C=10).fit(more, np.tile(labelled["digit"], len(shifts)))
pd.DataFrame({"digit": model.predict(test.to_numpy(float))}, index=test.index).to_csv("submission.csv")
"""
"""A support vector machine on the labelled pictures, each also shifted by a pixel in four directions."""


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the digits themselves, also in another order."""
    right = _answers(data)
    return {"digits": {TABLE: table_text(right)}, "other order": {TABLE: table_text(right.reverse())}}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one digit for all, the digits of other pictures, and digits that are all wrong."""
    right = _answers(data)
    return {
        "constant": {TABLE: table_text(right.with_columns(pl.lit(3).alias("digit")))},
        "shuffled": {TABLE: table_text(shuffled(right, "id"))},
        "one too many": {TABLE: table_text(right.with_columns((pl.col("digit") + 1) % 10))},
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    right = _answers(data)
    return {
        **invalid_tables(table_text(right), id_column="id", number_column="digit"),
        "fractions": Invalid({TABLE: table_text(right.with_columns(pl.col("digit").cast(pl.Float64)))}, "digit is"),
        "ten": Invalid({TABLE: table_text(right.with_columns(pl.col("digit") + 1))}, "'10'"),
        "no header": Invalid({TABLE: right.write_csv(include_header=False)}, "has no column"),
    }


def solution() -> Files:
    """Return a script that must win."""
    return {"train.py": SHIFTED}


def ineffective() -> Files:
    """Return a script that must not win: it changes next to nothing."""
    starter = STARTER.read_text(encoding="utf-8")
    return {"train.py": starter.replace("max_iter=5000", "max_iter=6000")}
