"""Read a bibliography in BibTeX strictly.

Accepted are entries with a key and fields whose values are in braces, in quotation marks, or numbers. Text between entries is a comment, as
in BibTeX, and so is `@comment`. Abbreviations (`@string`) and values joined with `#` are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from mlagentbench.errors import InvalidSubmission

# The quantifiers are possessive, so that a long run of blanks without a match is read once and not once from each blank.
_START = re.compile(r"@\s*+([A-Za-z]++)\s*+([{(])")
_KEY = re.compile(r"\s*+([^\s,{}()\"#%=]++)\s*+(?=[,})])")
_FIELD = re.compile(r"\s*+,?+\s*+([A-Za-z][\w-]*+)\s*+=\s*+")
_NUMBER = re.compile(r"\d+")
_END = re.compile(r"\s*+,?+\s*+([})])")


class Entry(NamedTuple):
    """An entry: its kind, such as `article`, and its fields by their names in lower case."""

    kind: str
    fields: Mapping[str, str]


def read_bibliography(text: str, name: str) -> dict[str, Entry]:
    """Read the entries of a bibliography, by their keys.

    Args:
        text: the file's text.
        name: the file's name, for reasons.

    Raises:
        InvalidSubmission: it is no BibTeX of the kind above, or has a key twice.
    """
    entries: dict[str, Entry] = {}
    place = 0
    while start := _START.search(text, place):
        place = start.end()
        if start[1].lower() == "comment":
            continue
        try:
            key, entry, place = _entry(text, start)
            if key in entries:
                raise _Malformed(f"the key {key[:60]!r} is there twice; give each entry its own")
        except _Malformed as why:
            line = text.count("\n", 0, start.start()) + 1
            raise InvalidSubmission(f"{name}, line {line}: {why}") from None
        entries[key] = entry
    return entries


class _Malformed(Exception):
    """An entry that cannot be read; the message says what is wrong with it."""


def _entry(text: str, start: re.Match[str]) -> tuple[str, Entry, int]:
    """Read an entry; return its key, the entry, and the position after it."""
    kind = start[1].lower()
    if kind in ("string", "preamble"):
        raise _Malformed(f"@{kind} is not read; write entries such as @article{{key, title = {{...}}}}")
    key = _KEY.match(text, start.end())
    if key is None:
        raise _Malformed("an entry has no key; write entries such as @article{key, title = {...}}")
    try:
        fields, place = _fields(text, key.end())
    except _Malformed as why:
        raise _Malformed(f"the entry {key[1][:60]!r} {why}") from None
    return key[1], Entry(kind, fields), place


def _fields(text: str, place: int) -> tuple[dict[str, str], int]:
    """Read an entry's fields from the position after its key; return them and the position after the entry."""
    fields: dict[str, str] = {}
    while not (end := _END.match(text, place)):
        field = _FIELD.match(text, place)
        if field is None:
            raise _Malformed(f"is not closed, or has something that is no field = {{value}}: {_shown(text, place)}")
        value, place = _value(text, field.end())
        fields[field[1].lower()] = " ".join(value.split())
    return fields, end.end()


def _value(text: str, place: int) -> tuple[str, int]:
    """Read a value at a position; return it without its braces or quotation marks, and the position after it."""
    number = _NUMBER.match(text, place)
    if number:
        return number[0], number.end()
    if text[place : place + 1] not in ("{", '"'):
        raise _Malformed(f"has a value that is neither in braces nor in quotation marks: {_shown(text, place)}")
    quoted = text[place] == '"'
    depth = 0
    for end in range(place + 1, len(text)):
        character = text[end]
        if not depth and character == ('"' if quoted else "}"):
            return text[place + 1 : end], end + 1
        depth += (character == "{") - (character == "}")
        if depth < 0:
            break
    raise _Malformed(f"has a value whose braces or quotation marks are not closed: {_shown(text, place)}")


def _shown(text: str, place: int) -> str:
    return repr(text[place : place + 40].strip())
