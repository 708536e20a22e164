"""Parses a reply that is a plan and a whole script in one fenced block."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mlagentbench.agents.reply.labels import end_of_thinking
from mlagentbench.errors import ResponseFormatError
from mlagentbench.util.source import parsed

PYTHON = ("", "python", "python3", "py")
_FENCE = re.compile(r"^ {0,3}```+[ \t]*([\w+-]*)[ \t]*$", re.MULTILINE)
FORM = "Write your plan in a few sentences, then the whole script in one block that begins with ```python and ends with ```."


class WrittenScript(NamedTuple):
    """A parsed reply."""

    plan: str
    script: str


def read_script(text: str) -> WrittenScript:
    """Return the plan and the script of a reply.

    A script may hold fences itself: its block ends at the last fence that leaves valid Python, or else at the first one. Blocks of other
    languages are skipped.

    Raises:
        ResponseFormatError: the reply holds no script, more than one, or one whose block is not closed.
    """
    text = text[end_of_thinking(text) :].replace("\r\n", "\n")
    fences = list(_FENCE.finditer(text))
    start = _opening(fences, 0)
    if start is None:
        raise ResponseFormatError(f"It holds no script. {FORM}")
    ends = [number for number in range(start + 1, len(fences)) if not fences[number][1]]
    if not ends:
        raise ResponseFormatError(f"The block of its script has no end, as if the reply had been cut off. Write a shorter script. {FORM}")
    scripts = {end: text[fences[start].end() : fences[end].start()].strip("\n") + "\n" for end in ends}
    end = next((end for end in reversed(ends) if parsed(scripts[end]) is not None), ends[0])
    if not scripts[end].strip():
        raise ResponseFormatError(f"The block of its script is empty. {FORM}")
    if _opening(fences, end + 1) is not None:
        raise ResponseFormatError(f"It holds more than one block of Python, and there must be one with all of the script. {FORM}")
    return WrittenScript(text[: fences[start].start()].strip(), scripts[end])


def _opening(fences: Sequence[re.Match[str]], first: int) -> int | None:
    """Return the number of the fence that opens the next block of Python; None if there is none."""
    inside = False
    for number, fence in enumerate(fences[first:], first):
        if not inside and fence[1].lower() in PYTHON:
            return number
        inside = not inside or fence[1] != ""
    return None
