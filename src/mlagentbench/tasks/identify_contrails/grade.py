"""Grade contrail masks by the Dice coefficient of all test pixels together, as the competition defines it.

It is computed from run lengths, without decoding them to masks. An average of the images' coefficients, which some use instead, would give
a submission that finds nothing the share of empty images as its score.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from mlagentbench import Column, Score, TableTask, Text, row_score
from mlagentbench.tasks.identify_contrails.runs import decode


def dice(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return twice the pixels both predicted and labelled, over those predicted plus those labelled.

    Raises:
        InvalidSubmission: the run lengths of a record are invalid.
    """
    ids, sizes = answers["record_id"].to_list(), answers["pixels"].to_numpy()
    predicted = decode(found["encoded_pixels"], ids, sizes, TABLE.file)
    labelled = decode(answers["encoded_pixels"].to_numpy(), ids, sizes, "answers.csv")
    shared, pixels = predicted.by_mask(sizes, labelled), predicted.by_mask(sizes) + labelled.by_mask(sizes)
    return row_score(
        np.stack([shared, pixels], axis=1),
        lambda means: 2 * means[..., 0] / means[..., 1],
        details={"predicted_pixels": predicted.pixels, "labelled_pixels": labelled.pixels, "shared_pixels": int(shared.sum())},
    )


TABLE = TableTask("record_id", {"encoded_pixels": Text()}, dice)
grade = TABLE.grade
