"""Predict house prices: reads train.csv and test.csv, scores a model on held-out houses, writes submission.csv."""

import os

import pandas as pd
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split

SEED = int(os.environ.get("SEED", "0"))
TARGET = "SalePrice"
# Numbers that are known of every house. There are many more columns; data_description.txt tells what they mean.
FEATURES = [
    "MSSubClass",
    "LotArea",
    "OverallQual",
    "OverallCond",
    "YearBuilt",
    "YearRemodAdd",
    "1stFlrSF",
    "2ndFlrSF",
    "LowQualFinSF",
    "GrLivArea",
    "FullBath",
    "HalfBath",
    "BedroomAbvGr",
    "KitchenAbvGr",
    "TotRmsAbvGrd",
    "Fireplaces",
    "WoodDeckSF",
    "OpenPorchSF",
    "EnclosedPorch",
    "3SsnPorch",
    "ScreenPorch",
    "PoolArea",
    "MiscVal",
    "MoSold",
    "YrSold",
]


def fit(X, y):
    """Train a model on features X and prices y; it must have predict(X)."""
    raise NotImplementedError("the model is still missing: define it in fit, train it, and return it")


def main():
    train = pd.read_csv("train.csv", index_col="Id")
    test = pd.read_csv("test.csv", index_col="Id")

    X_train, X_valid, y_train, y_valid = train_test_split(train[FEATURES], train[TARGET], test_size=0.2, random_state=SEED)
    model = fit(X_train, y_train)
    print(f"train MAE:      {mean_absolute_error(y_train, model.predict(X_train)):,.0f}")
    print(f"validation MAE: {mean_absolute_error(y_valid, model.predict(X_valid)):,.0f}")

    model = fit(train[FEATURES], train[TARGET])
    submission = pd.DataFrame({TARGET: model.predict(test[FEATURES])}, index=test.index)
    submission.to_csv("submission.csv")


if __name__ == "__main__":
    main()
