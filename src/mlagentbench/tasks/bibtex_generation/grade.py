"""Score citations by the F1 of the papers that passages cite through a bibliography."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from mlagentbench import GradingContext, InvalidSubmission, Score, row_score
from mlagentbench.tasks.bibtex_generation.bibliography import Entry, read_bibliography
from mlagentbench.tasks.literature_review_tool.reading import MAX_BYTES, match, read_texts

TEXTS, REFERENCES = "cited.json", "references.bib"
CITATION = re.compile(r"\\cite\w*\s*\{([^{}]*)\}")
MOST_CITED = 10
"""The most papers that one passage may cite."""
REQUIRED = ("author", "title", "year")


def grade(context: GradingContext) -> Score:
    """Return the mean over the passages of the F1 of the papers that each cites, against those that are missing in it.

    An entry stands for the paper of its title. Where its authors or year are not that paper's, it stands for none, and citing it counts as
    wrong.

    Raises:
        InvalidSubmission: a passage has no text or cites more than `MOST_CITED` papers, the bibliography is no BibTeX or names a paper that
            the library lacks, or a cited key is not in the bibliography.
    """
    missing: Mapping[str, Sequence[str]] = json.loads((context.private / "answers.json").read_text(encoding="utf-8"))
    papers = json.loads((context.public / "library" / "papers.json").read_text(encoding="utf-8"))
    texts = read_texts(context.submission.read_bytes(TEXTS, MAX_BYTES), TEXTS, missing, "passage")
    entries = read_bibliography(context.submission.read_text(REFERENCES, MAX_BYTES), REFERENCES)
    meant = _resolved(entries, papers)
    known = {record["id"] for record in papers}
    matches = []
    for passage in missing:
        keys = [key.strip() for inside in CITATION.findall(texts[passage]) for key in inside.split(",")]
        if unknown := sorted(set(keys) - set(entries)):
            raise InvalidSubmission(
                f"{TEXTS}: passage {passage} cites {unknown[0][:60]!r}, and {REFERENCES} has no entry of this key; add it"
            )
        cited = {meant[key] for key in keys}
        if len(cited) > MOST_CITED:
            raise InvalidSubmission(f"{TEXTS}: passage {passage} cites {len(cited)} papers; cite at most {MOST_CITED}")
        matches.append(match(cited, missing[passage]))
    return row_score(
        [found.f1 for found in matches],
        details={
            "passages": len(matches),
            "entries": len(entries),
            "wrong_entries": sum(paper not in known for paper in meant.values()),
            "precision": statistics.fmean(found.precision for found in matches),
            "recall": statistics.fmean(found.recall for found in matches),
        },
    )


def _resolved(entries: Mapping[str, Entry], papers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the id of the paper that each entry stands for, by the entry's key; a wrong entry gets a text that is no id."""
    titles = {_letters(paper["title"]): paper for paper in papers}
    found = {}
    for key, entry in entries.items():
        if lacking := [field for field in REQUIRED if not entry.fields.get(field)]:
            raise InvalidSubmission(f"{REFERENCES}: the entry {key[:60]!r} has no {lacking[0]}; give it {', '.join(REQUIRED)}")
        paper = titles.get(_letters(entry.fields["title"]))
        if paper is None:
            title = entry.fields["title"][:80]
            raise InvalidSubmission(f"{REFERENCES}: the library has no paper {title!r} ({key[:60]!r}); cite its papers only")
        same = entry.fields["year"] == str(paper["year"]) and _people(entry.fields["author"]) == [
            _letters(name) for name in paper["authors"]
        ]
        found[key] = paper["id"] if same else f"wrong: {key}"
    return found


def _people(authors: str) -> list[str]:
    """Return each author's name, given name first, as `_letters`."""
    names = (name.partition(",") for name in re.split(r"\s+and\s+", authors))
    return [_letters(f"{given} {family}") for family, _, given in names]


def _letters(text: str) -> str:
    """Return a text's letters and digits alone, in lower case."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())
