"""Predict which cases are good, by a logistic regression."""

import csv
from pathlib import Path

import numpy as np

PENALTY = 1.0
HELD_OUT = 0.25


def read(name):
    """The rows of a table, each a dictionary of texts."""
    with open(f"data/{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows):
    """The columns of numbers, as an array of rows and columns."""
    names = [name for name in rows[0] if name not in ("id", "good", "text")]
    return np.array([[float(row[name]) for name in names] for row in rows]).reshape(len(rows), len(names))


def words(rows, known):
    """How often each word of `known` occurs in each text."""
    places = {word: place for place, word in enumerate(known)}
    counts = np.zeros((len(rows), len(known)))
    for row, count in zip(rows, counts, strict=True):
        for word in row["text"].split():
            if word in places:
                count[places[word]] += 1
    return counts


def neighbours(rows):
    """For each node, the sum of the numbers of all nodes that it has an edge to."""
    values, places = numbers(rows), {row["id"]: place for place, row in enumerate(rows)}
    sums = np.zeros_like(values)
    for edge in read("edges"):
        sums[places[edge["source"]]] += values[places[edge["target"]]]
    return sums


def features(rows):
    """The features of all cases; those of `train` come first."""
    found = [numbers(rows)]
    if "text" in rows[0]:
        counted = {}
        for row in rows:
            for word in set(row["text"].split()):
                counted[word] = counted.get(word, 0) + 1
        found.append(words(rows, [word for word, count in sorted(counted.items()) if count >= 20]))
    if Path("data/edges.csv").exists():
        found.append(neighbours(rows))
    x = np.hstack(found)
    return np.column_stack(((x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9), np.ones(len(x))))


def fit(x, y):
    """The weights of a logistic regression, by Newton's method."""
    weights = np.zeros(x.shape[1])
    for _ in range(15):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + PENALTY * np.eye(len(weights))
        weights += np.linalg.solve(hessian, x.T @ (y - p) - PENALTY * weights)
    return weights


def main():
    train, test = read("train"), read("test")
    x = features([{name: value for name, value in row.items() if name != "good"} for row in train + test])
    y = np.array([float(row["good"]) for row in train])
    x, to_predict = x[: len(train)], x[len(train) :]

    held_out = np.random.default_rng(0).random(len(y)) < HELD_OUT
    right = (x[held_out] @ fit(x[~held_out], y[~held_out]) > 0) == y[held_out]
    print(f"validation accuracy: {right.mean():.3f}")

    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "good"])
        writer.writerows(zip((row["id"] for row in test), (to_predict @ fit(x, y) > 0).astype(int), strict=True))


if __name__ == "__main__":
    main()
