"""Make up a library, and passages that cite it, with the citations left out. Nothing is downloaded; both variants are made alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mlagentbench.tasks.bibtex_generation.passages import make_passage
from mlagentbench.tasks.literature_review_tool.papers import make_papers
from mlagentbench.tasks.literature_review_tool.prepare import write_json

STREAM = 1
"""Added to the seed, so that the library differs from that of the task literature-review-tool."""
PAPERS = 600
PASSAGES, EXAMPLES = 20, 12


def full(public: Path, private: Path, seed: int) -> None:
    """Make such data as the mini variant's, from a secret seed."""
    mini(public, private, seed)


def mini(public: Path, private: Path, seed: int) -> None:
    """Make the library with its passages, and write the papers that are missing in these to `private`."""
    rng = np.random.default_rng((seed, STREAM))
    papers = make_papers(PAPERS, rng)
    passages = [make_passage(papers, rng) for _ in range(PASSAGES + EXAMPLES)]
    asked = {f"T{number + 1:02d}": passage for number, passage in enumerate(passages[:PASSAGES])}
    library = public / "library"
    library.mkdir()
    write_json(library / "papers.json", [paper.record() for paper in papers])
    write_json(library / "passages.json", [{"id": name, "text": passage.text} for name, passage in asked.items()])
    write_json(library / "examples.json", [{"text": text, "cited": missing} for text, missing in passages[PASSAGES:]])
    write_json(private / "answers.json", {name: passage.missing for name, passage in asked.items()})
