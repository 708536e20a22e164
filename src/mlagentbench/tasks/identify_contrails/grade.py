"""The Dice coefficient of all test pixels together, as the competition defines it, from run lengths and without drawing a mask.

Taken image by image and averaged, as is at times done, a submission that finds nothing would score as high as the share of empty images.
"""

from __future__ import annotations

import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.tasks.identify_contrails.runs import decode
from mlagentbench.tasks.tables import Text, align

TABLE = "submission.csv"


def grade(context: GradingContext) -> Score:
    """Twice the pixels that are both predicted and labelled, over those predicted plus those labelled.

    Raises:
        InvalidSubmission: the table lacks records, or its run lengths are none.
    """
    assert context.private is not None
    answers = pl.read_csv(context.private / "answers.csv", schema_overrides={"record_id": pl.String})
    found = align(
        context.submission.read_bytes(TABLE),
        TABLE,
        ids=answers["record_id"],
        id_column="record_id",
        columns={"encoded_pixels": Text()},
    )
    ids, sizes = answers["record_id"].to_list(), answers["pixels"].to_numpy()
    predicted = decode(found["encoded_pixels"], ids, sizes, TABLE)
    labelled = decode(answers["encoded_pixels"].to_numpy(), ids, sizes, "answers.csv")
    shared = predicted.shared(labelled)
    return Score(
        value=2 * shared / (predicted.pixels + labelled.pixels),
        details={"predicted_pixels": predicted.pixels, "labelled_pixels": labelled.pixels, "shared_pixels": shared},
    )
