"""What an agent cites that has read the graders of the two tools and searches nothing: no better than papers drawn at random.

Their starters score 0, over which anything is a gain; so what these leave is compared with what a search reaches, 0.3 and 0.6.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task, find_task
from mlagentbench.task.proofs import Files
from mlagentbench.task.seeds import SEED
from tests.tasks.by_hand import mini, score

Papers = Sequence[Mapping[str, Any]]
NOTHING = 0.06
"""F1 that is next to nothing: of thirty papers of six hundred, drawn at random, it is 0.02."""


class Library(NamedTuple):
    """What is public of a tool's task."""

    task: Task
    data: Prepared
    papers: Papers
    asked: Sequence[str]
    """The ids of its questions or passages."""
    examples: Sequence[Sequence[str]]
    """The papers that other questions ask for."""


def library(task_id: str, root: Path, asked: str, cited: str) -> Library:
    task = find_task(task_id)
    data = mini(task, root, SEED)
    read = {name: json.loads((data.public / "library" / f"{name}.json").read_text()) for name in ("papers", asked, "examples")}
    return Library(task, data, read["papers"], [each["id"] for each in read[asked]], [each[cited] for each in read["examples"]])


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return library("literature-review-tool", tmp_path_factory.mktemp("reviews"), "questions", "relevant")


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return library("bibtex-generation", tmp_path_factory.mktemp("passages"), "passages", "cited")


def worth(found: Library, files: Files, folder: Path) -> float:
    """The score; 0 of what is refused, with words that say why."""
    try:
        return score(found.task, found.data, files, folder).value
    except InvalidSubmission as refused:
        assert len(str(refused)) < 600
        return 0.0


def _ids(papers: Papers) -> list[str]:
    return [str(paper["id"]) for paper in papers]


def _frequent(found: Library, count: int) -> list[str]:
    """The papers that examples ask for most often, and some more."""
    named = list(itertools.chain(*found.examples))
    ids = sorted(dict.fromkeys(named), key=lambda paper: -named.count(paper)) + _ids(found.papers)
    return list(dict.fromkeys(ids))[:count]


Review = Callable[[Library, int], str]
REVIEWS: Mapping[str, Review] = {
    "what examples ask for": lambda found, place: f"[{', '.join(_frequent(found, 30))}]",
    "thirty others each time": lambda found, place: f"[{', '.join(_ids(found.papers)[30 * place :][:30])}]",
    "all": lambda found, place: f"[{', '.join(_ids(found.papers))}]",
    "all, in a bracket each": lambda found, place: "".join(f"[{paper}]" for paper in _ids(found.papers)),
    "all, in small letters": lambda found, place: f"[{', '.join(_ids(found.papers)).lower()}]",
    "a range": lambda found, place: "[P0000-P9999] [P0001..P9999] [P*] [P\\d+] [P%]",
    "nothing but a letter": lambda found, place: "[P]",
    "digits of another script": lambda found, place: (
        "[P" + "".join(chr(0x660 + int(digit)) for digit in found.papers[place]["id"][1:]) + "]"
    ),
    "ids run together": lambda found, place: f"[{''.join(_ids(found.papers))}]",
    "brackets in brackets": lambda found, place: "[" * 100 + ", ".join(_ids(found.papers)[:30]) + "]" * 100,
}


@pytest.mark.parametrize("trick", REVIEWS)
def test_a_review_that_searches_nothing_is_worth_nothing(trick: str, reviews: Library, tmp_path: Path) -> None:
    texts = {question: REVIEWS[trick](reviews, place) for place, question in enumerate(reviews.asked)}
    assert worth(reviews, {"reviews.json": json.dumps(texts)}, tmp_path) < NOTHING


def _entry(key: str, paper: Mapping[str, Any], **changed: object) -> str:
    fields = {"author": " and ".join(paper["authors"]), "title": paper["title"], "year": paper["year"], **changed}
    return f"@article{{{key}," + ",".join(f" {name} = {{{value}}}" for name, value in fields.items()) + "}\n"


def _cited(found: Library, texts: Callable[[int], str], entries: str) -> Files:
    return {"cited.json": json.dumps({name: texts(place) for place, name in enumerate(found.asked)}), "references.bib": entries}


def _cite(keys: Sequence[str]) -> str:
    return f"\\cite{{{','.join(keys)}}}"


def every_title_in_one_entry(found: Library) -> Files:
    """An entry with the title, authors and year of every paper, one after another."""
    fields = ", ".join(
        f"author = {{{' and '.join(paper['authors'])}}}, title = {{{paper['title']}}}, year = {paper['year']}" for paper in found.papers
    )
    return _cited(found, lambda place: _cite(["all"]), f"@article{{all, {fields}}}")


def a_key_that_means_every_paper(found: Library) -> Files:
    """One key, with an entry for each paper."""
    return _cited(found, lambda place: _cite(["all"]), "".join(_entry("all", paper) for paper in found.papers))


def keys_that_look_alike(found: Library) -> Files:
    """Keys of other capitals and other blanks for each of many papers, of which few are cited."""
    keys = ["a", "A", "\u0430", "\u0391", "a.", "a:"]
    return _cited(found, lambda place: _cite([" a ", "A"]), "".join(map(_entry, keys, found.papers)))


PASSAGES: Mapping[str, Callable[[Library], Files]] = {
    "what examples cite": lambda found: _cited(
        found, lambda place: _cite(_frequent(found, 10)), "".join(_entry(paper["id"], paper) for paper in found.papers)
    ),
    "ten others each time": lambda found: _cited(
        found, lambda place: _cite(_ids(found.papers)[10 * place :][:10]), "".join(_entry(paper["id"], paper) for paper in found.papers)
    ),
    "all": lambda found: _cited(
        found, lambda place: _cite(_ids(found.papers)), "".join(_entry(paper["id"], paper) for paper in found.papers)
    ),
    "all, each by its own command": lambda found: _cited(
        found, lambda place: "".join(map(_cite, zip(_ids(found.papers)))), "".join(_entry(paper["id"], paper) for paper in found.papers)
    ),
    "nothing, in braces": lambda found: _cited(found, lambda place: "\\cite{} \\cite{,} \\cite{*} \\nocite{*}", ""),
    "every title in one entry": every_title_in_one_entry,
    "a key that means every paper": a_key_that_means_every_paper,
    "keys that look alike": keys_that_look_alike,
}


@pytest.mark.parametrize("trick", PASSAGES)
def test_citations_that_search_nothing_are_worth_nothing(trick: str, passages: Library, tmp_path: Path) -> None:
    assert worth(passages, PASSAGES[trick](passages), tmp_path) < NOTHING


def test_no_two_papers_are_one_to_the_grader(passages: Library) -> None:
    from mlagentbench.tasks.bibtex_generation.grade import _letters

    assert len({_letters(paper["title"]) for paper in passages.papers}) == len(passages.papers)
