"""Make passages of text in which citations are missing; each sentence says enough of one paper to tell it from all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mlagentbench.tasks.literature_review_tool.papers import KINDS, Paper, capital, pick

MARK = "[?]"
SENTENCES = (3, 6)
"""The least sentences of a passage, and one more than the most."""

ABOUT: Mapping[tuple[int, int], str] = {(0, 1): "{1} for {0}", (0, 2): "{0} with a view to {1}", (1, 2): "{0} in the service of {1}"}
"""Places of two of a paper's facets, and how a sentence names both."""
SENTENCE: Mapping[str, tuple[str, ...]] = {
    "author": ("{author} wrote on {about} [?].", "An early study of {about} is due to {author} [?]."),
    "year": ("In {year} a paper took up {about} [?].", "Interest in {about} goes back to {year} [?]."),
    "venue": ("The {venue} has published on {about} [?].", "On {about} there is a paper in the {venue} [?]."),
    "author and year": ("{author} took up {about} in {year} [?].", "By {year}, {author} had turned to {about} [?]."),
}


class Passage(NamedTuple):
    """A text with marks, and the id of the paper that is missing at each."""

    text: str
    missing: tuple[str, ...]


def make_passage(papers: Sequence[Paper], rng: np.random.Generator) -> Passage:
    """Make a passage about some of the papers, each of which it cites once."""
    sentences: dict[str, str] = {}
    count = int(rng.integers(*SENTENCES))
    while len(sentences) < count:
        paper = papers[int(rng.integers(len(papers)))]
        sentence = _sentence(paper, papers, rng)
        if sentence is not None:
            sentences.setdefault(paper.id, sentence)
    return Passage(" ".join(sentences.values()), tuple(sentences))


def _sentence(paper: Paper, papers: Sequence[Paper], rng: np.random.Generator) -> str | None:
    """Make a sentence that fits a paper; return None where it fits another too."""
    pairs = list(ABOUT)
    pair = pairs[int(rng.integers(len(pairs)))]
    hint = pick(list(SENTENCE), rng)

    def said(of: Paper) -> tuple[object, ...]:
        return (*(of.facets[place] for place in pair), *(_hints(of)[part] for part in hint.split(" and ")))

    if sum(said(other) == said(paper) for other in papers) > 1:
        return None
    wordings = (pick(KINDS[place][paper.facets[place]], rng) for place in pair)
    return capital(pick(SENTENCE[hint], rng).format(about=ABOUT[pair].format(*wordings), **_hints(paper)))


def _hints(paper: Paper) -> dict[str, str]:
    """Return how a sentence names a paper's authors, year and venue."""
    family = paper.authors[0].split()[-1]
    return {"author": family if len(paper.authors) == 1 else f"{family} and others", "year": str(paper.year), "venue": paper.venue}
