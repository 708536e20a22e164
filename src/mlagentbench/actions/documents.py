"""Search a folder of documents by words: Okapi BM25 as Lucene computes it (Kamphuis et al. 2020, doi 10.1007/978-3-030-45442-5_4).

The ranking is that of the library bm25s (Lu 2024, arXiv 2407.03618). What is searched are passages, so that an observation stays short
whatever a document's length.
"""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from mlagentbench.actions.base import ActionContext, Observation, action
from mlagentbench.errors import ActionError

if TYPE_CHECKING:
    import bm25s

PASSAGE = 1500
"""The most characters of a passage; paragraphs are put together up to that, and a longer one is cut."""
MOST_FOUND = 5
"""The most passages of an observation."""
WORDS = r"(?u)\b\w+\b"
"""What counts as a word: also single letters and numbers, which name things in formulas."""


class DocumentPart(NamedTuple):
    """A part of a document."""

    document: str
    """The document's path in the folder."""
    line: int
    """The number of its first line, from 1."""
    text: str


class Index(NamedTuple):
    """The passages of a folder, ready to be searched."""

    passages: tuple[DocumentPart, ...]
    ranking: bm25s.BM25

    def search(self, query: str) -> list[tuple[DocumentPart, float]]:
        """Return the passages that share words with a query, with their scores, the best first; equal ones in the folder's order."""
        import numpy as np

        (words,) = _words([query])
        scores = self.ranking.get_scores(words) if words else np.zeros(len(self.passages))
        order = np.argsort(-scores, kind="stable")[:MOST_FOUND]
        return [(self.passages[place], float(scores[place])) for place in order if scores[place] > 0]


@action("Search Documents", returns="The observation will be the passages that match best, each with its document and line.", hidden=True)
async def search_documents(context: ActionContext, query: Annotated[str, "the words to look for"]) -> Observation:
    """Search the documents for passages with some words. Rare words count most; the order of words does not count."""
    if context.documents is None:
        raise ActionError("There are no documents to search.")
    index = await asyncio.to_thread(index_of, context.documents)
    found = index.search(query)
    if not found:
        raise ActionError("No passage has any of these words. Use other words.")
    return Observation(
        "\n\n".join(f"{passage.document}, from line {passage.line}:\n{passage.text}" for passage, _ in found),
        details={
            "retrieved": [{"document": passage.document, "line": passage.line, "score": round(score, 4)} for passage, score in found],
        },
    )


def index_of(folder: Path) -> Index:
    """Return the index of a folder. Files that are no text are left out.

    Raises:
        ActionError: there is no text in the folder.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    contents = [(str(path.relative_to(folder)), path.read_bytes()) for path in paths]
    return _index(tuple((name, content.decode("utf-8", "replace")) for name, content in contents if b"\0" not in content))


@functools.lru_cache(maxsize=8)
def _index(documents: tuple[tuple[str, str], ...]) -> Index:
    """Return the index of documents by name. Runs that have copies of the same documents share it."""
    import bm25s

    passages = tuple(passage for name, text in documents for passage in _passages(name, text))
    words = _words([passage.text for passage in passages])
    if not any(words):
        raise ActionError("The documents hold no text.")
    ranking = bm25s.BM25()
    ranking.index(words, show_progress=False)
    return Index(passages, ranking)


def _passages(name: str, content: str) -> list[DocumentPart]:
    """Return the passages of a document: whole paragraphs as far as they fit."""
    found: list[DocumentPart] = []
    text, first = "", 1
    for number, line in enumerate(content.splitlines(), start=1):
        for start in range(0, len(line) or 1, PASSAGE):
            part = line[start : start + PASSAGE]
            if text and (len(text) + len(part) > PASSAGE or (len(text) >= PASSAGE // 2 and not part.strip())):
                found.append(DocumentPart(name, first, text.strip("\n")))
                text = ""
            if not text:
                first = number
            text += f"{part}\n" if text or part.strip() else ""
    return [*found, DocumentPart(name, first, text.strip("\n"))] if text else found


def _words(texts: list[str]) -> list[list[str]]:
    """Return the words of some texts, in lower case and without the most frequent words of English."""
    import bm25s

    found: list[list[str]] = bm25s.tokenize(texts, token_pattern=WORDS, stopwords="en", return_ids=False, show_progress=False)
    return found
