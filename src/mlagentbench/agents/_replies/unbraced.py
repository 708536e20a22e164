"""Arguments without braces: a line or an element for each, or nothing but the value of an action's only one.

Unlike JSON, such lines do not say where a value ends. So a value is taken only where it is in quotes, a number or a path, or is plain prose
on the one line before the next name or the end; anything else could go on, or hold a comment, and is refused, as is a value at the very end
of a reply, where it could be cut off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mlagentbench.agents._replies.arguments import ActionLike, squeezed, stands_for_nothing
from mlagentbench.agents._replies.elements import read_children
from mlagentbench.agents._replies.escapes import Unreadable, decode
from mlagentbench.agents._replies.loose_json import STRINGS
from mlagentbench.agents._replies.values import UNNAMED, LooseObject, NumberText, Value

# The rest of the label, then the way to the first line that holds something.
_OPENING = re.compile(
    r"(?:[\"'`*_ \t]*+(?:\([^()\n]{1,60}\))?[\"'`*_ \t]*+(?:[:\uff1a=\u2192>]|-(?=\s)))?(?:[*_]{1,3}(?=\s))?[ \t\u00a0\u200b]*+"
    r"(?:\r?\n[ \t>]*+|```(?:ya?ml|text|plaintext|json)?[ \t]*+(?=\r?\n))*+(?:-[ \t]++)?",
    re.IGNORECASE,
)
_LINE = re.compile(r"([^\n]*+)(?:\n|\Z)")
_PAIR = re.compile(r"[ \t]*+(?:[-*+][ \t]++)?([\"'`*]{0,2})([A-Za-z][\w -]{0,40})\1[ \t]*+[:=][ \t]*+(.*)", re.DOTALL)
_CLOSING = re.compile(r"[ \t]*+(?:```|~~~|<|$)", re.MULTILINE)
_AFTER = re.compile(r"\s*(?:\s*(?:</\w+>|\||</s>))*\Z")
_WORD = re.compile(r"(?:\.{0,2}/)?\w[\w./-]*+(?<![.-])|\.{1,2}/?|\.\w[\w./-]*+(?<![.-])")
_TEXT = re.compile(r"[\"'][^\W_]")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?")
_PROSE = re.compile(r"[^\W\d_][^\n\\()\[\]{}<>|#`]*+(?<![,:])")
_ASIDE = re.compile(r" (?:-{1,3}|\u2013|\u2014|//) ")
_LONGEST = 2000


def read_unbraced(text: str, start: int, stop: int, definition: ActionLike) -> LooseObject | None:
    """The arguments that are written between two places as lines, elements or a lone value; None where nothing of that kind is there.

    Raises:
        Unreadable: the arguments are there, but it is not clear where a value ends.
    """
    opening = _OPENING.match(text, start, stop)
    assert opening is not None, "every part of it may be empty"
    begin = opening.end()
    if stands_for_nothing(text[begin : min(stop, begin + 40)]):
        return LooseObject({}, stop) if not any(parameter.required for parameter in definition.parameters.values()) else None
    if text.startswith("<", begin):
        return read_children(text, begin, stop)
    names = {squeezed(parameter): parameter for parameter in definition.parameters}
    first = _LINE.match(text, begin, min(stop, begin + _LONGEST))
    assert first is not None, "a line may be empty"
    pair = _pair(first)
    if pair and squeezed(pair.group(2)) in names:
        return _pairs(text, begin, stop, names)
    found = _alone(text, first, stop) if len(names) == 1 else None
    if found is None and _TEXT.match(text, begin):
        raise Unreadable("it must be a JSON object in braces")
    return found


def _pairs(text: str, begin: int, stop: int, names: Mapping[str, str]) -> LooseObject:
    """A pair a line, up to an empty one, a fence or the end."""
    pairs: dict[str, Value] = {}
    at, open_ended, cut = begin, False, False
    while at < stop:
        line = _LINE.match(text, at, min(stop, at + _LONGEST))
        assert line is not None, "a line may be empty"
        if _CLOSING.match(line.group(1)):
            break
        pair = _pair(line)
        name = names.get(squeezed(pair.group(2))) if pair else None
        if pair is None or name is None or name in pairs:
            raise Unreadable("where a value of it ends cannot be told; write it as a JSON object")
        pairs[name], open_ended = _value(pair.group(3))
        cut = not _is_ended(line) and not pair.group(3).rstrip(",").endswith(('"', "'"))
        at = line.end()
    if cut:
        raise Unreadable("it may have been cut off; write it as a JSON object")
    if open_ended and text[at:stop].strip() and not text.startswith(("```", "~~~", "<"), at):
        raise Unreadable("where its last value ends cannot be told; write it as a JSON object")
    return LooseObject(pairs, at)


def _pair(line: re.Match[str]) -> re.Match[str] | None:
    return _PAIR.fullmatch(_bare(line))


def _is_ended(line: re.Match[str]) -> bool:
    """Whether anything shows that a line is whole; a reply without quotes and braces could be cut off anywhere."""
    return line.group().endswith("\n") or line.end() < len(line.string) or len(_bare(line)) < len(line.group().rstrip())


def _bare(line: re.Match[str]) -> str:
    """What a line says, without the tags and rules that may close it."""
    written = line.group(1)
    end = _AFTER.search(written)
    return written[: end.start()] if end else written


def _alone(text: str, line: re.Match[str], stop: int) -> LooseObject | None:
    """A value by itself: text in quotes, or a path."""
    written = _bare(line)
    rest = text[line.end() : stop]
    if rest.strip() and not _CLOSING.match(rest):
        return None
    value = _quoted(written)
    if value is not None and not value.lstrip().startswith(("{", "[")) and (written[0] == "`" or written[0] not in rest):
        return LooseObject({UNNAMED: value}, line.end())
    if _is_path(written) and not _is_ended(line):
        raise Unreadable("it may have been cut off; write it as a JSON object")
    if _is_path(written):
        return LooseObject({UNNAMED: written}, line.end())
    return None


def _is_path(written: str) -> bool:
    return bool({".", "/"} & set(written) and _WORD.fullmatch(written)) and not stands_for_nothing(written)


def _value(written: str) -> tuple[Value, bool]:
    """A value on its line, and whether it could go on behind it."""
    value = _quoted(written.rstrip(","))
    if value is not None:
        return value, False
    if _NUMBER.fullmatch(written):
        return NumberText(written), False
    if stands_for_nothing(written):
        raise Unreadable("a value of it is missing")
    if _WORD.fullmatch(written):
        return written, not _is_path(written)
    if " " in written and _PROSE.fullmatch(written) and not _ASIDE.search(written):
        return written, True
    raise Unreadable("where a value of it ends cannot be told; write it as a JSON object")


def _quoted(written: str) -> str | None:
    """What stands in the quotes that a line consists of; None where it does not, or nothing is in them."""
    quote = written[:1]
    if quote == "`":  # the value's own, unless it is around a path
        return written[1:-1] if _is_path(written[1:-1]) and written.endswith("`") else None
    found = STRINGS[quote].fullmatch(written, 1) if quote in STRINGS else None
    if found is None or (quote == "'" and "\\" in written) or stands_for_nothing(found.group(1)):
        return None
    return decode(found.group(1), quote)
