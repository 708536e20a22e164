"""Prepare a synthetic library, and questions with the papers that each asks for.

Nothing is downloaded, and both variants are alike.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mlagentbench.tasks.literature_review_tool.papers import KINDS, Paper, make_papers, pick

PAPERS = 600
QUESTIONS, EXAMPLES = 20, 12
FEWEST, MOST = 3, 16
"""Bounds of the number of papers that a question asks for."""

PAIRS = {
    (0, 1): ("Which work studies {0} by {1}{when}?", "What has been published on {0} with the help of {1}{when}?"),
    (0, 2): ("What is known about {1} in research on {0}{when}?", "Who has worked on {0} with {1} in mind{when}?"),
    (1, 2): ("Which papers put {0} in the service of {1}{when}?", "Who has tried {0} for the sake of {1}{when}?"),
}
"""The wordings of questions, by the two parts of `KINDS` that they ask for."""


class Question(NamedTuple):
    """A question, and the ids of all papers that it asks for."""

    text: str
    relevant: tuple[str, ...]


def full(public: Path, private: Path, seed: int) -> None:
    """Write such files as the mini variant's, from a secret seed."""
    mini(public, private, seed)


def mini(public: Path, private: Path, seed: int) -> None:
    """Write the library and its questions to `public`, and the ids of the papers asked for to `private`."""
    rng = np.random.default_rng(seed)
    papers = make_papers(PAPERS, rng)
    questions = _questions(papers, QUESTIONS + EXAMPLES, rng)
    asked = {f"Q{number + 1:02d}": question for number, question in enumerate(questions[:QUESTIONS])}
    library = public / "library"
    library.mkdir()
    write_json(library / "papers.json", [paper.record() for paper in papers])
    write_json(library / "questions.json", [{"id": name, "question": question.text} for name, question in asked.items()])
    write_json(library / "examples.json", [{"question": text, "relevant": relevant} for text, relevant in questions[QUESTIONS:]])
    relevant = {name: question.relevant for name, question in asked.items()}
    write_json(private / "answers.json", {"papers": [paper.id for paper in papers], "relevant": relevant})


def write_json(path: Path, content: object) -> None:
    """Write a file of indented JSON."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _questions(papers: Sequence[Paper], count: int, rng: np.random.Generator) -> list[Question]:
    """Draw questions, no two of which ask for the same papers."""
    found: dict[tuple[str, ...], Question] = {}
    pairs = list(PAIRS)
    while len(found) < count:
        one, other = pairs[int(rng.integers(len(pairs)))]
        wanted = papers[int(rng.integers(len(papers)))].facets
        first, last, when = _period(rng)
        matching = [
            paper.id
            for paper in papers
            if (paper.facets[one], paper.facets[other]) == (wanted[one], wanted[other]) and first <= paper.year <= last
        ]
        if not FEWEST <= len(matching) <= MOST:
            continue
        wordings = (pick(KINDS[place][wanted[place]], rng) for place in (one, other))
        question = Question(pick(PAIRS[one, other], rng).format(*wordings, when=when), tuple(matching))
        found.setdefault(question.relevant, question)
    return list(found.values())


def _period(rng: np.random.Generator) -> tuple[int, int, str]:
    """Draw a period: its first year, its last year, and its wording in a question."""
    year = int(rng.integers(2012, 2019))
    periods = ((0, 9999, ""), (0, 9999, ""), (year, 9999, f" since {year}"), (0, year - 1, f" before {year}"))
    return periods[int(rng.integers(len(periods)))]
