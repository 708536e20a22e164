"""Grade the answers by their accuracy, and tell whether the document was found and whether it was used."""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from mlagentbench import Column, GradingContext, OneOf, Score, TableTask, row_score

USED = 0.78
"""An accuracy that nobody reaches without the rule: no part that shows in the data gives more than about 0.7, and the rule gives 0.9."""
NAME_BYTES = 1000
"""The most bytes of `document.txt`."""


def accuracy(answers: pl.DataFrame, found: Mapping[str, Column]) -> Score:
    """Return the share of right answers."""
    return row_score(found["good"] == answers["good"].to_numpy())


TABLE = TableTask("id", {"good": OneOf(("0", "1"))}, accuracy)


def grade(context: GradingContext) -> Score:
    """Score a submission; its rung is 2 if the rule was used, 1 if only its document was named, and else 0.

    Raises:
        InvalidSubmission: the table is not one of ids with 0 or 1, or `document.txt` is no short text.
    """
    score = TABLE.grade(context)
    named = context.submission.read_text("document.txt", NAME_BYTES).strip() if "document.txt" in context.submission.names() else ""
    right = json.loads((context.private / "rule.json").read_text(encoding="utf-8"))["document"]
    found, used = named.removeprefix("documents/") == right, score.value >= USED
    words = f"document {'found' if found else 'not named'}, rule {'used' if used else 'not used'}"
    return score.model_copy(update={"rung": 2 if used else int(found), "note": words, "details": {"found": found, "used": used}})
