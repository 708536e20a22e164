"""Tell written digits apart by a logistic regression on the few that are labelled."""

import os

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

SEED = int(os.environ.get("SEED", "0"))


def main():
    labelled = pd.read_csv("data/labelled.csv", index_col="id")
    test = pd.read_csv("data/test.csv", index_col="id")
    digits, pixels = labelled["digit"], labelled.drop(columns="digit")

    model = LogisticRegression(max_iter=5000, random_state=SEED)
    folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=SEED)
    print(f"validation error: {1 - cross_val_score(model, pixels, digits, cv=folds).mean():.4f}")

    model.fit(pixels, digits)
    submission = pd.DataFrame({"digit": model.predict(test)}, index=test.index)
    submission.to_csv("submission.csv")


if __name__ == "__main__":
    main()
