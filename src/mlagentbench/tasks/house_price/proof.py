"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.house_price.grade import TABLE

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
    """Return the true prices, also as decimals."""
    return {**TABLE.oracle(data), "as decimals": TABLE.changed(data, SalePrice=pl.col("SalePrice").cast(pl.Float64))}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return one price for all houses, and the prices of other houses."""
    prices = pl.read_csv(data.public / "train.csv", infer_schema=False)["SalePrice"].cast(pl.Float64)
    return {
        **TABLE.naive(data),
        "constant": TABLE.changed(data, SalePrice=prices.mean()),
        "median": TABLE.changed(data, SalePrice=prices.median()),
        "zero": TABLE.changed(data, SalePrice=0),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    return {
        **TABLE.invalid(data),
        "dollar signs": TABLE.refused(data, "write a finite number", SalePrice=pl.format("${}", "SalePrice")),
        "beyond all numbers": TABLE.refused(data, "SalePrice", SalePrice=1e300),
    }


def solution() -> Files:
    """Return a script with gradient boosting on all columns."""
    return {"train.py": BOOSTING}


def ineffective() -> Files:
    """Return the starter with a model that always predicts the median price."""
    imports = "import pandas as pd\n"
    model = '    return DummyRegressor(strategy="median").fit(X, y)\n'
    return edited_starter(__file__, {STUB: model, imports: imports + "from sklearn.dummy import DummyRegressor\n"})
