"""Score essays in six respects: reads train.csv and test.csv, scores a model on held-out essays, writes submission.csv."""

import os

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

SEED = int(os.environ.get("SEED", "0"))
SCORES = ["cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]


def mcrmse(truth, prediction):
    """The root mean squared error of each column, and their mean."""
    errors = np.sqrt(np.mean((np.asarray(truth) - np.asarray(prediction)) ** 2, axis=0))
    return errors, errors.mean()


def fit(texts, scores):
    """Train a model on essays and their scores, a table with six columns."""
    raise NotImplementedError("the model is still missing: define it in fit, train it, and return it")


def predict(model, texts):
    """The six scores of each essay: an array of shape (essays, 6)."""
    raise NotImplementedError("the prediction is still missing")


def main():
    train = pd.read_csv("train.csv", index_col="text_id")
    test = pd.read_csv("test.csv", index_col="text_id")

    fitted, held_out = train_test_split(train, test_size=0.1, random_state=SEED)
    model = fit(fitted["full_text"], fitted[SCORES])
    errors, mean = mcrmse(held_out[SCORES], predict(model, held_out["full_text"]))
    for name, error in zip(SCORES, errors, strict=True):
        print(f"{name}: validation RMSE {error:.4f}")
    print(f"validation MCRMSE: {mean:.4f}")

    model = fit(train["full_text"], train[SCORES])
    submission = pd.DataFrame(predict(model, test["full_text"]), index=test.index, columns=SCORES)
    submission.to_csv("submission.csv")


if __name__ == "__main__":
    main()
