"""Shorten texts that others wrote, for messages and for prompts, and make them such that they can be written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

LINE = 500
"""The most characters of a line."""
_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def one_line(text: str, most: int = LINE) -> str:
    """Return a text as one line of at most `most` characters, without characters that would control a terminal."""
    read = text[: 20 * most]  # the rest of a text of megabytes cannot be shown
    line = " ".join("".join(character if character.isprintable() else " " for character in read).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def shortened(text: str, most: int) -> str:
    """Return a text cut to about `most` characters: its head and its tail, with a note of how much is left out."""
    half = max(1, most // 2)
    return text if len(text) <= most else f"{text[:half]}\n(… {len(text) - 2 * half:,} characters are left out …)\n{text[-half:]}"


def some(values: Sequence[str], most: int = 3) -> str:
    """Return the first few of some texts, and how many more there are: `a, b, c and 2 more`."""
    return ", ".join(values[:most]) + (f" and {len(values) - most:,} more" if len(values) > most else "")


def hint(name: str, known: Collection[str]) -> str:
    """Return what may stand in a wrong name's place: `did you mean 'react'? There are: act, react`."""
    close = difflib.get_close_matches(name, known, n=1)
    return (f"did you mean {close[0]!r}? There are: " if close else "there are: ") + ", ".join(known)


def first_fault(error: ValidationError, unknown: str = "there is no such key") -> str:
    """Return the first of a validation's errors, after the key that it is about; `unknown` for a key that there is not."""
    first = error.errors()[0]
    is_unknown = first["type"] in ("extra_forbidden", "unexpected_keyword_argument")
    message = unknown if is_unknown else first["msg"].removeprefix("Value error, ")
    return f"{'.'.join(map(str, first['loc']))}: {message}" if first["loc"] else message


def encodable(value: Any) -> Any:
    r"""Return a text, or a JSON value with all its texts, such that it can be encoded as UTF-8.

    A model's JSON may hold half of a character (a lone surrogate, `"\ud800"`), and so may a file's name. Such a half becomes its escape, as
    it was in the JSON, and two halves that belong together become their character. All else stays the same.
    """
    if isinstance(value, str):
        if value.isascii() or not _HALF.search(value):
            return value
        joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), value)
        return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", joined)
    if isinstance(value, Mapping):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(item) for item in value]
    return value
