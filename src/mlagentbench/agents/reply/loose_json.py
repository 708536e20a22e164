r"""Reads objects as models write them: JSON, and near-JSON with only one possible meaning.

Three ways of reading are tried in this order, each in linear time, and the first that succeeds is taken:

1. JSON as the standard library reads it. Valid JSON is never read in another way.
2. JSON with raw line breaks and tabs in its strings, comments, a trailing comma, Python's constants, single, smart or triple quotes, and
   backslashes that JSON does not know (`\d` stays `\d`).
3. A flat object whose strings hold unescaped quotes, if the action's argument names leave only one way to split it.

No value is guessed: if two readings of a backslash or a quote would give different text, `Unreadable` is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from mlagentbench.agents.reply.escapes import decode
from mlagentbench.agents.reply.unescaped import cut_at_keys
from mlagentbench.agents.reply.values import CONSTANTS, NUMBER, Ambiguous, NumberText, ParsedObject, Unreadable, Value

MAX_TOKENS = 1000
"""The most tokens of an object: strings, numbers and punctuation; no action's arguments have so many."""


def read_object(text: str, start: int, keys: Collection[str], limit: int) -> ParsedObject:
    """Read the object that begins with the brace at `start`.

    Args:
        text: the whole reply.
        start: the offset of the opening brace.
        keys: the argument names that the object may have; only the third way of reading needs them.
        limit: the offset at which the third way and the search for a torn string stop, such as the next label.

    Raises:
        Unreadable: the object is broken or unfinished, or has two possible readings.
    """
    try:
        pairs, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        try:
            pairs, end = _read_loosely(text, start)
        except Ambiguous:
            raise
        except Unreadable as fault:
            found = cut_at_keys(text, start, keys, limit)
            if found is None:
                raise fault
            return found
    _refuse_torn(text, end, limit)
    if any(isinstance(value, str) and _SURROGATE.search(value) for value in pairs.values()):
        raise Ambiguous("a \\u escape in it is half a character")
    return ParsedObject(pairs, end)


def _no_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=NumberText, parse_float=NumberText, parse_constant=_no_constant)

_SURROGATE = re.compile("[\ud800-\udfff]")
_SAME_LINE = re.compile(r"[ \t]*+(?:$|[\r\n`<}\]*])")
_QUOTE_THEN_BRACE = re.compile(r"[\"'\u201d]\s*+,?\s*+\}")


def _refuse_torn(text: str, end: int, limit: int) -> None:
    """Raise Ambiguous if an object seems to end inside one of its strings, as `{"content": "print("}")"}` does at its first brace.

    Such an object is followed by another end, and by more text on its line or an unpaired quote or brace.
    """
    limit = max(end, limit)
    if not _QUOTE_THEN_BRACE.search(text, end, limit):
        return
    left_over = text.count('"', end, limit) % 2 or text.count("}", end, limit) > text.count("{", end, limit)
    if left_over or not _SAME_LINE.match(text, end, limit):
        raise Ambiguous('it seems to end twice; write one object with nothing behind it, and a quote inside text as \\"')


# The second way of reading

_CLOSERS = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201d": "\u201d", "\u2018": "\u2019"}
"""The closing quote by the quote that opens a string; the last three are smart quotes."""
_STRINGS = {opener: re.compile(rf"([^{closer}\\]*+(?:\\.[^{closer}\\]*+)*+){closer}", re.DOTALL) for opener, closer in _CLOSERS.items()}
_TOKEN = re.compile(
    r"\s*+(?:(?P<comment>(?<=[\s,{[])(?:#|//)[^\n\"\u201c\u201d]*+(?=\n))|(?P<quote>\"\"\"(?!\")|'''(?!')|[\"'\u201c\u201d\u2018])"
    rf"|(?P<number>{NUMBER.pattern})|(?P<word>[A-Za-z]\w*+)|(?P<sign>[{{}}\[\]:,]))"
)
_KEY = re.compile(r"\s*+:")
_HINT = '(inside text, write a quote as \\" and a line break as \\n)'


class _StringLiteral(NamedTuple):
    """A string between its quotes, before its escapes are decoded."""

    raw: str
    quote: str


def _read_loosely(text: str, start: int) -> tuple[dict[str, Value], int]:
    """Rewrite an object as JSON with a number for each string, decode that, and put the strings back; return it and its end.

    The strings are decoded last, since how they are read depends on the quotes of all keys.
    """
    parts, texts = list[str](), list[_StringLiteral]()
    depth, at, python = 0, start, False
    while depth or not parts:
        token = _TOKEN.match(text, at)
        if token is None or len(parts) > MAX_TOKENS:
            near = " ".join(text[at : at + 30].split())
            raise Unreadable(f"it cannot go on with {near!r} {_HINT}" if near else "it is not finished")
        at = token.end()
        written = token.group(token.lastgroup or 0)
        if token.lastgroup == "quote":
            found, at = _text(text, at, written)
            # An object with keys in single quotes is Python's, whose escapes in double quotes differ from JSON's too.
            python = python or (written == "'" and _KEY.match(text, at) is not None)
            parts.append(f'"{len(texts)}"')
            texts.append(found)
        elif token.lastgroup != "comment":
            if written in "}]" and parts[-1] == ",":
                parts.pop()
            parts.append(json.dumps(CONSTANTS[written]) if written in CONSTANTS else written)
            depth += (written in "{[") - (written in "}]")
    try:
        numbered = _DECODER.decode("".join(parts))
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"{str(error).partition(':')[0]} {_HINT}") from None
    value = _filled(numbered, texts, python)
    assert isinstance(value, dict), "it begins with a brace"
    return value, at


def _text(text: str, start: int, quote: str) -> tuple[_StringLiteral, int]:
    """Read a string up to its closing quotes; return it and its end. Triple quotes contain no others of their kind."""
    if len(quote) == 1:
        found = _STRINGS[quote].match(text, start)
        if found is None:
            raise Unreadable("its last text has no closing quote, or the reply was cut off")
        return _StringLiteral(found.group(1), quote), found.end()
    end = text.find(quote, start)
    if end < 0 or text.startswith(quote[0], end + 3):
        raise Unreadable(f"text between {quote} is not JSON")
    return _StringLiteral(text[start:end], quote), end + 3


def _filled(value: Value, texts: Sequence[_StringLiteral], python: bool) -> Value:
    if isinstance(value, dict):
        return {texts[int(key)].raw: _filled(item, texts, python) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, texts, python) for item in value]
    if type(value) is not str:
        return value
    raw, quote = texts[int(value)]
    return decode(raw, "'" if python and quote == '"' else quote)
