"""Predict who was transported: reads train.csv and test.csv, scores a model on held-out passengers, writes submission.csv."""

import os

import pandas as pd
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

SEED = int(os.environ.get("SEED", "0"))
TARGET = "Transported"
# Columns of words, made into columns of yes and no. There are more columns than these.
FEATURES = ["HomePlanet", "CryoSleep", "Destination", "VIP", "Deck", "Side"]


def features(passengers):
    """One column for each value of each feature; a gap is no in all of them."""
    cabin = passengers["Cabin"].str.split("/", expand=True).set_axis(["Deck", "CabinNumber", "Side"], axis=1)
    return pd.get_dummies(passengers.join(cabin)[FEATURES].astype("object"))


def fit(X, y):
    """Train a model on features X and answers y; it must have predict(X)."""
    raise NotImplementedError("the model is still missing: define it in fit, train it, and return it")


def main():
    train = pd.read_csv("train.csv", index_col="PassengerId")
    test = pd.read_csv("test.csv", index_col="PassengerId")

    X, y = features(train), train[TARGET]
    X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.2, random_state=SEED)
    model = fit(X_train, y_train)
    print(f"train accuracy:      {accuracy_score(y_train, model.predict(X_train)):.4f}")
    print(f"validation accuracy: {accuracy_score(y_valid, model.predict(X_valid)):.4f}")

    model = fit(X, y)
    X_test = features(test).reindex(columns=X.columns, fill_value=False)
    submission = pd.DataFrame({TARGET: model.predict(X_test)}, index=test.index)
    submission.to_csv("submission.csv")


if __name__ == "__main__":
    main()
