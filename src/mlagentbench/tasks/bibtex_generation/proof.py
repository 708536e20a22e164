"""The task's proof: submissions and scripts that must win, that must not, and that must be refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlagentbench import Files, Invalid, Prepared, edited_starter

TEXTS, REFERENCES = "cited.json", "references.bib"
STARTER = Path(__file__).parent / "starter" / "train.py"

Missing = Mapping[str, Sequence[str]]
Papers = Mapping[str, Mapping[str, Any]]

INDEX = '''
DIMENSIONS = 40


def words(text):
    """The words of a text, without endings."""
    return [word[:6] for word in re.findall(r"[a-z]{3,}", text.lower())]


def scaled(rows):
    return rows / (np.linalg.norm(rows, axis=-1, keepdims=True) + 1e-9)


@functools.cache
def index():
    """Words by their places, their weights, and the papers in a latent space (Deerwester et al., 1990)."""
    texts = [words(f"{paper['title']} {paper['title']} {paper['abstract']}") for paper in papers()]
    known = {word: place for place, word in enumerate(sorted({word for text in texts for word in text}))}
    counts = np.zeros((len(texts), len(known)))
    for row, text in enumerate(texts):
        for word in text:
            counts[row, known[word]] += 1
    weights = np.log(len(texts) / (counts > 0).sum(axis=0))
    _, _, axes = np.linalg.svd(counts * weights, full_matrices=False)
    axes = axes[:DIMENSIONS].T
    return known, weights, axes, scaled(counts * weights), scaled(counts * weights @ axes)
'''
"""A latent index of the papers, by which a good solution searches."""

SEARCH = (
    INDEX
    + '''

def nearest(sentence):
    """The paper that fits a sentence best: by its author, year and venue where these are named, then by its words."""
    known, weights, axes, plain, latent = index()
    asked = np.zeros(len(known))
    for word in words(sentence):
        if word in known:
            asked[known[word]] += 1
    near = latent @ scaled(asked * weights @ axes) + plain @ scaled(asked * weights)
    year = re.search(r"\\b(19|20)\\d\\d\\b", sentence)
    families = {paper["authors"][0].split()[-1] for paper in papers()} & set(re.findall(r"\\w+", sentence))
    for place, paper in enumerate(papers()):
        near[place] += 3 * (year is not None and str(paper["year"]) == year[0])
        near[place] += 3 * (paper["authors"][0].split()[-1] in families) + 3 * (paper["venue"] in sentence)
        near[place] += ("and others" in sentence) == (len(paper["authors"]) > 1)
    return papers()[int(near.argmax())]


def cite(passage):
    """Cite the nearest paper for each sentence with a mark."""
    *sentences, rest = passage.split("[?]")
    found = [nearest(sentence) for sentence in sentences]
    text = "".join(f"{sentence}\\\\cite{{{paper['id']}}}" for sentence, paper in zip(sentences, found)) + rest
    return text, {paper["id"]: paper for paper in found}
'''
)


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the missing papers, cited one by one and together, with entries in two styles of BibTeX."""
    papers, missing = _answers(data)
    chosen = {key: papers[key] for ids in missing.values() for key in ids}
    quoted = "".join(
        f'@InProceedings( x:{key} ,\n title="{{{paper["title"]}}}", note = {{a {{nested}} note}},\n Year = {paper["year"]}, '
        f'author = "{" and ".join(", ".join(name.split()[::-1]) for name in paper["authors"])}",\n)\n% a comment\n'
        for key, paper in chosen.items()
    )
    return {
        "apart": _files({passage: " ".join(f"\\cite{{{key}}}" for key in ids) for passage, ids in missing.items()}, _entries(chosen)),
        "together": _files({passage: f"\\citep{{{', '.join(ids)}}}" for passage, ids in missing.items()}, _entries(papers)),
        "other manner": _files(
            {passage: "\\cite{" + ",".join(f"x:{key}" for key in ids) + "}" for passage, ids in missing.items()}, quoted
        ),
    }


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return the same papers for all passages, none, those of another passage, and the right ones with wrong years."""
    papers, missing = _answers(data)
    others = list(missing.values())[1:] + list(missing.values())[:1]
    late = {key: {**paper, "year": paper["year"] + 1} for key, paper in papers.items()}
    return {
        "constant": _files(dict.fromkeys(missing, f"\\cite{{{','.join(list(papers)[:10])}}}"), _entries(papers)),
        "empty": _files(dict.fromkeys(missing, ""), ""),
        "shuffled": _files({name: f"\\cite{{{','.join(ids)}}}" for name, ids in zip(missing, others, strict=True)}, _entries(papers)),
        "wrong years": _files({passage: f"\\cite{{{','.join(ids)}}}" for passage, ids in missing.items()}, _entries(late)),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    papers, missing = _answers(data)
    texts = {passage: f"\\cite{{{','.join(ids)}}}" for passage, ids in missing.items()}
    first, *_ = texts
    key, paper = next(iter(papers.items()))
    entries = _entries(papers)
    nobody = f"@misc{{{key}, author = {{A B}}, title = {{Attention Is Not Here}}, year = 2017}}"
    return {
        "empty": Invalid(_files(None, entries), "no JSON"),
        "a passage missing": Invalid(_files({name: text for name, text in texts.items() if name != first}, entries), f"no passage {first}"),
        "a passage too many": Invalid(_files({**texts, "T99": ""}, entries), "'T99'"),
        "lists for texts": Invalid({TEXTS: json.dumps(missing), REFERENCES: entries}, "no text"),
        "empty bibliography": Invalid(_files(texts, ""), "has no entry of this key"),
        "an entry missing": Invalid(_files({**texts, first: "\\cite{nowhere}"}, entries), "'nowhere'"),
        "an invented paper": Invalid(_files(texts, entries.partition("@article")[0] + nobody), "no paper 'Attention Is Not Here'"),
        "a key twice": Invalid(_files(texts, entries + _entries({key: paper})), "there twice"),
        "no year": Invalid(_files(texts, f"@misc{{a, author = {{A}}, title = {{{paper['title']}}}}}"), "has no year"),
        "no key": Invalid(_files(texts, "@misc{author = {A}}"), "no key"),
        "not closed": Invalid(_files(texts, entries[:-3]), "not closed"),
        "an abbreviation": Invalid(_files(texts, "@string{jmlr = {Journal}}\n" + entries), "@string is not read"),
        "bytes": Invalid({TEXTS: json.dumps(texts), REFERENCES: b"\xff\xfe@"}, "UTF-8"),
        "the whole library": Invalid(_files({**texts, first: f"\\cite{{{','.join(papers)}}}"}, entries), "cite at most 10"),
    }


def solution() -> Files:
    """Return a script that must win: a search of titles and abstracts that uses authors, years and venues."""
    text = STARTER.read_text(encoding="utf-8")
    imports = "import functools\nimport json\nimport re\n\nimport numpy as np\nfrom search import papers\n"
    text = text.replace("import json\n\nfrom search import search\n", imports)
    start, end = text.index("FOUND = "), text.index("def bibliography(")
    return {"train.py": f"{text[:start]}{SEARCH.strip()}\n\n\n{text[end:]}"}


def ineffective() -> Files:
    """Return a script that must not win: it asks the search service for half as many papers."""
    return edited_starter(__file__, {"FOUND = 20": "FOUND = 10"})


def _answers(data: Prepared) -> tuple[Papers, Missing]:
    papers = json.loads((data.public / "library" / "papers.json").read_text(encoding="utf-8"))
    return {paper["id"]: paper for paper in papers}, json.loads((data.private / "answers.json").read_text(encoding="utf-8"))


def _entries(papers: Papers) -> str:
    def entry(key: str, authors: Iterable[str], title: str, year: int) -> str:
        return f"@article{{{key},\n  author = {{{' and '.join(authors)}}},\n  title = {{{title}}},\n  year = {{{year}}}\n}}\n"

    return "\n".join(entry(key, paper["authors"], paper["title"], paper["year"]) for key, paper in papers.items())


def _files(texts: Mapping[str, str] | None, references: str) -> Files:
    return {TEXTS: "" if texts is None else json.dumps(texts, indent=2), REFERENCES: references}
