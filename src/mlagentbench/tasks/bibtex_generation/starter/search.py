"""The search service of the library, as a stand-in that reads the local index."""

import functools
import json
import re

INDEX = "library/papers.json"
MOST = 20


@functools.cache
def papers():
    """All papers of the library, each a dict with `id`, `title`, `authors`, `year`, `venue` and `abstract`."""
    with open(INDEX, encoding="utf-8") as file:
        return json.load(file)


def words(text):
    """The words of a text, in lower case."""
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def search(query, limit=10):
    """Find the papers whose titles share most words with a query, the best first; at most `limit`, and never more than MOST."""
    asked = words(query)
    ranked = sorted(papers(), key=lambda paper: -len(asked & words(paper["title"])))
    return [paper for paper in ranked[: min(limit, MOST)] if asked & words(paper["title"])]
