r"""Objects as models write them: JSON, and what can only be meant as JSON.

Three readings are tried, each in linear time, and the first that fits is taken:

1. JSON as the standard library reads it. What is valid JSON is never read otherwise.
2. JSON with raw line breaks and tabs in its strings, comments, a trailing comma, a line break in place of a comma, bare keys, `=` for
   the colon, Python's constants, single, smart or triple quotes, and backslashes that JSON does not know (`\d` stays `\d`). Markdown's
   `\_` is `_` where the keys are written so too.
3. A flat object whose strings hold quotes that nobody escaped, where the action's own argument names leave one way to cut it.

Nothing is guessed about a value: where two readings of a backslash or a quote would give different text, `Unreadable` is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from mlagentbench.agents._replies.escapes import SURROGATE, Ambiguous, Unreadable, decode
from mlagentbench.agents._replies.unescaped import cut_at_keys
from mlagentbench.agents._replies.values import CONSTANTS, NUMBER, UNNAMED, LooseObject, NumberText, Value

MAX_DEPTH = 16
"""No action takes nested arguments; deeper nesting is noise."""


def read_object(text: str, start: int, keys: Collection[str], limit: int) -> LooseObject:
    """Read the object that begins with the brace at `start`.

    Args:
        text: the whole reply.
        start: where the opening brace is.
        keys: the argument names that the object may have; only the third reading needs them.
        limit: where the third reading and the search for a torn string stop, such as the next label.

    Raises:
        Unreadable: the object is broken, unfinished, or can be read in two ways.
    """
    try:
        pairs, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        try:
            pairs, end = _Reader(text, start).read()
        except Ambiguous:
            raise
        except Unreadable as fault:
            found = cut_at_keys(text, start, keys, limit)
            if found is None:
                raise fault
            return found
    _refuse_torn(text, end, limit)
    return LooseObject(_whole(pairs), end)


def read_call(text: str, start: int, limit: int) -> LooseObject:
    """Read the arguments of a call as Python has it, from the parenthesis at `start`; one without a name is `UNNAMED`.

    Raises:
        Unreadable: they are broken, unfinished, or can be read in two ways.
    """
    pairs, end = _Reader(text, start).read()
    _refuse_torn(text, end, limit)
    return LooseObject(_whole(pairs), end)


def _no_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=NumberText, parse_float=NumberText, parse_constant=_no_constant)

_SAME_LINE = re.compile(r"[ \t]*+(?:$|[\r\n`<}\]*])")
_QUOTE_THEN_CLOSER = {closer: re.compile(rf"[\"'\u201d]\s*+,?\s*+\{closer}") for closer in "})"}


def _refuse_torn(text: str, end: int, limit: int) -> None:
    """Refuse an object that seems to end inside one of its strings, as `{"content": "print("}")"}` does at its first brace.

    Then another end follows, and the line goes on, or a quote or a brace is left over.
    """
    limit = max(end, limit)
    closer = text[end - 1]
    if not _QUOTE_THEN_CLOSER[closer].search(text, end, limit):
        return
    opener = "{" if closer == "}" else "("
    left_over = text.count('"', end, limit) % 2 or text.count(closer, end, limit) > text.count(opener, end, limit)
    if left_over or not _SAME_LINE.match(text, end, limit):
        raise Ambiguous('it seems to end twice; write one object with nothing behind it, and a quote inside text as \\"')


def _whole(pairs: Mapping[str, Value]) -> Mapping[str, Value]:
    for value in pairs.values():
        if isinstance(value, str) and SURROGATE.search(value):
            raise Ambiguous("a \\u escape in it is half a character")
    return pairs


# The second reading

_SPACE = re.compile(r"\s*+")
_COMMENT = re.compile(r"(?:#|//)[^\n\"\u201c\u201d]*+(?=\n)|/\*[^*\n\"\u201c\u201d]*+\*/")
_COLON = re.compile(r"=>?(?!=)|[:\uff1a]")
_COMMA = re.compile(r"[,\uff0c]")
_NAME = re.compile(r"[A-Za-z_][\w\\]*+")
_CLOSERS = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201d": "\u201d", "\u2018": "\u2019"}
"""The quotes that open a string, and those that close it; the last three are smart quotes."""

STRINGS = {opener: re.compile(rf"([^{closer}\\]*+(?:\\.[^{closer}\\]*+)*+){closer}", re.DOTALL) for opener, closer in _CLOSERS.items()}


class _Raw(NamedTuple):
    """A string between its quotes, its escapes not yet read."""

    text: str
    quote: str


class _Reader:
    """One pass over an object; strings are kept raw until all keys are known."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.pos = start
        self.markdown = False
        self.call = text[start] == "("
        self.python = self.call
        """Whether it must be Python, which reads both its quotes alike, and in ways that JSON does not."""

    def read(self) -> tuple[dict[str, Value], int]:
        value = self._finish(self._object(0, ")" if self.call else "}"))
        assert isinstance(value, dict)
        return value, self.pos

    def _finish(self, value: object) -> Value:
        match value:
            case _Raw():
                quote = "'" if self.python and value.quote == '"' else value.quote
                return decode(value.text, quote, markdown=self.markdown)
            case dict():
                return {key: self._finish(item) for key, item in value.items()}
            case list():
                return [self._finish(item) for item in value]
            case str() | bool() | None:
                return value
        raise AssertionError(value)

    def _skip(self) -> None:
        while True:
            self.pos = _SPACE.match(self.text, self.pos).end()  # type: ignore[union-attr]
            if not self.text.startswith(("#", "//", "/*"), self.pos):
                return
            comment = _COMMENT.match(self.text, self.pos)
            if comment is None or self.text[self.pos - 1] not in " \t\r\n,{[":
                raise self._fault("what looks like a comment")
            self.pos = comment.end()

    def _object(self, depth: int, closer: str = "}") -> dict[str, object]:
        if depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        self.pos += 1
        pairs: dict[str, object] = {}
        self._skip()
        while not self._closes(closer):
            key = self._key(closer)
            if closer == ")" and key in pairs:
                raise Unreadable("an argument of it is given twice")
            pairs[key] = self._value(depth)
            self._separate(closer)
        return pairs

    def _array(self, depth: int) -> list[object]:
        if depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        self.pos += 1
        items: list[object] = []
        self._skip()
        while not self._closes("]"):
            items.append(self._value(depth))
            self._separate("]")
        return items

    def _separate(self, closer: str) -> None:
        """Go past the comma, or the line break that stands for it, up to the next item or the closer."""
        before = self.pos
        self._skip()
        if self._take(_COMMA):
            self._skip()
            return
        next_line = closer == "}" and "\n" in self.text[before : self.pos] and self.text[self.pos : self.pos + 1] in _CLOSERS
        if not next_line and not self.text.startswith(closer, self.pos):
            raise self._fault(f"a comma or {closer}")

    def _key(self, closer: str) -> str:
        """The name of the next argument, and the colon behind it; a call's argument may have none."""
        quote = self.text[self.pos : self.pos + 1]
        if quote in _CLOSERS and closer == ")":
            return UNNAMED
        if quote in _CLOSERS:
            self.python = self.python or quote == "'"
            key = self._string(quote).text
        elif name := _NAME.match(self.text, self.pos):
            self.pos = name.end()
            key = name.group()
        else:
            raise self._fault("a name in quotes")
        self._skip()
        if not self._take(_COLON):
            raise self._fault(f"after {key!r} a colon")
        self._skip()
        if "\\_" in key:
            self.markdown = True
        return key.replace("\\_", "_")

    def _value(self, depth: int) -> object:
        quote = self.text[self.pos : self.pos + 1]
        if quote in _CLOSERS:
            return self._string(quote)
        if quote == "`":
            return self._verbatim("`")
        if quote == "{":
            return self._object(depth + 1)
        if quote == "[":
            return self._array(depth + 1)
        if number := NUMBER.match(self.text, self.pos):
            self.pos = number.end()
            return NumberText(number.group())
        if (name := _NAME.match(self.text, self.pos)) and name.group() in CONSTANTS:
            self.pos = name.end()
            return CONSTANTS[name.group()]
        raise self._fault("a value in quotes")

    def _string(self, quote: str) -> _Raw:
        if self.text.startswith(('"""', "'''"), self.pos):
            return self._verbatim(quote * 3)
        found = STRINGS[quote].match(self.text, self.pos + 1)
        if found is None:
            raise Unreadable("its last text has no closing quote, or the reply was cut off")
        self.pos = found.end()
        return _Raw(found.group(1), quote)

    def _verbatim(self, quote: str) -> _Raw:
        """Text between triple quotes or backticks, where no escape may have two meanings."""
        start = self.pos + len(quote)
        end = self.text.find(quote, start)
        self.pos = end + len(quote)
        if (
            end < 0
            or (len(quote) == 3 and self.text.startswith(quote[0], start))
            or self.text.startswith(quote[0], self.pos)
            or (quote == "`" and end == start)
        ):
            raise Unreadable(f"text between {quote} is not JSON")
        return _Raw(self.text[start:end], quote)

    def _closes(self, closer: str) -> bool:
        found = self.text.startswith(closer, self.pos)
        self.pos += found
        return found

    def _take(self, mark: re.Pattern[str]) -> bool:
        found = mark.match(self.text, self.pos)
        self.pos = found.end() if found else self.pos
        return found is not None

    def _fault(self, expected: str) -> Unreadable:
        if self.pos >= len(self.text):
            return Unreadable("it is not finished")
        near = " ".join(self.text[self.pos : self.pos + 30].split())
        return Unreadable(f'{expected} was expected before {near!r} (inside text, write a quote as \\" and a line break as \\n)')
