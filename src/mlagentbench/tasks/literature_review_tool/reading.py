"""Read a submission's JSON strictly, and score the papers that it names."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from mlagentbench.errors import InvalidSubmission

MAX_BYTES = 16 * 2**20


class Match(NamedTuple):
    """Agreement of found and relevant papers, each figure from 0 to 1."""

    precision: float
    recall: float
    f1: float


def match(found: Collection[str], relevant: Collection[str]) -> Match:
    """Compute precision, recall and F1 (van Rijsbergen, Information Retrieval, 1979, chapter 7); all are 0 where none is found."""
    both = len(set(found) & set(relevant))
    precision, recall = (both / len(set(part)) if part else 0.0 for part in (found, relevant))
    return Match(precision, recall, 2 * precision * recall / (precision + recall) if both else 0.0)


def read_texts(data: bytes, name: str, ids: Collection[str], what: str) -> Mapping[str, str]:
    """Read a JSON object that has one text for each id, and nothing else.

    Args:
        data: the file's bytes.
        name: the file's name, for error messages.
        ids: the keys that the object must have.
        what: what an id identifies, for error messages, such as "question".

    Raises:
        InvalidSubmission: the file is not such an object.
    """
    try:
        found = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once)
    except _Twice as twice:
        raise InvalidSubmission(f"{name} has the {what} {twice} more than once; write one text for each") from None
    except UnicodeDecodeError as error:
        raise InvalidSubmission(f"{name} is not UTF-8 (byte {error.start}); write it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InvalidSubmission(f"{name} is no JSON: {error}; write it with json.dump") from None
    if not isinstance(found, dict):
        raise InvalidSubmission(f"{name} is no JSON object; write one with a text for each {what}")
    lacking = [each for each in ids if each not in found]
    if lacking:
        raise InvalidSubmission(
            f"{name} lacks {len(lacking)} of {len(ids)}: there is no {what} {', '.join(lacking[:3])}; write a text for each"
        )
    surplus = [str(each)[:60] for each in found if each not in ids]
    if surplus:
        raise InvalidSubmission(f"{name} has {', '.join(map(repr, surplus[:3]))}, which is the id of no {what}")
    for each, text in found.items():
        if not isinstance(text, str):
            raise InvalidSubmission(f"{name}: the value of {each} is no text; write a string, which may be empty")
    return found


class _Twice(Exception):
    """Raised where an object has a key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(repr(key[:60]))
        found[key] = value
    return found
