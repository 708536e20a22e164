"""An object in a wrapping: in a list of one, as text that holds its JSON, with each quote escaped or each brace doubled."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from mlagentbench.agents._replies.escapes import Unreadable
from mlagentbench.agents._replies.loose_json import read_call, read_object
from mlagentbench.agents._replies.values import LooseObject

_ESCAPED = re.compile(r'\{\s*+\\"')
_DOUBLED = re.compile(r"\{\s*+(?=\{\s*+[\"'])")
_PLAIN_QUOTE = re.compile(r'(?<!\\)"')
_OTHER_ESCAPE = re.compile(r'\\[^"]')


def read_arguments(text: str, start: int, keys: Collection[str], stop: int) -> LooseObject:
    """Read the arguments that begin with the brace at `start`, or a call's with its parenthesis.

    Args:
        text: the whole reply.
        start: where they begin.
        keys: the names that they may have.
        stop: where the next label is, or the text's end.

    Raises:
        Unreadable: they are broken, unfinished, or can be read in two ways.
    """
    if text[start] == "(":
        return read_call(text, start, stop)
    before = text[max(0, start - 20) : start].rstrip()
    if _ESCAPED.match(text, start):
        return _from_text(text, start - 1) if before.endswith('"') else _from_escaped(text, start, stop)
    if doubled := _DOUBLED.match(text, start):
        return _from_doubled(text, doubled.end(), keys, stop)
    found = read_object(text, start, keys, stop)
    if before.endswith("[") and not re.compile(r"\s*+\]").match(text, found.end):
        raise Unreadable("it is a list of several objects")
    return found


def _from_text(text: str, start: int) -> LooseObject:
    try:
        inner, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except ValueError:
        raise Unreadable("it is text that holds JSON, and not the JSON itself") from None
    return LooseObject(_one_object(inner).pairs, end)


def _from_escaped(text: str, start: int, stop: int) -> LooseObject:
    """An object whose quotes all are escaped, as within text, and in which no other backslash is."""
    end = text.rfind("}", start, stop) + 1
    inner = text[start:end]
    if not end or _PLAIN_QUOTE.search(inner) or _OTHER_ESCAPE.search(inner):
        raise Unreadable('it is text that holds JSON, and not the JSON itself; write its quotes as "')
    return LooseObject(_one_object(inner.replace('\\"', '"')).pairs, end)


def _one_object(inner: str) -> LooseObject:
    found = read_object(inner, 0, (), len(inner))
    if inner[found.end :].strip():
        raise Unreadable("it is text that holds more than one object")
    return found


def _from_doubled(text: str, start: int, keys: Collection[str], stop: int) -> LooseObject:
    """An object in doubled braces, as in a template. There a brace within its text would be doubled as well."""
    found = read_object(text, start, keys, stop)
    closing = re.compile(r"\s*+\}").match(text, found.end)
    if closing is None or {"{", "}"} & set(text[start + 1 : found.end - 1]):
        raise Unreadable("its braces are doubled")
    return LooseObject(found.pairs, closing.end())
