"""Literature reviews: F1 worked out here too, what counts as a citation, and questions that ask for just what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.literature_review_tool.papers import KINDS
from mlagentbench.tasks.literature_review_tool.reading import match
from tests.tasks.by_hand import folders, score


@pytest.fixture(scope="module")
def relevant(data: Prepared) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((data.private / "answers.json").read_text())["relevant"]
    return found


def library(data: Prepared, name: str) -> Any:
    return json.loads((data.public / "library" / f"{name}.json").read_text())


def reviews(texts: dict[str, str]) -> dict[str, str | bytes]:
    return {"reviews.json": json.dumps(texts)}


def test_the_score_is_the_mean_f1_over_the_questions(task: Task, data: Prepared, relevant: dict[str, list[str]], tmp_path: Path) -> None:
    papers = [paper["id"] for paper in library(data, "papers")]
    cited = {question: {*ids[: len(ids) // 2], *papers[10 * n : 10 * n + 5]} for n, (question, ids) in enumerate(relevant.items())}
    found = score(task, data, reviews({question: f"Cf. [{', '.join(sorted(ids))}]." for question, ids in cited.items()}), tmp_path)
    expected = []
    for question, ids in relevant.items():
        precision = sum(paper in ids for paper in cited[question]) / len(cited[question])
        recall = sum(paper in cited[question] for paper in ids) / len(ids)
        expected.append(2 / (1 / precision + 1 / recall) if precision else 0)
    assert 0.2 < found.value < 0.9
    assert found.value == pytest.approx(sum(expected) / 20)


def test_f1_at_its_ends() -> None:
    assert match([], ["a"]) == (0, 0, 0)
    assert match(["b"], ["a"]) == (0, 0, 0)
    assert match(["a", "a"], ["a"]) == (1, 1, 1)
    assert match(["a", "b"], ["a"]).f1 == pytest.approx(2 / 3)


def test_only_ids_in_brackets_are_citations(task: Task, data: Prepared, relevant: dict[str, list[str]], tmp_path: Path) -> None:
    plain = {question: f"See {', '.join(ids)} and P0000, [1] and [see P{{}}]." for question, ids in relevant.items()}
    assert score(task, data, reviews(plain), tmp_path / "a").value == 0
    prose = {question: " ".join(f"As shown [cf. {key}]," for key in ids) for question, ids in relevant.items()}
    assert score(task, data, reviews(prose), tmp_path / "b").value == 1


def test_one_invented_paper_spoils_all(task: Task, data: Prepared, relevant: dict[str, list[str]], tmp_path: Path) -> None:
    texts = {question: f"[{', '.join(ids)}]" for question, ids in relevant.items()}
    texts["Q07"] += " and [P99999]"
    with pytest.raises(InvalidSubmission, match="review of Q07 cites P99999"):
        score(task, data, reviews(texts), tmp_path)


def test_a_question_asks_for_the_papers_that_say_what_it_names(data: Prepared, relevant: dict[str, list[str]]) -> None:
    """Each relevant paper names both things of its question, in some wording, and lies in its years; of the others few do."""
    papers = {paper["id"]: paper for paper in library(data, "papers")}
    for question in library(data, "questions"):
        text = question["question"].lower()
        named = [wordings for kind in KINDS for wordings in kind if any(wording.lower() in text for wording in wordings)]
        period = re.search(r"(since|before) (\d{4})", text)

        def fits(paper: dict[str, Any], named: list[Any] = named, period: re.Match[str] | None = period) -> bool:
            said = f"{paper['title']} {paper['abstract']}".lower()
            in_time = period is None or (paper["year"] >= int(period[2])) == (period[1] == "since")
            return in_time and all(any(wording.lower() in said for wording in wordings) for wordings in named)

        assert len(named) == 2
        fitting = {key for key, paper in papers.items() if fits(paper)}
        assert set(relevant[question["id"]]) <= fitting
        assert len(fitting) < 4 * len(relevant[question["id"]]) + 8


def test_the_index_says_nothing_of_what_a_paper_is_about_but_its_words(data: Prepared, relevant: dict[str, list[str]]) -> None:
    papers = library(data, "papers")
    assert {tuple(paper) for paper in papers} == {("id", "title", "authors", "year", "venue", "abstract")}
    assert len({paper["id"] for paper in papers}) == len({paper["title"] for paper in papers}) == 600
    assert [paper["id"] for paper in papers] == sorted(paper["id"] for paper in papers)
    asked = {tuple(ids) for ids in relevant.values()}
    assert len(asked) == 20 and not asked & {tuple(example["relevant"]) for example in library(data, "examples")}


def test_the_full_variant_has_another_library_for_each_seed(task: Task, data: Prepared, tmp_path: Path) -> None:
    prepare = task.module("prepare")
    assert prepare is not None
    libraries = {(data.public / "library" / "papers.json").read_bytes()}
    for seed in (2**50, 2**51):
        made = folders(tmp_path / f"{seed}")
        prepare.full(made.public, made.private, seed)
        libraries.add((made.public / "library" / "papers.json").read_bytes())
    assert len(libraries) == 3


def test_the_search_finds_titles_and_never_more_than_it_may(task: Task, data: Prepared) -> None:
    code = (
        "from search import search; print(len(search('protein folding', 500)), search('protein folding', 1)[0]['title'], search('xyzzy'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(task.starter)!r}); {code}"],
        cwd=data.public,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("20 ") and "rotein folding" in ended.stdout and ended.stdout.endswith("[]\n")
