"""Count symbols after pairs of symbols, write the counts, and score the model on docstrings that were set aside."""

import json
import os
import random

import numpy as np
from model import CHECKPOINT, SYMBOLS, Model, encode

SEED = int(os.environ.get("SEED", "0"))
VALIDATION_FRACTION = 0.1
STREAMS = 32


def train(texts):
    """Write the counts, an array of shape (SYMBOLS, SYMBOLS, SYMBOLS), to the checkpoint."""
    symbols = np.concatenate([[0, 0], encode(texts)])
    counts = np.zeros((SYMBOLS,) * 3, dtype=np.uint32)
    np.add.at(counts, (symbols[:-2], symbols[1:-1], symbols[2:]), 1)
    CHECKPOINT.parent.mkdir(exist_ok=True)
    np.save(CHECKPOINT, counts)


def bits_per_character(model, texts):
    """Have the model read texts as it will be graded: in streams, one symbol a step."""
    symbols = encode(texts)
    length = len(symbols) // STREAMS
    streams = symbols[: STREAMS * length].reshape(STREAMS, length)
    model.start(STREAMS)
    last = np.zeros(STREAMS, dtype=int)
    bits = 0.0
    for coming in streams.T:
        bits -= np.log2(model.step(last)[np.arange(STREAMS), coming]).sum()
        last = coming
    return bits / streams.size


def main():
    """Score a model of a part of the texts on the rest, then leave one of them all."""
    with open("data/train.json", encoding="utf-8") as file:
        texts = json.load(file)
    random.Random(SEED).shuffle(texts)
    held_out = int(VALIDATION_FRACTION * len(texts))
    train(texts[held_out:])
    print(f"validation: {bits_per_character(Model(), texts[:held_out]):.4f} bits per character")
    train(texts)


if __name__ == "__main__":
    main()
