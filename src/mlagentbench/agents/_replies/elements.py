"""Arguments as elements: `<invoke name="Execute Script"><parameter name="script_name">train.py</parameter></invoke>` and its like.

What stands between the tags is the value, character by character. A line break next to a tag could belong to the value or to the layout, so
one is taken for layout only where the value has no other, or where the form has it so (`<parameter=script_name>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mlagentbench.agents._replies.escapes import Unreadable
from mlagentbench.agents._replies.values import LooseObject, Value

_ELEMENT = re.compile(r"<(?:(invoke)\s+name=\"([^\"<>\n]{1,60})\"|(function)=([^<>\n]{1,60})|([A-Za-z][\w-]{0,60}))>(?=\s*+<[A-Za-z])")
_CHILD = re.compile(r"\s*+<(?:(parameter)\s+name=\"([^\"<>\n]{1,60})\"|(parameter)=([^<>\n]{1,60})|([A-Za-z][\w-]{0,60}))>")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,7});")


class Element(NamedTuple):
    """An element that holds others, and so may be a call."""

    phrase: str
    """Its name, or the one that it gives."""
    tag: str
    start: int
    inside: int
    """Where its content begins."""


def elements(text: str) -> Iterator[Element]:
    """The elements of a text that begin with an element."""
    for found in _ELEMENT.finditer(text):
        tag, phrase = (group for group in (*found.groups(), found.group(5)) if group is not None)
        yield Element(phrase, tag, found.start(), found.end())


def read_children(text: str, start: int, stop: int, parent: str = "") -> LooseObject | None:
    """The elements in a row from `start` on, as arguments; with a `parent`, up to its closing tag. None where there are none.

    Raises:
        Unreadable: one is not closed, is given twice, or its value can be read in two ways.
    """
    pairs: dict[str, Value] = {}
    at = start
    while child := _CHILD.match(text, at, stop):
        tag, name = (group for group in (*child.groups(), child.group(5)) if group is not None)
        end = text.find(f"</{tag}>", child.end(), stop)
        if end < 0:
            raise Unreadable(f"<{tag}> has no end, as if the reply had been cut off")
        if name in pairs:
            raise Unreadable(f"<{name}> is given twice")
        pairs[name] = _value(text[child.end() : end], padded=child.group(3) is not None)
        at = end + len(tag) + 3
    if not pairs:
        return None
    if parent:
        closing = re.compile(rf"\s*+</{re.escape(parent)}>").match(text, at, stop)
        if closing is None:
            raise Unreadable(f"</{parent}> was expected behind its arguments")
        at = closing.end()
    return LooseObject(pairs, at)


def _value(written: str, *, padded: bool) -> str:
    if _ENTITY.search(written) or re.search(r"</?(?:invoke|parameter|function)\b", written):
        raise Unreadable("a value between its tags can be read in two ways; write the arguments as a JSON object")
    if padded and len(written) > 1 and written[0] == written[-1] == "\n":
        return written[1:-1]
    if written.strip() and "\n" not in written.strip():
        return written.strip() if "\n" in written else written
    if "\n" in (written[:1], written[-1:]):
        raise Unreadable("whether a line break next to a tag belongs to the value cannot be told; write the arguments as a JSON object")
    return written
