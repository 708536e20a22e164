"""The task's proof: submissions and scripts that must win, that must not, and that must be refused."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.digits_lowlabel.grade import TABLE

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

DIGIT = pl.col("digit").cast(pl.Int64)

oracle = TABLE.oracle


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one digit for all, the digits of other pictures, and digits that are all wrong."""
    return {**TABLE.naive(data), "constant": TABLE.changed(data, digit=3), "one too many": TABLE.changed(data, digit=(DIGIT + 1) % 10)}


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    return {
        **TABLE.invalid(data),
        "fractions": TABLE.refused(data, "digit is", digit=DIGIT.cast(pl.Float64)),
        "ten": TABLE.refused(data, "'10'", digit=DIGIT + 1),
    }


def solution() -> Files:
    """Return a script that must win."""
    return {"train.py": SHIFTED}


def ineffective() -> Files:
    """Return a script that must not win: its regression is held back by a hundredth."""
    return edited_starter(__file__, {"max_iter=5000": "max_iter=5000, C=100"})
