"""Reads objects whose strings hold unescaped quotes, by splitting them at the names of their arguments.

The result is None if there is not exactly one way to split, or if a quote or a backslash in a string could mean something else.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from mlagentbench.agents.reply.escapes import APOSTROPHE, DRIVE, ESCAPE, JSON_ESCAPES, decode, in_quotes
from mlagentbench.agents.reply.values import CONSTANTS, NUMBER, Ambiguous, NumberText, ParsedObject, Value

_DOCSTRING = re.compile(r'(?<!["\\])"""(?!")[^"]*+(?:"{1,2}(?!")[^"]*+)*+"""(?!")')
_ENDS_HERE = r"(?=[ \t]*+(?:[\r\n`<]|$|\Z))"


def cut_at_keys(text: str, start: int, keys: Collection[str], limit: int) -> ParsedObject | None:
    """Read a flat object by splitting it at its argument names; return None if there is not exactly one way to do so."""
    head = re.compile(r"\{\s*+([\"'])").match(text, start, limit)
    if head is None or not keys:
        return None
    quote = head.group(1)
    names = "|".join(re.escape(key) for key in keys)
    heads = re.compile(rf"(?:(?<=\{{)|(?<=,))\s*+{quote}({names}){quote}\s*+:\s*+")
    cuts = [match for match in heads.finditer(text, start, limit) if match.start() == start + 1 or _after_value(text, match.start(), quote)]
    given = [match.group(1) for match in cuts]
    if not cuts or cuts[0].start() != start + 1 or len(set(given)) < len(given):
        return None
    last_is_text = text.startswith(quote, cuts[-1].end())
    tail = re.compile((rf"{quote}\s*+,?\s*+" if last_is_text else "") + rf"\}}{_ENDS_HERE}", re.MULTILINE)
    ends = list(tail.finditer(text, cuts[-1].end() + last_is_text, limit))
    if len(ends) != 1:
        return None
    pairs: dict[str, Value] = {}
    stops = [cut.start() - 1 for cut in cuts[1:]] + [ends[0].start() + last_is_text]
    for cut, stop in zip(cuts, stops, strict=True):
        value = _bare_value(text[cut.end() : stop].rstrip(), quote)
        if value is None:
            return None
        pairs[cut.group(1)] = value
    return ParsedObject(pairs, ends[0].end())


def _after_value(text: str, pos: int, quote: str) -> bool:
    """Return whether the comma before `pos` can end a value: it follows a quote, a digit or a constant."""
    before = text[max(0, pos - 200) : pos - 1].rstrip()
    return text[pos - 1] == "," and (before.endswith((quote, "true", "false", "True", "False")) or before[-1:].isdigit())


def _bare_value(span: str, quote: str) -> str | NumberText | bool | None:
    """Return the value of a span; None if its quotes or escapes could mean something else."""
    if not span.startswith(quote):
        return NumberText(span) if NUMBER.fullmatch(span) else CONSTANTS.get(span)
    inner = span[1:-1]
    if len(span) < 2 or not span.endswith(quote) or span.endswith("\\" + quote):
        return None
    if quote not in inner:
        try:
            return decode(inner, quote)
        except Ambiguous:
            return None
    if inner.startswith(quote) and inner.endswith(quote):
        return None  # the quotes may belong to the text, or be doubled by mistake
    counted = APOSTROPHE.sub("", inner) if quote == "'" else _DOCSTRING.sub(" ", inner)
    if counted.count(quote) % 2 or _joins(counted, quote) or _has_key(inner, quote):
        return None
    lines = inner.split("\\n")
    escapes = set(ESCAPE.findall(inner)) - {"n"}
    if escapes & {*JSON_ESCAPES, "'", "_"} or any(len(escape) > 1 for escape in escapes):
        return None
    if len(lines) > 1 and ("\n" in inner or escapes or DRIVE.search(inner) or in_quotes(inner)):
        return None
    return "\n".join(lines)


def _joins(counted: str, quote: str) -> bool:
    """Return whether a text could be several strings, joined as Python joins them, or could end before a comment."""
    ends = re.search(rf"{quote}[ \t]*+,?[ \t]*+(?:#|//)[^\n]*+\Z", counted)
    return bool(ends or re.search(rf"{quote}[\s+\\]*+{quote}", counted))


def _has_key(inner: str, quote: str) -> bool:
    """Return whether something like `", "key":` is in a text outside all braces, where it may begin another argument."""
    depth, before = 0, 0
    for match in re.finditer(rf"{quote}\s*+,\s*+{quote}[\w .-]{{1,40}}{quote}\s*+:", inner):
        passed = inner[before : match.start()]
        depth, before = depth + passed.count("{") - passed.count("}"), match.start()
        if depth <= 0:
            return True
    return False
