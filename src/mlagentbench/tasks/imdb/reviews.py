"""Make synthetic film reviews for the mini variant, whose sentiment depends on how words are combined rather than on which words occur.

A review judges several aspects of a film, most of them as its label says and some the other way. A judgement may be negated ("not dull"),
or contrasted with an expectation ("i expected a dull plot but it was gripping") or with what others say, so that words of praise and of
blame occur in both classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

PRAISE = (
    "brilliant",
    "gripping",
    "tender",
    "witty",
    "superb",
    "graceful",
    "thrilling",
    "honest",
    "vivid",
    "delightful",
    "inspired",
    "memorable",
    "rich",
    "charming",
    "elegant",
)
BLAME = (
    "dull",
    "clumsy",
    "tedious",
    "shallow",
    "lifeless",
    "noisy",
    "muddled",
    "stale",
    "bland",
    "tiresome",
    "wooden",
    "forgettable",
    "hollow",
    "ugly",
    "careless",
)
SIDES = (
    "plot",
    "cast",
    "script",
    "pacing",
    "score",
    "ending",
    "dialogue",
    "camera",
    "direction",
    "humour",
    "opening",
    "leads",
    "mood",
    "editing",
    "finale",
)
FILLER = (
    "my sister chose it and we sat in the third row",
    "the story begins in a harbour town and ends there many years later",
    "it runs for about two hours",
    "a lawyer and a painter meet by chance on a night train",
    "the book it was made from is on my shelf",
    "it was shown late in the evening after the news",
    "two brothers inherit a hotel that nobody has visited since the war",
    "the director has made four films before this one",
)
AGREEING = 0.85
"""Share of a review's judgements that agree with its label."""
PLAIN = 0.55
"""Share of judgements that are stated directly, neither negated nor contrasted."""


def make_reviews(count: int, rng: np.random.Generator) -> pl.DataFrame:
    """Make reviews in random order: a table of text and label, where half of the labels are 1 for positive."""
    labels = rng.permutation(np.arange(count) % 2)
    return pl.DataFrame({"text": [_review(bool(label), rng) for label in labels], "label": labels})


def _review(positive: bool, rng: np.random.Generator) -> str:
    sentences = [_judgement(positive == bool(rng.random() < AGREEING), rng) for _ in range(rng.integers(3, 6))]
    sentences += [_pick(FILLER, rng) for _ in range(rng.integers(0, 3))]
    order = rng.permutation(len(sentences))
    return " ".join(f"{sentences[place].capitalize()}." for place in order)


def _judgement(good: bool, rng: np.random.Generator) -> str:
    side = _pick(SIDES, rng)
    fits, other = (_pick(words, rng) for words in ((PRAISE, BLAME) if good else (BLAME, PRAISE)))
    plain = (f"the {side} was {fits}", f"i found the {side} {fits}", f"what a {fits} {side}")
    turned = (
        f"the {side} was not {other}",
        f"the {side} was never {other}",
        f"i would not call the {side} {other}",
        f"i expected a {other} {side} but it was {fits}",
        f"others say the {side} is {other} yet to me it was {fits}",
        f"the {side} looked {other} at first and turned out {fits}",
    )
    return _pick(plain if rng.random() < PLAIN else turned, rng)


def _pick(choices: Sequence[str], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]
