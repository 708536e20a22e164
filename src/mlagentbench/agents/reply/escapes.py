r"""Decodes backslashes in the strings of a reply: as JSON escapes or as the text's own, if only one of these readings is possible."""

from __future__ import annotations

import re

from mlagentbench.agents.reply.values import Ambiguous

ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
JSON_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
APOSTROPHE = re.compile(r"(?<=\w)(?<!\\\w)'(?=\w)")
"""An apostrophe within a word, which is not a quote; the `n` of `\\n` is not part of a word."""
DRIVE = re.compile(r"(?<![A-Za-z])[A-Zc-e]:\\")


def decode(raw: str, quote: str) -> str:
    r"""Return the text of a string literal, given what is between its quotes.

    JSON's escapes are decoded as JSON. A backslash before anything else belongs to the text and stays (`\d`); such a text was not escaped
    carefully, so each of its JSON escapes must be recognisable as one by its context.

    Raises:
        Ambiguous: a backslash has two possible readings.
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
        # Whoever does not escape line breaks may not escape backslashes either, so the escapes may be the text's own.
        raise Ambiguous(
            "it has line breaks as they are, and backslashes; write each line break as \\n, and a backslash of the text as \\\\"
        )
    return ESCAPE.sub(lambda match: JSON_ESCAPES.get(match[1], chr(int(match[1][1:], 16)) if len(match[1]) == 5 else match[0]), raw)


def _is_careless(raw: str, found: list[str]) -> bool:
    r"""Return whether an escape of a text with backslashes of its own could be JSON's as well as the text's.

    `\"` is JSON's, since a bare quote would end the string. A line break is JSON's if the line it ends has no open quote, a tab if it
    indents. The others could be parts of a pattern, a path or a formula.
    """
    escaped = {escape for escape in found if escape in JSON_ESCAPES or len(escape) == 5}
    if escaped - {'"', "n", "t"} or (escaped & {"n", "t"} and DRIVE.search(raw)):
        return True
    return bool(re.search(r"(?<!\\n)(?<!\\t)(?<!^)\\t", raw)) or in_quotes(raw)


def in_quotes(raw: str) -> bool:
    r"""Return whether an escape such as `\n` is inside quotes on its line: as in `print("a\n")`, but not in `print("a")\n`.

    Inside quotes it may belong to the string within the text; outside it can only be JSON's. An apostrophe within a word is not a quote.
    """
    plain = APOSTROPHE.sub("", raw.replace("\\\\", "  "))
    for line in re.split(r"(?<=\\n)|\n", plain):
        double = single = 0
        for part in re.split(r"\\(?:[bfnrt]|u[0-9a-fA-F]{4})", line)[:-1]:
            double, single = double + part.count('"'), single + part.count("'")
            if double % 2 or single % 2:
                return True
    return False
