"""The task's proof: scores and scripts that must win, that must not, and tables that must be refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.feedback.grade import SCORES, TABLE

FIT = '    raise NotImplementedError("the model is still missing: define it in fit, train it, and return it")\n'
PREDICT = '    raise NotImplementedError("the prediction is still missing")\n'
IMPORT = "from sklearn.model_selection import train_test_split\n"
RIDGE = """    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True, token_pattern=r"\\w+|[.,]"),
        TfidfVectorizer(analyzer="char", lowercase=False, ngram_range=(1, 3), min_df=5, max_features=5000, sublinear_tf=True),
    )
    return make_pipeline(features, Ridge(alpha=2.0, solver="sparse_cg")).fit(texts, scores)
"""
RIDGE_IMPORTS = """from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline, make_union
"""

WORDS = pl.col("full_text").str.count_matches(r"\w+").log()
"""The logarithm of an essay's number of words."""

oracle = TABLE.oracle


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one score for all, each column's mean, a line over the essays' lengths, and the scores of other essays."""
    train, test = (pl.read_csv(data.public / f"{part}.csv").with_columns(words=WORDS) for part in ("train", "test"))
    words = dict(zip(test["text_id"], test["words"], strict=True))
    lines = {name: np.polyfit(train["words"], train[name], 1) for name in SCORES}
    length = pl.col("text_id").replace_strict(words, return_dtype=pl.Float64)
    return {
        **TABLE.naive(data),
        "mean": TABLE.changed(data, **{name: train[name].mean() for name in SCORES}),
        "length": TABLE.changed(data, **{name: slope * length + start for name, (slope, start) in lines.items()}),
        "constant": TABLE.changed(data, **dict.fromkeys(SCORES, 3.0)),
        "zero": TABLE.changed(data, **dict.fromkeys(SCORES, 0)),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that must be refused."""
    return {
        **TABLE.invalid(data),
        "positions for ids": TABLE.refused(data, "lacks", text_id=pl.int_range(pl.len())),
        "the texts, too": TABLE.refused(data, "'full_text'", full_text="Dear reader,\n\nI"),
    }


def solution() -> Files:
    """Return a script that must win: a ridge regression on words and letters."""
    return _filled(RIDGE, RIDGE_IMPORTS)


def ineffective() -> Files:
    """Return a script that must not win: it predicts the mean."""
    return _filled("    return DummyRegressor().fit(texts, scores)\n", "from sklearn.dummy import DummyRegressor\n" + IMPORT)


def _filled(fit: str, imports: str) -> Files:
    return edited_starter(__file__, {IMPORT: imports, FIT: fit, PREDICT: "    return model.predict(texts)\n"})
