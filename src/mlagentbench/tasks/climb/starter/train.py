"""Tell written digits apart with a small neural network, trained by gradient descent."""

import csv
import os

import numpy as np

SEED = int(os.environ.get("SEED", "0"))
HIDDEN = 5
EPOCHS = 40
BATCH = 20
RATE = 0.3


def read(path):
    """A table's ids and its other columns, as whole numbers."""
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=int, ndmin=2)
    return table[:, 0], table[:, 1:]


def load():
    """The counts and digits of the labelled pictures, and the ids and counts of the others."""
    _, counts = read("data/train.csv")
    _, digits = read("data/labels.csv")
    test_ids, test_counts = read("data/test.csv")
    return counts, digits[:, 0], test_ids, test_counts


def features(counts, largest):
    """What the network sees of each picture: its counts, from 0 to 1."""
    return counts / largest


def fit(x, digits, rng):
    """Train a network whose one output is the digit as a number, by the squared error; return how it predicts."""
    middle, spread = digits.mean(), digits.std()
    target = ((digits - middle) / spread)[:, None]
    first, first_bias = rng.standard_normal((x.shape[1], HIDDEN)) / 8, np.zeros(HIDDEN)
    second, second_bias = rng.standard_normal((HIDDEN, target.shape[1])) / 4, np.zeros(target.shape[1])
    for epoch in range(EPOCHS):
        rate = RATE * 0.5**epoch
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            hidden = np.tanh(x[rows] @ first + first_bias)
            output = hidden @ second + second_bias
            slope = (output - target[rows]) / len(rows)
            back = slope @ second.T * (1 - hidden**2)
            second -= rate * hidden.T @ slope
            second_bias -= rate * slope.sum(axis=0)
            first -= rate * x[rows].T @ back
            first_bias -= rate * back.sum(axis=0)

    def predict(x):
        output = np.tanh(x @ first + first_bias) @ second + second_bias
        return np.clip(np.round(output[:, 0] * spread + middle), 0, 9).astype(int)

    return predict


def main():
    counts, digits, test_ids, test_counts = load()
    x, test = features(counts, counts.max()), features(test_counts, counts.max())

    held_out = np.random.default_rng(SEED).random(len(x)) < 0.2
    model = fit(x[~held_out], digits[~held_out], np.random.default_rng(SEED))
    print(f"validation error: {np.mean(model(x[held_out]) != digits[held_out]):.4f}")

    predicted = fit(x, digits, np.random.default_rng(SEED))(test)
    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "digit"])
        writer.writerows(zip(test_ids, predicted, strict=True))


if __name__ == "__main__":
    main()
