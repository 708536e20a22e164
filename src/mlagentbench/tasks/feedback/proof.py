"""The task's proof: scores and scripts that must win, that must not, and tables that must be refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text
from mlagentbench.tasks.feedback.essays import SCORES

STARTER = Path(__file__).parent / "starter" / "train.py"
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


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the scores themselves, also with the rows or the columns in another order."""
    answers = _answers(data)
    return {
        "answers": _files(answers),
        "reversed": _files(answers.reverse()),
        "columns in another order": _files(answers.select(sorted(answers.columns))),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one score for all, each column's mean, and the scores of other essays."""
    answers = _answers(data)
    train = pl.read_csv(data.public / "train.csv", columns=list(SCORES))
    return {
        "mean": _files(answers.with_columns(pl.lit(train[name].mean()).alias(name) for name in SCORES)),
        "constant": _files(answers.with_columns(pl.lit(3.0).alias(name) for name in SCORES)),
        "zero": _files(answers.with_columns(pl.lit(0).alias(name) for name in SCORES)),
        "shuffled": _files(shuffled(answers, "text_id")),
        "reversed under the same ids": _files(answers.with_columns(answers["text_id"].reverse())),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that must be refused."""
    answers = _answers(data)
    return {
        **invalid_tables(table_text(answers), id_column="text_id", number_column="grammar"),
        "positions for ids": Invalid(_files(answers.drop("text_id").with_row_index("text_id")), "lacks"),
        "the texts, too": Invalid(_files(answers.with_columns(full_text=pl.lit("Dear reader,\n\nI"))), "'full_text'"),
        "no header": Invalid({"submission.csv": answers.write_csv(include_header=False)}, "header"),
    }


def solution() -> Files:
    """Return a script that must win: a ridge regression on words and letters."""
    return _filled(RIDGE, RIDGE_IMPORTS)


def ineffective() -> Files:
    """Return a script that must not win: it predicts the mean."""
    return _filled("    return DummyRegressor().fit(texts, scores)\n", "from sklearn.dummy import DummyRegressor\n" + IMPORT)


def _filled(fit: str, imports: str) -> Files:
    text = STARTER.read_text(encoding="utf-8")
    return {"train.py": text.replace(IMPORT, imports).replace(FIT, fit).replace(PREDICT, "    return model.predict(texts)\n")}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv", schema_overrides={"text_id": pl.String})


def _files(frame: pl.DataFrame) -> Files:
    return {"submission.csv": table_text(frame)}
