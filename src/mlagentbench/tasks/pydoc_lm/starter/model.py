"""A character model that looks at the last two characters."""

from pathlib import Path

import numpy as np

ALPHABET = "\0\n" + "".join(map(chr, range(32, 127)))
SYMBOLS = len(ALPHABET)
SMOOTHING = 0.05
CHECKPOINT = Path(__file__).parent / "checkpoint" / "counts.npy"


def encode(texts):
    """Turn texts into one array of symbols, with a 0 after each text."""
    number = {character: symbol for symbol, character in enumerate(ALPHABET)}
    return np.array([number[character] for text in texts for character in f"{text}\0"])


class Model:
    """Counts of each symbol after each pair of symbols, and a little more, so that none is impossible."""

    def __init__(self):
        self.counts = np.load(CHECKPOINT)

    def start(self, count):
        """Begin to read `count` streams."""
        self.before = np.zeros(count, dtype=int)

    def step(self, symbols):
        """Take the symbols of shape (count,) that have come, and return the next ones' probabilities, of shape (count, SYMBOLS)."""
        counts = self.counts[self.before, symbols] + SMOOTHING
        self.before = symbols
        return counts / counts.sum(axis=1, keepdims=True)
