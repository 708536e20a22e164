"""Encode masks as run lengths, and decode them.

`1 3 10 5` means pixels 1 to 3 and 10 to 14, counted from 1 down one column after the other; `-` means no pixel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.errors import InvalidSubmission

Array = NDArray[Any]

NOTHING = "-"


class RunLengths(NamedTuple):
    """Pixels of many masks, numbered through all masks, as sorted runs that do not overlap."""

    starts: Array
    """First pixel of each run, from 0: (count,), int64."""
    ends: Array
    """Pixel after the last of each run: (count,), int64."""

    @property
    def pixels(self) -> int:
        """The number of pixels."""
        return int((self.ends - self.starts).sum())

    def by_mask(self, sizes: Array, other: RunLengths | None = None) -> Array:
        """Return how many pixels each mask has, or how many of them are in the other masks too: (masks,).

        Args:
            sizes: the masks' pixels, (masks,).
            other: the other masks.
        """
        counts = self.ends - self.starts if other is None else other._before(self.ends) - other._before(self.starts)
        mask = np.searchsorted(np.cumsum(sizes), self.starts, side="right")
        return np.bincount(mask, weights=counts, minlength=len(sizes))

    def _before(self, places: Array) -> Array:
        """Return the number of these pixels before each position in `places`."""
        if not len(self.starts):
            return np.zeros_like(places)
        counts = np.concatenate(([0], np.cumsum(self.ends - self.starts)))
        run = np.searchsorted(self.starts, places, side="right") - 1
        into = np.minimum(places, self.ends[run]) - self.starts[run]
        return np.where(run < 0, 0, counts[run] + into)


def encode(mask: Array) -> str:
    """Write a mask of shape (height, width) as run lengths."""
    flat = np.concatenate(([False], np.asarray(mask, dtype=bool).ravel(order="F"), [False]))
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    pairs = np.column_stack((edges[::2] + 1, edges[1::2] - edges[::2]))
    return " ".join(map(str, pairs.ravel())) or NOTHING


def decode(masks: Array, ids: list[str], sizes: Array, name: str) -> RunLengths:
    """Read the run lengths of many masks.

    Args:
        masks: the run lengths of each mask, (count,).
        ids: the masks' ids, for error messages.
        sizes: the masks' pixels, (count,), int64.
        name: the name of the file that they are from, for error messages.

    Raises:
        InvalidSubmission: a text is not run lengths, or the runs leave the mask, overlap or are not sorted.
    """
    words = pl.Series("words", masks, dtype=pl.String).str.extract_all(r"\S+")

    def refuse(bad: Array, mask: Array, why: str) -> None:
        if bad.any():
            place = int(mask[np.flatnonzero(bad)[0]])
            found = " ".join(words[place].to_list())
            raise InvalidSubmission(f"{name}: encoded_pixels of {ids[place]} is {found[:60]!r}; {why}")

    number = np.arange(len(masks))
    counts = words.list.len().to_numpy().astype(np.int64)
    refuse(counts == 0, number, f"write {NOTHING} for a mask without pixels")
    nothing = (counts == 1) & (words.list.first() == NOTHING).to_numpy()
    refuse(~nothing & (counts % 2 == 1), number, "write pairs: where a run starts and how long it is")
    counts[nothing] = 0
    values = words.filter(pl.Series(counts > 0)).explode().cast(pl.Int64, strict=False)
    mask = np.repeat(number, counts)
    refuse(values.is_null().to_numpy(), mask, "write whole numbers, separated by blanks")
    pairs = values.to_numpy().astype(np.int64).reshape(-1, 2)
    mask, starts, lengths = mask[::2], pairs[:, 0], pairs[:, 1]
    refuse(starts < 1, mask, "pixels are counted from 1")
    refuse(lengths < 1, mask, "a run is at least one pixel long")
    room = sizes[mask]
    refuse((starts > room) | (lengths > room) | (starts + np.minimum(lengths, room) - 1 > room), mask, "a run leaves the image")
    same = mask[1:] == mask[:-1]
    refuse(same & (starts[1:] < starts[:-1]), mask[1:], "sort the runs by where they start")
    refuse(same & (starts[1:] < starts[:-1] + lengths[:-1]), mask[1:], "runs overlap; name every pixel once")
    starts = starts - 1 + (np.cumsum(sizes) - sizes)[mask]
    return RunLengths(starts, starts + lengths)
