"""How a passage's tokens are shown to a model whose context may be shorter: overlapping windows, each token predicted once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]


class Window(NamedTuple):
    """A piece of a passage."""

    inputs: Tokens
    targets: Tokens
    """What comes after each of the inputs."""
    scored: int
    """From which place on its predictions count; those before were made, with more before them, in the window before."""


def windows(row: Tokens, context: int) -> Iterator[Window]:
    """Cut a row of tokens, its begin and end token included.

    Args:
        row: so that every token but the first is predicted once.
        context: how many tokens the model reads at most; at least 2. A window begins half as many after the one before.
    """
    inputs, targets = row[:-1], row[1:]
    stride = max(1, context // 2)
    done = 0
    for start in range(0, len(inputs), stride):
        end = min(start + context, len(inputs))
        if end > done:
            yield Window(inputs[start:end], targets[start:end], done - start)
        done = end
        if end == len(inputs):
            return


def batches(found: Sequence[Window], tokens: int) -> Iterator[list[Window]]:
    """Windows of like length together, as many as `tokens` allows when all are as long as the longest."""
    batch: list[Window] = []
    for window in sorted(found, key=lambda each: -len(each.inputs)):
        if batch and (len(batch) + 1) * len(batch[0].inputs) > tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def padded(rows: Sequence[Tokens], length: int) -> Tokens:
    """Rows of one length, filled up at their ends, where a model that cannot see ahead is not disturbed by it."""
    return np.stack([np.pad(row, (0, length - len(row))) for row in rows])
