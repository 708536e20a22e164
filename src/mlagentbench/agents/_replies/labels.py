"""Where the labels of a reply are, `Action:`, `Action Input:`, `Observation:` and the thinking entries, and where its thinking ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["action", "input", "observation", "entry"]


class Mark(NamedTuple):
    """A label of a reply."""

    kind: Kind
    start: int
    """Where its line begins, or for one within a line, where it does."""
    end: int
    """Where what it labels begins."""
    entry: str = ""
    """The name of the thinking entry, as it was asked for."""


# What may stand before a label on its line: signs of any sort and a number, as in `> **5. Action`.
_DRESS = r"^(?:[^\w\n]|_|\d{1,2}[.)])*+"
_WORD_ENDS = r"(?![^\W_])"
_INPUT = r"(?:next[ \t]+)?action[\W_]{0,3}(?:inputs?|arguments?|args|parameters?|params)"
_ACTION = r"(?:next[ \t]+)?action(?:[ _]name)?(?:[ \t]+\d{1,2})?"
_FIXED = rf"(?P<input>{_INPUT})|(?P<action>{_ACTION})|(?P<observation>observations?)"
_INPUT_LABEL = re.compile(rf"(?<![^\W_]){_INPUT}{_WORD_ENDS}", re.IGNORECASE)
_INLINE_ACTION = re.compile(r"(?<![^\W_])action(?=[^\w\n:\uff1a]{0,6}[:\uff1a])", re.IGNORECASE)
# What makes a label of a word: a colon, or nothing else on its line.
_COLON = re.compile(r"(?:[ \t]*+\([^()\n]{1,60}\))?[^\w\n:\uff1a]*+(?:[:\uff1a][*_]{0,3}|$)", re.MULTILINE)
_BRACE = re.compile(r"[^\w\n{]*+(?=\{)")

_THINKING = r"(?:seed:)?(?:think|thinking|reasoning|scratchpad|analysis)"
_THINK_OPENS_LINE = re.compile(rf"^[ \t]*+(?:<{_THINKING}>|\[think\])", re.IGNORECASE | re.MULTILINE)
_THINK_OPENS = re.compile(rf"\s*+(?:<{_THINKING}>|\[think\]|◁think▷)", re.IGNORECASE)
_THINK_CLOSES = re.compile(rf"</{_THINKING}>|\[/think\]|◁/think▷", re.IGNORECASE)
_THINK_CLOSES_LINE = re.compile(rf"^[ \t]*+(?:{_THINK_CLOSES.pattern})|(?:{_THINK_CLOSES.pattern})[ \t\r]*+$", re.IGNORECASE | re.MULTILINE)

_NOTHING_MORE = re.compile(r"(?:<[^<>\n]{1,40}>|\[/?think\]|◁/?think▷|\W)*+(?:observation|\Z)", re.IGNORECASE)


class Thinking(NamedTuple):
    """The blocks such as `<think>` that a reply begins with."""

    end: int
    """Where the reply proper begins: 0 without such blocks, and where one is never closed."""
    opened: bool
    """False where only the closing tag is there; some providers cut the opening one away."""
    closed: bool


def end_of_thinking(text: str) -> Thinking:
    """Find where a reply's thinking ends. A closing tag without an opening one counts where it begins or ends its line."""
    end = 0
    while opens := _THINK_OPENS.match(text, end):
        closes = _THINK_CLOSES.search(text, opens.end())
        if closes is None:
            return Thinking(0, opened=True, closed=False)
        end = closes.end()
    if end == 0 and (closes := _THINK_CLOSES_LINE.search(text)):
        return Thinking(closes.end(), opened=False, closed=True)
    if end == 0 and _THINK_OPENS_LINE.search(text):
        return Thinking(0, opened=True, closed=False)
    return Thinking(end, opened=end > 0, closed=True)


def says_nothing(text: str, start: int) -> bool:
    """Whether nothing but tags and signs comes behind a place, or an observation."""
    return _NOTHING_MORE.match(text, start) is not None


def line_marks(text: str, entries: Sequence[str]) -> list[Mark]:
    """The labels that begin a line, in order.

    `Action` without a colon counts too, with `end` behind the word: whether it is a label shows in what follows it.
    """
    marks = []
    for found in _pattern(tuple(entries)).finditer(text):
        group = found.lastgroup or ""
        colon = _COLON.match(text, found.end())
        if group == "action":
            marks.append(Mark("action", found.start(), colon.end() if colon else found.end()))
        elif group == "input" and (brace := colon or _BRACE.match(text, found.end())):
            marks.append(Mark("input", found.start(), brace.end()))
        elif group == "observation" and colon:
            marks.append(Mark("observation", found.start(), colon.end()))
        elif group.startswith("e") and colon:
            marks.append(Mark("entry", found.start(), colon.end(), entries[int(group[1:])]))
    return marks


def inline_marks(text: str, lines: Sequence[Mark]) -> list[Mark]:
    """The labels `Action:` anywhere, and the observations among `lines`; none where `lines` hold every `Action:`."""
    known = {mark.end for mark in lines if mark.kind == "action"}
    if all(_end_of_word(text, word) in known for word in _INLINE_ACTION.finditer(text)):
        return []
    actions = (Mark("action", word.start(), _end_of_word(text, word)) for word in _INLINE_ACTION.finditer(text))
    return sorted([*actions, *(mark for mark in lines if mark.kind == "observation")], key=lambda mark: mark.start)


def _end_of_word(text: str, word: re.Match[str]) -> int:
    colon = _COLON.match(text, word.end())
    return colon.end() if colon else word.end()


def input_label(text: str, start: int, stop: int) -> re.Match[str] | None:
    """The next `Action Input`, on a line of its own or not."""
    return _INPUT_LABEL.search(text, start, stop)


def entries_of(text: str, marks: Sequence[Mark], start: int, end: int) -> dict[str, str]:
    """The thinking entries of a reply whose action stands from `start` to `end`.

    What comes before the action belongs to it, an entry written twice being joined; what comes after it, up to the next action or
    observation, fills what was left open.
    """
    parts: dict[str, list[str]] = {}
    before = [mark for mark in marks if mark.kind == "entry" and mark.start < start]
    for mark, until in _with_ends(before, start):
        parts.setdefault(mark.entry, []).append(text[mark.end : until].strip())
    behind = [mark for mark in marks if mark.start >= end]
    last = next((index for index, mark in enumerate(behind) if mark.kind in ("action", "observation")), len(behind))
    for mark, until in _with_ends(behind[: last + 1], len(text)):
        if mark.kind == "entry" and mark.entry not in parts:
            parts[mark.entry] = [text[mark.end : until].strip()]
    return {entry: "\n\n".join(filter(None, found)) for entry, found in parts.items()}


def _with_ends(marks: Sequence[Mark], end: int) -> Iterable[tuple[Mark, int]]:
    return zip(marks, [*(mark.start for mark in marks[1:]), end], strict=False)


@lru_cache(maxsize=64)
def _pattern(entries: tuple[str, ...]) -> re.Pattern[str]:
    """Every label that may begin a line; the group of the first entry is `e0`. Longer names are tried first."""
    words = [r"[\W_]{1,3}".join("(?:and|&)" if word == "and" else re.escape(word) for word in entry.lower().split()) for entry in entries]
    named = "".join(f"|(?P<e{index}>{words[index]}s?)" for index in sorted(range(len(words)), key=lambda index: -len(words[index])))
    return re.compile(rf"{_DRESS}(?:{_FIXED}{named}){_WORD_ENDS}", re.IGNORECASE | re.MULTILINE)
