"""Predict what diamonds cost with a small neural network, trained by gradient descent."""

import csv
import os

import numpy as np

SEED = int(os.environ.get("SEED", "0"))
HIDDEN = 100
EPOCHS = 140
BATCH = 50
RATE = 0.003
GRADES = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": ["J", "I", "H", "G", "F", "E", "D"],
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}


def read(path):
    """The rows of a table."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def load():
    """The reports on the stones of known price, with the price for each report, and the reports on the others."""
    train, test = read("data/train.csv"), read("data/test.csv")
    prices = [float(row["price"]) for row in read("data/prices.csv")]
    return train, np.repeat(prices, len(train) // len(prices)), test


def carats(row):
    """The weight that a report gives."""
    return float(row["reading"])


def features(rows):
    """What the network sees of each report: the logarithm of the weight, the grades as numbers, and the proportions."""
    weight = np.log([carats(row) for row in rows])
    grades = [[GRADES[name].index(row[name]) for name in GRADES] for row in rows]
    proportions = [[float(row["depth"]), float(row["table"])] for row in rows]
    x = np.column_stack([weight, grades, proportions])
    return (x - x.mean(axis=0)) / x.std(axis=0)


def fit(x, y, rng):
    """Train a network by the squared error; return how it predicts."""
    middle, spread = y.mean(), y.std()
    target = (y - middle) / spread
    first, first_bias = rng.standard_normal((x.shape[1], HIDDEN)) / np.sqrt(x.shape[1]), np.zeros(HIDDEN)
    second, second_bias = np.zeros(HIDDEN), 0.0
    for epoch in range(EPOCHS):
        rate = RATE * 0.1**epoch
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            hidden = np.tanh(x[rows] @ first + first_bias)
            slope = (hidden @ second + second_bias - target[rows]) / len(rows)
            back = np.outer(slope, second) * (1 - hidden**2)
            second -= rate * hidden.T @ slope
            second_bias -= rate * slope.sum()
            first -= rate * x[rows].T @ back
            first_bias -= rate * back.sum(axis=0)
    return lambda x: (np.tanh(x @ first + first_bias) @ second + second_bias) * spread + middle


def by_stone(rows, values):
    """One value for each stone, from those of its reports."""
    return {row["stone"]: value for row, value in zip(rows, values, strict=True)}


def main():
    train, prices, test = load()
    x, y = features(train + test), np.log(prices)
    x, x_test = x[: len(train)], x[len(train) :]

    stones = np.array([int(row["stone"]) for row in train])
    held_out = np.isin(stones, np.random.default_rng(SEED).permutation(np.unique(stones))[::5])
    model = fit(x[~held_out], y[~held_out], np.random.default_rng(SEED))
    print(f"validation error of the logarithm, median: {np.median(np.abs(model(x[held_out]) - y[held_out])):.4f}")

    predicted = by_stone(test, model(x_test))
    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["stone", "price"])
        writer.writerows((stone, round(float(np.exp(value)), 2)) for stone, value in predicted.items())


if __name__ == "__main__":
    main()
