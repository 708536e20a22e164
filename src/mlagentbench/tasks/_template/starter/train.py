"""Predict the strength of concrete with a linear model: reads train.csv and test.csv, writes submission.csv."""

import csv
import os

import numpy as np

SEED = int(os.environ.get("SEED", "0"))
FEATURES = ["cement", "water", "fly_ash", "age", "plasticizer"]
TARGET = "strength"
RIDGE = 1e-3
VALIDATION_SHARE = 0.2


def read(name):
    """The rows of a table: their ids, and their numbers by column."""
    with open(name, newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [column for column in rows[0] if column != "id"]
    return [row["id"] for row in rows], {column: np.array([float(row[column]) for row in rows]) for column in columns}


def terms(x):
    """What the prediction is a weighted sum of, from features of shape (rows, 5)."""
    return np.column_stack([np.ones(len(x)), x])


def fit(x, y):
    """Weights by least squares, kept small where the data leaves them open."""
    a = terms(x)
    return np.linalg.solve(a.T @ a + RIDGE * np.eye(a.shape[1]), a.T @ y)


def predict(weights, x):
    return terms(x) @ weights


def main():
    _, train = read("train.csv")
    x = np.column_stack([train[name] for name in FEATURES])
    y = train[TARGET]

    order = np.random.default_rng(SEED).permutation(len(y))
    held_out, kept = np.split(order, [int(VALIDATION_SHARE * len(y))])
    errors = predict(fit(x[kept], y[kept]), x[held_out]) - y[held_out]
    print(f"validation RMSE: {np.sqrt((errors**2).mean()):.3f} MPa")

    ids, test = read("test.csv")
    predicted = predict(fit(x, y), np.column_stack([test[name] for name in FEATURES]))
    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", TARGET])
        writer.writerows(zip(ids, predicted.round(3), strict=True))


if __name__ == "__main__":
    main()
