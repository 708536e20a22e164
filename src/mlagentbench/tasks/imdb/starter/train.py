"""Fine-tune DistilBERT to tell positive from negative film reviews."""

import csv
import os
import random

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: F401

SEED = int(os.environ.get("SEED", "0"))
MODEL = "distilbert"
VALIDATION_FRACTION = 0.1


def read_reviews(path):
    """Read a table of reviews as a list of rows, each a dict with `idx`, `text` and, in the training data, `label`."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fine_tune(texts, labels):
    """Fine-tune DistilBERT.

    Args:
        texts: the training reviews.
        labels: 0 for negative and 1 for positive, one for each review.

    Returns:
        Whatever `predict` needs.
    """
    raise NotImplementedError("load the tokenizer and the model from MODEL, and fine-tune")


def predict(model, texts):
    """Give an array of shape (len(texts), 2): the probabilities that a review is negative and that it is positive."""
    raise NotImplementedError("put the reviews through the fine-tuned model")


def main():
    """Train, validate, and write the probabilities for the test reviews."""
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)

    rows = read_reviews("data/train.csv")
    random.shuffle(rows)
    texts = [row["text"] for row in rows]
    labels = np.array([int(row["label"]) for row in rows])
    held_out = int(VALIDATION_FRACTION * len(rows))

    model = fine_tune(texts[held_out:], labels[held_out:])
    accuracy = (predict(model, texts[:held_out]).argmax(axis=1) == labels[:held_out]).mean()
    print(f"validation accuracy: {accuracy:.4f}")

    test = read_reviews("data/test.csv")
    probabilities = predict(model, [row["text"] for row in test])
    with open("submission.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["idx", "negative", "positive"])
        for row, (negative, positive) in zip(test, probabilities, strict=True):
            writer.writerow([row["idx"], negative, positive])


if __name__ == "__main__":
    main()
