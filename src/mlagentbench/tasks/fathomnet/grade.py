"""Score as the competition does: half for detecting pictures from deeper water, half for listing the right animals early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench import Column, InvalidSubmission, Number, Score, TableTask, Text, row_score

Array = NDArray[Any]

CATEGORIES = 290
CUTOFF = 20


class Lists(NamedTuple):
    """The lists of categories of many images, joined."""

    image: Array
    """(count,), int64: the place of its image."""
    rank: Array
    """(count,), int64: its place in the image's list, from 1."""
    category: Array
    """(count,), int64."""


def score(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the mean of the area under the ROC curve of `osd`, scaled to -1 to 1, and of the mean average precision of `categories`.

    Raises:
        InvalidSubmission: a list holds a value that is no category.
    """
    ids = answers["id"].to_list()
    truth = read_lists(answers["categories"].to_numpy(), ids, "answers.csv")
    precisions = average_precisions(truth, read_lists(found["categories"], ids, TABLE.file), len(ids))
    aucs = roc_auc_terms(answers["osd"].to_numpy() == 1, found["osd"])
    precision, auc = float(precisions.mean()), float(aucs.mean())
    return row_score(
        (2 * aucs - 1 + precisions) / 2, details={"auc": auc, "scaled_auc": 2 * auc - 1, "map_at_20": precision, "images": len(ids)}
    )


def read_lists(texts: Array, ids: list[str], name: str) -> Lists:
    """Read lists of categories, separated by blanks.

    Args:
        texts: (images,), one list for each image.
        ids: each image's id, for reasons.
        name: the file's name, for reasons.

    Raises:
        InvalidSubmission: a list is empty, or holds something that is no category.
    """
    words = pl.Series("words", texts, dtype=pl.String).str.extract_all(r"\S+")
    counts = words.list.len().to_numpy().astype(np.int64)
    image = np.repeat(np.arange(len(texts)), counts)
    numbers = words.filter(pl.Series(counts > 0)).explode().cast(pl.Int64, strict=False)
    bad = (numbers.is_null() | ~numbers.fill_null(0).is_between(1, CATEGORIES)).to_numpy()
    if not counts.all():
        raise InvalidSubmission(f"{name}: categories of {ids[int(np.argmin(counts))]} is blank; write at least one category")
    if bad.any():
        place = int(image[np.flatnonzero(bad)[0]])
        why = f"write whole numbers from 1 to {CATEGORIES}, separated by blanks, the likeliest first"
        raise InvalidSubmission(f"{name}: categories of {ids[place]} is {texts[place][:60]!r}; {why}")
    rank = np.arange(len(image)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    return Lists(image, rank, numbers.to_numpy().astype(np.int64))


def average_precisions(truth: Lists, predicted: Lists, images: int, cutoff: int = CUTOFF) -> Array:
    """Return each image's average precision, whose mean is MAP@k.

    Of the first `cutoff` categories of a list, each right one scores the precision down to it, once. An image's sum is divided by the
    number of its true categories, `cutoff` at most. A repeated category takes a place and scores nothing.
    """
    kept = predicted.rank <= cutoff
    image, rank = predicted.image[kept], predicted.rank[kept]
    keys = image * (CATEGORIES + 1) + predicted.category[kept]
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    right = first & np.isin(keys, truth.image * (CATEGORIES + 1) + truth.category)
    so_far = np.cumsum(right)
    before = np.concatenate(([0], so_far))[np.searchsorted(image, image)]
    precision = np.where(right, (so_far - before) / rank, 0.0)
    total = np.bincount(image, weights=precision, minlength=images)
    possible = np.minimum(np.bincount(truth.image, minlength=images), cutoff)
    return np.asarray(total / possible)


def roc_auc_terms(positive: Array, scores: Array) -> Array:
    """Return each row's part in the probability that a positive scores higher than a negative, which is their mean.

    Equal scores count half (the Mann-Whitney statistic). A row's part is how far it lies above the rows of the other class, or below them,
    weighted by how rare its own class is; the parts scatter as the statistic does from test set to test set (DeLong et al. 1988).
    """
    counts = np.where(positive, positive.sum(), (~positive).sum())
    own = np.empty(len(scores))
    for each in (positive, ~positive):
        own[each] = _ranks(scores[each])
    passed = (_ranks(scores) - own) / (len(scores) - counts)
    placement = np.where(positive, passed, 1 - passed)
    auc = placement[positive].mean()
    return np.asarray(auc + (placement - auc) * len(scores) / counts)


def _ranks(scores: Array) -> Array:
    """Return each score's rank from 1; equal ones share the mean of theirs."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


TABLE = TableTask("id", {"categories": Text(), "osd": Number()}, score)
grade = TABLE.grade
