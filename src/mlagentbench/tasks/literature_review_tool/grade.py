"""Grade literature reviews by the F1 of the papers that they cite."""

from __future__ import annotations

import json
import re
import statistics

from mlagentbench import GradingContext, InvalidSubmission, Score, row_score
from mlagentbench.tasks.literature_review_tool.reading import MAX_BYTES, match, read_texts

NAME = "reviews.json"
BRACKETS = re.compile(r"\[([^\[\]]*)\]")
KEY = re.compile(r"\bP\d+\b")
MOST_CITED = 30
"""Most papers that one review may cite."""


def grade(context: GradingContext) -> Score:
    """Score the mean over all questions of F1: the papers that a review cites, against those that its question asks for.

    Raises:
        InvalidSubmission: a question has no text, or a text cites too many papers, or one that is not in the library.
    """
    answers = json.loads((context.private / "answers.json").read_text(encoding="utf-8"))
    papers, relevant = set(answers["papers"]), answers["relevant"]
    reviews = read_texts(context.submission.read_bytes(NAME, MAX_BYTES), NAME, relevant, "question")
    matches = []
    for question in relevant:
        cited = {key for inside in BRACKETS.findall(reviews[question]) for key in KEY.findall(inside)}
        if invented := sorted(cited - papers):
            raise InvalidSubmission(
                f"{NAME}: the review of {question} cites {', '.join(invented[:3])}, which the library does not have; cite its papers only"
            )
        if len(cited) > MOST_CITED:
            raise InvalidSubmission(
                f"{NAME}: the review of {question} cites {len(cited)} papers; a short review cites at most {MOST_CITED}"
            )
        matches.append(match(cited, relevant[question]))
    return row_score(
        [found.f1 for found in matches],
        details={
            "questions": len(matches),
            "precision": statistics.fmean(found.precision for found in matches),
            "recall": statistics.fmean(found.recall for found in matches),
        },
    )
