r"""Backslashes in the texts of a reply: JSON's where they can only be JSON's, the text's own where they can only be that."""

from __future__ import annotations

import re

from mlagentbench.agents._replies.values import Ambiguous

ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
JSON_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
APOSTROPHE = re.compile(r"(?<=\w)(?<!\\\w)'(?=\w)")
"""One within a word, and so no quote; the `n` of `\\n` is no part of a word."""
DRIVE = re.compile(r"(?<![A-Za-z])[A-Zc-e]:\\")


def decode(raw: str, quote: str) -> str:
    r"""Return the text that a string stands for, given what lies between its quotes.

    JSON's escapes are read as JSON reads them. A backslash before anything else is the text's own and kept (`\d`); then the text was not
    escaped with care, and each of its JSON escapes must be plain from where it stands.

    Raises:
        Ambiguous: a backslash can be read in two ways.
    """
    if "\\" not in raw:
        return raw
    if quote != '"':
        raise Ambiguous(f"a backslash between {quote} can be read in two ways; write the text as a JSON string")
    found = ESCAPE.findall(raw)
    own = {escape for escape in found if escape not in JSON_ESCAPES and len(escape) == 1}
    for sign in own & {"'", "_"}:
        raise Ambiguous(f"\\{sign} is not JSON; write {sign} as it is, and a backslash of the text as \\\\")
    if own and _is_careless(raw, found):
        raise Ambiguous("some backslashes in it are doubled for JSON and some are not; write each backslash of the text as \\\\")
    if "\n" in raw and any(escape not in own and escape != '"' for escape in found):
        # Line breaks are written as they are, so other escapes are as likely to be the text's own.
        raise Ambiguous(
            "it has line breaks as they are, and backslashes; write each line break as \\n, and a backslash of the text as \\\\"
        )
    return ESCAPE.sub(lambda match: JSON_ESCAPES.get(match[1], chr(int(match[1][1:], 16)) if len(match[1]) == 5 else match[0]), raw)


def _is_careless(raw: str, found: list[str]) -> bool:
    r"""Return whether an escape of a text with backslashes of its own could be JSON's as well as the text's.

    `\"` is JSON's, since it could not stand there otherwise. A line break is JSON's where the line it ends has no open quote, a tab where
    it indents. The others could be parts of a pattern, a path or a formula.
    """
    escaped = {escape for escape in found if escape in JSON_ESCAPES or len(escape) == 5}
    if escaped - {'"', "n", "t"} or (escaped & {"n", "t"} and DRIVE.search(raw)):
        return True
    return bool(re.search(r"(?<!\\n)(?<!\\t)(?<!^)\\t", raw)) or in_quotes(raw)


def in_quotes(raw: str) -> bool:
    r"""Return whether an escape such as `\n` stands where a quote is open on its line: as in `print("a\n")`, but not in `print("a")\n`.

    There it may be meant for the string within the text, and outside it only as JSON's. An apostrophe within a word is no quote.
    """
    plain = APOSTROPHE.sub("", raw.replace("\\\\", "  "))
    for line in re.split(r"(?<=\\n)|\n", plain):
        double = single = 0
        for part in re.split(r"\\(?:[bfnrt]|u[0-9a-fA-F]{4})", line)[:-1]:
            double, single = double + part.count('"'), single + part.count("'")
            if double % 2 or single % 2:
                return True
    return False
