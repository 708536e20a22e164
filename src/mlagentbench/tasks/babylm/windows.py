"""Cut a passage's tokens into overlapping windows that fit a model's context, so that each token is predicted once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]


class Window(NamedTuple):
    """A piece of a passage that fits a model's context."""

    inputs: Tokens
    targets: Tokens
    """The token that follows each of the inputs."""
    scored: int
    """The first place whose prediction counts; earlier tokens were predicted in the window before, with more context."""


def windows(row: Tokens, context: int) -> Iterator[Window]:
    """Cut a row of tokens into windows, so that every token but the first is predicted once.

    Args:
        row: a passage's tokens, its begin and end token included.
        context: how many tokens the model reads at most; at least 2. Each window begins half as many after the one before.
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


def batches(found: Sequence[Window], tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of windows of similar length together, as many as `tokens` allows when all are padded to the longest."""
    batch: list[int] = []
    for number in sorted(range(len(found)), key=lambda each: -len(found[each].inputs)):
        if batch and (len(batch) + 1) * len(found[batch[0]].inputs) > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def padded(rows: Sequence[Tokens], length: int) -> Tokens:
    """Pad rows at their ends to one length, which does not affect a model that cannot see ahead."""
    return np.stack([np.pad(row, (0, length - len(row))) for row in rows])
