"""Grade contrail masks by the Dice coefficient of all test pixels together, as the competition defines it.

It is computed from run lengths, without decoding them to masks. An average of the images' coefficients, which some use instead, would give
a submission that finds nothing the share of empty images as its score.
"""

from __future__ import annotations

import polars as pl

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.task.tables import Text, align
from mlagentbench.tasks.identify_contrails.runs import decode

TABLE = "submission.csv"


def grade(context: GradingContext) -> Score:
    """Score predicted masks: twice the pixels both predicted and labelled, over those predicted plus those labelled.

    Raises:
        InvalidSubmission: the table lacks records, or holds invalid run lengths.
    """
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
