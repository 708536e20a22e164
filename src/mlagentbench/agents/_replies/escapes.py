r"""Backslashes in the strings of a reply: JSON's where they can only be JSON's, the text's own where they can only be that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping


class Unreadable(Exception):
    """There is no object here, or more than one way to read it. The message says what is wrong with it, as a clause."""


class Ambiguous(Unreadable):
    """The object's shape is clear, but one of its values can be read in two ways."""


SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
JSON_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
APOSTROPHE = re.compile(r"(?<=\w)(?<!\\\w)'(?=\w)")
"""One within a word, and so no quote; the `n` of `\\n` is no part of a word."""
_PYTHON_ONLY = frozenset("xavNU01234567\n")
DRIVE = re.compile(r"(?<![A-Za-z])[A-Zc-e]:\\")


def decode(raw: str, quote: str, *, markdown: bool = False) -> str:
    r"""The text that a string stands for, given what lies between its quotes.

    JSON's escapes are read as JSON reads them; a backslash before anything else is kept, since then it is the text's own (`\d`). A text
    that holds both kinds was not escaped with care, so each of its JSON escapes must be plain from where it stands.

    Raises:
        Ambiguous: a backslash can be read in two ways.
    """
    if "\\" not in raw:
        if quote == "`" and "${" in raw:
            raise Ambiguous("text between ` is not JSON")
        return raw
    found = [match.group(1) for match in ESCAPE.finditer(raw)]
    odd = {escape for escape in found if escape not in JSON_ESCAPES and len(escape) == 1}
    if len(quote) == 3 or quote == "`":
        if quote == "`" or any(escape not in odd or escape in _PYTHON_ONLY or escape == "'" for escape in found):
            raise Ambiguous(f"a backslash between {quote} can be read in two ways; write the text as a JSON string")
        return raw
    if quote != '"' and "/" in found:
        raise Ambiguous("\\/ means / in JSON but not between these quotes; write / as it is")
    meanings = dict(JSON_ESCAPES)
    if quote == "'":
        meanings["'"] = "'"
        odd.discard("'")
    if "'" in odd:
        raise Ambiguous("\\' is not JSON; write ' as it is, and a backslash of the text as \\\\")
    if "_" in odd:
        if not markdown:
            raise Ambiguous("\\_ is not JSON; write _ as it is, and a backslash of the text as \\\\")
        meanings["_"] = "_"
        odd.discard("_")
    if odd:
        _refuse_careless(raw, quote, found, odd, meanings)
    if "\n" in raw and any(escape in meanings or len(escape) == 5 for escape in found if escape != quote):
        # Line breaks are written as they are, so other escapes are as likely to be the text's own.
        raise Ambiguous(
            "it has line breaks as they are, and backslashes; write each line break as \\n, and a backslash of the text as \\\\"
        )
    return _joined(ESCAPE.sub(lambda match: _meaning(match.group(1), meanings), raw))


def _meaning(escape: str, meanings: Mapping[str, str]) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else meanings.get(escape, "\\" + escape)


def _joined(text: str) -> str:
    """The text with its pairs of surrogates made one character each."""
    if not SURROGATE.search(text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise Ambiguous("a \\u escape in it is half a character") from None


def _refuse_careless(raw: str, quote: str, found: list[str], odd: set[str], meanings: Mapping[str, str]) -> None:
    r"""In a text where some backslashes are its own, refuse those that could be JSON's as well as the text's.

    `\"` is JSON's, since it could not stand there otherwise. A line break is JSON's where the line it ends has no open quote, a tab where
    it indents. The others could be parts of a pattern, a path or a formula.
    """
    mixed = Ambiguous("some backslashes in it are doubled for JSON and some are not; write each backslash of the text as \\\\")
    if quote != '"' and odd & _PYTHON_ONLY:
        raise mixed
    escaped = [escape for escape in found if escape in meanings or len(escape) == 5]
    if any(escape not in ('"', "'", "n", "t") for escape in escaped) or (DRIVE.search(raw) and {"n", "t"} & set(escaped)):
        raise mixed
    if re.search(r"(?<!\\n)(?<!\\t)(?<!^)\\t", raw):
        raise mixed
    if in_quotes(raw):
        raise mixed


def in_quotes(raw: str) -> bool:
    r"""Whether an escape such as `\n` stands where a quote is open on its line: as in `print("a\n")`, but not in `print("a")\n`.

    There it may be meant for the string within the text, and outside it only as JSON's. An apostrophe within a word is no quote.
    """
    if '"' not in raw and "'" not in raw:
        return False
    plain = APOSTROPHE.sub("", raw.replace("\\\\", "  "))
    return any(any(_open_quotes_at(line)) for line in re.split(r"(?<=\\n)|\n", plain))


def only_in_quotes(raw: str) -> bool:
    r"""Whether each escape such as `\n` stands where a quote is open on its line."""
    return all(all(_open_quotes_at(line)) for line in APOSTROPHE.sub("", raw).split("\n"))


def _open_quotes_at(line: str) -> Iterator[bool]:
    """For each escape of a line, whether a quote is open there."""
    double = single = 0
    for part in re.split(r"\\(?:[bfnrt]|u[0-9a-fA-F]{4})", line)[:-1]:
        double += part.count('"')
        single += part.count("'")
        yield bool(double % 2 or single % 2)
