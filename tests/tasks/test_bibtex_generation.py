"""Missing citations: F1 through a bibliography, BibTeX as people write it, and passages that mean one paper each."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.bibtex_generation.bibliography import read_bibliography
from mlagentbench.tasks.literature_review_tool.papers import FAMILY, KINDS
from tests.tasks.by_hand import score


@pytest.fixture(scope="module")
def missing(data: Prepared) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((data.private / "answers.json").read_text())
    return found


@pytest.fixture(scope="module")
def papers(data: Prepared) -> dict[str, Any]:
    return {paper["id"]: paper for paper in library(data, "papers")}


def library(data: Prepared, name: str) -> Any:
    return json.loads((data.public / "library" / f"{name}.json").read_text())


def entry(paper: dict[str, Any], **changed: str) -> str:
    fields = {"author": " and ".join(paper["authors"]), "title": paper["title"], "year": str(paper["year"]), **changed}
    return f"@article{{{paper['id']}," + ",".join(f" {name} = {{{value}}}" for name, value in fields.items()) + "}\n"


def files(texts: dict[str, str], references: str) -> dict[str, str | bytes]:
    return {"cited.json": json.dumps(texts), "references.bib": references}


def test_the_score_is_the_mean_f1_over_the_passages(
    task: Task, data: Prepared, missing: dict[str, list[str]], papers: dict[str, Any], tmp_path: Path
) -> None:
    cited = {passage: {*ids[:2], *list(papers)[n : n + 2]} for n, (passage, ids) in enumerate(missing.items())}
    texts = {passage: "".join(f"Text \\cite{{{key}}}. " for key in keys) for passage, keys in cited.items()}
    found = score(task, data, files(texts, "".join(map(entry, papers.values()))), tmp_path)
    expected = [2 * len(cited[passage] & set(ids)) / (len(cited[passage]) + len(ids)) for passage, ids in missing.items()]
    assert found.value == pytest.approx(sum(expected) / 20)
    assert 0.3 < found.value < 0.9


@pytest.mark.parametrize("changed", [{"year": "1999"}, {"author": "Ada Nobody"}, {"author": "others"}])
def test_a_wrong_entry_is_a_wrong_citation(
    task: Task, data: Prepared, missing: dict[str, list[str]], papers: dict[str, Any], tmp_path: Path, changed: dict[str, str]
) -> None:
    wrong = missing["T01"][0]
    references = "".join(entry(paper, **(changed if key == wrong else {})) for key, paper in papers.items())
    texts = {passage: f"\\citet{{{','.join(ids)}}}" for passage, ids in missing.items()}
    found = score(task, data, files(texts, references), tmp_path)
    others = sum(wrong in ids for ids in missing.values())
    assert found.details["wrong_entries"] == 1
    assert 1 - others / 20 < found.value < 1


def test_names_may_stand_either_way_and_titles_in_braces_and_capitals(
    task: Task, data: Prepared, missing: dict[str, list[str]], papers: dict[str, Any], tmp_path: Path
) -> None:
    references = "".join(
        entry(
            paper,
            author="  and\n".join(f"{name.split()[1]}, {name.split()[0]}" for name in paper["authors"]),
            title="{" + paper["title"].upper() + "}",
        )
        for paper in papers.values()
    )
    texts = {passage: f"\\cite{{ {' , '.join(ids)} }}" for passage, ids in missing.items()}
    assert score(task, data, files(texts, references), tmp_path).value == 1


def test_bibtex_as_people_write_it_is_read() -> None:
    text = """
    % exported by a tool, me@example.org
    @Comment{nothing}
    @InProceedings{a:b-1,
      Title   = "The {"}quoted{"} {Title}",  author={A and {B {C}}},
      year = 2001 , pages = {1--2},
    }
    @misc( x, note = {} )
    @book{only}
    """
    found = read_bibliography(text, "references.bib")
    assert list(found) == ["a:b-1", "x", "only"]
    assert found["a:b-1"].kind == "inproceedings"
    assert found["a:b-1"].fields == {"title": 'The {"}quoted{"} {Title}', "author": "A and {B {C}}", "year": "2001", "pages": "1--2"}
    assert found["x"].fields == {"note": ""} and found["only"].fields == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n\n@article{a, title = {x}", "line 3: the entry 'a' is not closed"),
        ("@article{a, title = {x {y}", "are not closed"),
        ('@article{a, title = "x}', "are not closed"),
        ('@article{a, title = "x}"}', "are not closed"),
        ("@article{a, title = jan # 1}", "neither in braces nor in quotation marks"),
        ("@article{a, title {x}}", "no field = {value}"),
        ("@article{, title = {x}}", "has no key"),
        ("@article{title = {x}}", "has no key"),
        ("@article{a}@article{a}", "'a' is there twice"),
        ("@preamble{x}", "@preamble is not read"),
    ],
)
def test_what_is_no_bibtex_is_refused_by_its_line(text: str, reason: str) -> None:
    with pytest.raises(InvalidSubmission) as refused:
        read_bibliography(text, "references.bib")
    assert reason in str(refused.value) and "references.bib, line" in str(refused.value)


BLANKS = [text.replace(" ", " " * 400_000) for text in ("@a{k, b = {c} !", "@a{k, b = {c}, !", "@a{k, b !", "@a{k !", "@a !", "@ !")]
"""Runs of blanks that nothing follows which could be read."""


@pytest.mark.parametrize(
    "text", ["@" * 300_000, "@a{" * 100_000, "{" * 300_000, "@a{b, c = {" + "{" * 300_000, "@a{b}@c{d,e={" * 50_000, *BLANKS]
)
def test_hostile_bibliographies_take_no_time(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(InvalidSubmission):
        read_bibliography(text, "references.bib")
    assert time.process_time() - started < 3


def test_a_passage_has_a_mark_for_each_missing_paper_and_fits_no_other(
    data: Prepared, missing: dict[str, list[str]], papers: dict[str, Any]
) -> None:
    for passage in library(data, "passages"):
        *sentences, rest = passage["text"].split("[?]")
        assert rest == "." and len(sentences) == len(missing[passage["id"]]) == len(set(missing[passage["id"]]))
        for sentence, meant in zip(sentences, missing[passage["id"]], strict=True):
            paper, lower = papers[meant], sentence.lower()
            named = [wordings for kind in KINDS for wordings in kind if any(wording.lower() in lower for wording in wordings)]
            said = f"{paper['title']} {paper['abstract']}".lower()
            assert len(named) == 2 and all(any(wording.lower() in said for wording in wordings) for wordings in named)
            families = [family for family in FAMILY if family in sentence]
            assert families in ([], [paper["authors"][0].split()[-1]])
            assert str(paper["year"]) in sentence or not any(character.isdigit() for character in sentence)


def test_examples_are_other_passages(data: Prepared, missing: dict[str, list[str]]) -> None:
    texts = {passage["text"] for passage in library(data, "passages")}
    assert len(texts) == 20
    assert not texts & {example["text"] for example in library(data, "examples")}
    assert all(example["text"].count("[?]") == len(example["cited"]) for example in library(data, "examples"))
