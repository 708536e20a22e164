"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text

STARTER = Path(__file__).parent / "starter" / "train.py"
STUB = '    raise NotImplementedError("the model is still missing: define it in fit, train it, and return it")\n'
BOOSTING = '''"""Predict house prices: gradient boosting on the logarithm of the price, with every column."""

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

train = pd.read_csv("train.csv", index_col="Id")
test = pd.read_csv("test.csv", index_col="Id")
prices = train.pop("SalePrice")
features = pd.get_dummies(pd.concat([train, test]))
features = features.fillna(features.median())

boosting = GradientBoostingRegressor(n_estimators=300, learning_rate=0.05, max_depth=3, subsample=0.7, max_features=0.3, random_state=0)
model = TransformedTargetRegressor(boosting, func=np.log, inverse_func=np.exp)
scores = cross_val_score(model, features.loc[train.index], prices, cv=3, scoring="neg_mean_absolute_error")
print(f"validation MAE: {-scores.mean():,.0f}")

model.fit(features.loc[train.index], prices)
predicted = model.predict(features.loc[test.index])
pd.DataFrame({"SalePrice": predicted}, index=test.index).to_csv("submission.csv")
'''


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the true prices: as they are, in reverse order as decimals, and with the columns swapped."""
    answers = _answers(data)
    return {
        "answers": _files(answers),
        "reversed, as decimals": _files(answers.reverse().with_columns(pl.col("SalePrice").cast(pl.Float64))),
        "columns swapped": _files(answers.select("SalePrice", "Id")),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one price for all houses, and the prices of other houses."""
    answers, prices = _answers(data), _train_prices(data)
    ids = answers["Id"].reverse()
    return {
        "constant": _files(answers.with_columns(SalePrice=pl.lit(prices.mean()))),
        "median": _files(answers.with_columns(SalePrice=pl.lit(prices.median()))),
        "zero": _files(answers.with_columns(SalePrice=pl.lit(0))),
        "shuffled": _files(shuffled(answers, "Id")),
        "reversed under the same ids": _files(answers.with_columns(ids)),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    answers = _answers(data)
    thousands = answers.with_columns(SalePrice=pl.format("${}", "SalePrice"))
    return {
        **invalid_tables(table_text(answers), id_column="Id", number_column="SalePrice"),
        "dollar signs": Invalid(_files(thousands), "write a finite number"),
        "beyond all numbers": Invalid(_files(answers.with_columns(SalePrice=pl.lit(1e300))), "SalePrice"),
        "no header": Invalid({"submission.csv": answers.write_csv(include_header=False)}, "header"),
    }


def solution() -> Files:
    """Return a script with gradient boosting on all columns."""
    return {"train.py": BOOSTING}


def ineffective() -> Files:
    """Return the starter with a model that always predicts the median price."""
    model = '    return DummyRegressor(strategy="median").fit(X, y)\n'
    text = STARTER.read_text(encoding="utf-8").replace(STUB, model)
    return {"train.py": text.replace("import pandas as pd\n", "import pandas as pd\nfrom sklearn.dummy import DummyRegressor\n")}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")


def _train_prices(data: Prepared) -> pl.Series:
    return pl.read_csv(data.public / "train.csv", infer_schema=False)["SalePrice"].cast(pl.Float64)


def _files(frame: pl.DataFrame) -> Files:
    return {"submission.csv": table_text(frame)}
