"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.bibtex_generation.proof import INDEX

NAME = "reviews.json"
STARTER = Path(__file__).parent / "starter" / "train.py"

# The wordings of one thing occur in papers with the same other words, so a space of few dimensions puts them close together.
SEARCH = (
    INDEX
    + '''

KEPT = 8
YEAR = re.compile(r"(since|before) (\\d{4})")


def write_review(question):
    """Cite the papers of the right years that are nearest to a question, in words and in the latent space."""
    known, weights, axes, plain, latent = index()
    asked = np.zeros(len(known))
    for word in words(question):
        if word in known:
            asked[known[word]] += 1
    near = latent @ scaled(asked * weights @ axes) + plain @ scaled(asked * weights)
    if period := YEAR.search(question):
        near -= [9.0 * ((paper["year"] >= int(period[2])) != (period[1] == "since")) for paper in papers()]
    best = [papers()[place] for place in np.argsort(-near)[:KEPT]]
    return "The library has: " + " ".join(f"{paper['title']} [{paper['id']}]." for paper in best)
'''
)


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return reviews that cite all relevant papers and no other: in one bracket, in a bracket each, and twice."""
    _, relevant = _answers(data)
    return {
        "together": _files({question: f"See [{', '.join(ids)}]." for question, ids in relevant.items()}),
        "apart": _files({question: " ".join(f"One is [{paper}]." for paper in ids) for question, ids in relevant.items()}),
        "twice": _files({question: f"[{'; '.join([*ids, *ids])}] and [1] and [sic]" for question, ids in relevant.items()}),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return reviews that cite the same papers for all questions, nothing, another question's papers, or papers outside brackets."""
    papers, relevant = _answers(data)
    others = list(relevant.values())[1:] + list(relevant.values())[:1]
    return {
        "constant": _files(dict.fromkeys(relevant, f"[{', '.join(papers[:30])}]")),
        "empty": _files(dict.fromkeys(relevant, "")),
        "shuffled": _files({question: f"[{', '.join(ids)}]" for question, ids in zip(relevant, others, strict=True)}),
        "not in brackets": _files({question: ", ".join(ids) for question, ids in relevant.items()}),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return files that are not reviews of these questions, and reviews that cite the whole library or invented papers."""
    papers, relevant = _answers(data)
    reviews = {question: f"[{', '.join(ids)}]" for question, ids in relevant.items()}
    first = next(iter(reviews))
    return {
        "empty": Invalid({NAME: ""}, "no JSON"),
        "bytes": Invalid({NAME: b"\xff\xfe{}"}, "not UTF-8"),
        "cut off": Invalid({NAME: json.dumps(reviews)[:-20]}, "no JSON"),
        "too deep": Invalid({NAME: "[" * 100_000}, "no JSON"),
        "a list": Invalid({NAME: json.dumps(list(reviews.values()))}, "no JSON object"),
        "a question missing": Invalid(
            _files({question: text for question, text in reviews.items() if question != first}), f"no question {first}"
        ),
        "a question too many": Invalid(_files({**reviews, "Q99": ""}), "'Q99'"),
        "a question twice": Invalid({NAME: json.dumps(reviews)[:-1] + f', "{first}": ""}}'}, "more than once"),
        "null": Invalid({NAME: json.dumps({**reviews, first: None})}, f"the value of {first} is no text"),
        "a list of ids": Invalid({NAME: json.dumps({**reviews, first: relevant[first]})}, f"the value of {first} is no text"),
        "the whole library": Invalid(_files({**reviews, first: f"[{', '.join(papers)}]"}), f"the review of {first} cites 600 papers"),
        "an invented paper": Invalid(_files({**reviews, first: reviews[first] + " [P0000]"}), f"the review of {first} cites P0000"),
    }


def solution() -> Files:
    """Return a script that searches titles and abstracts, and observes the years in questions."""
    text = STARTER.read_text(encoding="utf-8")
    text = text.replace("import json\nimport re\n\nfrom search import search\n", _IMPORTS)
    return {"train.py": text[: text.index("FOUND = ")] + SEARCH.strip() + "\n\n\n" + text[text.index("def cited(") :]}


def ineffective() -> Files:
    """Return a script that must not win: its reviews cite half as many papers."""
    return edited_starter(__file__, {"FOUND = 20": "FOUND = 10"})


_IMPORTS = "import functools\nimport json\nimport re\n\nimport numpy as np\nfrom search import papers\n"


def _answers(data: Prepared) -> tuple[Sequence[str], Mapping[str, Sequence[str]]]:
    answers = json.loads((data.private / "answers.json").read_text(encoding="utf-8"))
    return answers["papers"], answers["relevant"]


def _files(reviews: Mapping[str, str]) -> Files:
    return {NAME: json.dumps(reviews, indent=2)}
