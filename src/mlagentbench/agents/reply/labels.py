"""Finds the labels of a reply (`Action:`, `Action Input:`, `Observation:`, the thinking entries) and the end of its thinking."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["action", "input", "observation", "entry"]


class Label(NamedTuple):
    """A label that begins a line of a reply."""

    kind: Kind
    start: int
    """The offset at which its line begins."""
    end: int
    """The offset at which the labelled text begins."""
    entry: str = ""
    """The thinking entry's name, as requested; empty for other labels."""


# A label may follow punctuation and a number on its line, as in `> **5. Action`.
_DRESS = r"^(?:[^\w\n]|_|\d{1,2}[.)])*+"
_WORD_ENDS = r"(?![^\W_])"
_INPUT = r"(?:next[ \t]+)?action[\W_]{0,3}(?:inputs?|arguments?|args|parameters?|params)"
_ACTION = r"(?:next[ \t]+)?action(?:[ _]name)?(?:[ \t]+\d{1,2})?"
# What a model writes for the action's result is no attempt at an action.
_OBSERVATION = r"observations?|action[\W_]{0,3}(?:observations?|outputs?|results?|responses?)"
_FIXED = rf"(?P<input>{_INPUT})|(?P<observation>{_OBSERVATION})|(?P<action>{_ACTION})"
INPUT_LABEL = re.compile(rf"(?<![^\W_]){_INPUT}{_WORD_ENDS}", re.IGNORECASE)
"""`Action Input`, anywhere in a line."""
# A word is a label if a colon follows it, or nothing else on its line.
_COLON = re.compile(r"(?:[ \t]*+\([^()\n]{1,60}\))?[^\w\n:\uff1a]*+(?:[:\uff1a][*_]{0,3}|$)", re.MULTILINE)
_BRACE = re.compile(r"[^\w\n{]*+(?=\{)")

_THINKING = r"(?:seed:)?(?:think|thinking|reasoning|scratchpad|analysis)"
_OPENS = rf"(?:<{_THINKING}>|\[think\]|◁think▷)"
_THINK_OPENS = re.compile(rf"\s*+{_OPENS}", re.IGNORECASE)
_THINK_OPENS_LINE = re.compile(rf"^[ \t]*+{_OPENS}", re.IGNORECASE | re.MULTILINE)
_THINK_CLOSES = re.compile(rf"</{_THINKING}>|\[/think\]|◁/think▷", re.IGNORECASE)
_THINK_CLOSES_LINE = re.compile(rf"^[ \t]*+(?:{_THINK_CLOSES.pattern})|(?:{_THINK_CLOSES.pattern})[ \t\r]*+$", re.IGNORECASE | re.MULTILINE)


def end_of_thinking(text: str) -> int:
    """Return the offset after the blocks such as `<think>` that a reply begins with; the reply's length if one is never closed.

    A closing tag alone, which is all that some providers pass on of a block, counts if it begins or ends its line.
    """
    end = 0
    while opens := _THINK_OPENS.match(text, end):
        closes = _THINK_CLOSES.search(text, opens.end())
        if closes is None:
            return len(text)
        end = closes.end()
    if end == 0 and (closes := _THINK_CLOSES_LINE.search(text)):
        return closes.end()
    return len(text) if end == 0 and _THINK_OPENS_LINE.search(text) else end


def find_labels(text: str, entries: Sequence[str]) -> list[Label]:
    """Return the labels that begin a line, in order. `Action` without a colon is included; the caller decides by what follows it."""
    labels = []
    for found in _pattern(tuple(entries)).finditer(text):
        group = found.lastgroup or ""
        colon = _COLON.match(text, found.end())
        if group == "action":
            labels.append(Label("action", found.start(), colon.end() if colon else found.end()))
        elif group == "input" and (brace := colon or _BRACE.match(text, found.end())):
            labels.append(Label("input", found.start(), brace.end()))
        elif group == "observation" and colon:
            labels.append(Label("observation", found.start(), colon.end()))
        elif group.startswith("e") and colon:
            labels.append(Label("entry", found.start(), colon.end(), entries[int(group[1:])]))
    return labels


def entries_around(text: str, labels: Sequence[Label], start: int, end: int) -> dict[str, str]:
    """Return the thinking entries of a reply whose action is between `start` and `end`.

    The entries before the action count, and one that is written twice is joined. Of those after it, up to the next action or observation,
    only entries that are missing before it count.
    """
    parts: dict[str, list[str]] = {}
    before = [label for label in labels if label.kind == "entry" and label.start < start]
    for label, until in zip(before, [*(label.start for label in before[1:]), start], strict=False):
        parts.setdefault(label.entry, []).append(text[label.end : until].strip())
    behind = [label for label in labels if label.start >= end]
    for label, until in zip(behind, [*(label.start for label in behind[1:]), len(text)], strict=False):
        if label.kind in ("action", "observation"):
            break
        if label.kind == "entry":
            parts.setdefault(label.entry, [text[label.end : until].strip()])
    return {entry: "\n\n".join(filter(None, found)) for entry, found in parts.items()}


@lru_cache(maxsize=64)
def _pattern(entries: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of every label that may begin a line; the first entry's group is `e0`. Longer names are tried first."""
    words = [r"[\W_]{1,3}".join("(?:and|&)" if word == "and" else re.escape(word) for word in entry.lower().split()) for entry in entries]
    named = "".join(f"|(?P<e{index}>{words[index]}s?)" for index in sorted(range(len(words)), key=lambda index: -len(words[index])))
    return re.compile(rf"{_DRESS}(?:{_FIXED}{named}){_WORD_ENDS}", re.IGNORECASE | re.MULTILINE)
