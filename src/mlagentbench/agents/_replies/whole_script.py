"""A reply that is a plan and a whole script in one fenced block, read as models write it."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from mlagentbench.agents._replies.labels import end_of_thinking
from mlagentbench.errors import ResponseFormatError

PYTHON = ("", "python", "python3", "py")
_FENCE = re.compile(r" {0,3}```+[ \t]*([\w+-]*)[ \t]*")
FORM = "Write your plan in a few sentences, then the whole script in one block that begins with ```python and ends with ```."


class WrittenScript(NamedTuple):
    """What a reply holds."""

    plan: str
    script: str


def read_script(text: str) -> WrittenScript:
    """The plan and the script of a reply.

    A script may hold fences itself: of those that could end its block, the last one counts that leaves it Python that can be parsed, else
    the first. Blocks of other languages are passed over.

    Raises:
        ResponseFormatError: the reply holds no script, more than one, or one without its end.
    """
    lines = text[end_of_thinking(text).end :].replace("\r\n", "\n").split("\n")
    start = _opening(lines, 0)
    if start is None:
        raise ResponseFormatError(f"It holds no script. {FORM}")
    ends = [number for number in range(start + 1, len(lines)) if _tag(lines[number]) == ""]
    if not ends:
        raise ResponseFormatError(f"The block of its script has no end, as if the reply had been cut off. Write a shorter script. {FORM}")
    scripts = {end: "\n".join(lines[start + 1 : end]).strip("\n") + "\n" for end in ends}
    end = next((end for end in reversed(ends) if _parses(scripts[end])), ends[0])
    if not scripts[end].strip():
        raise ResponseFormatError(f"The block of its script is empty. {FORM}")
    if _opening(lines, end + 1) is not None:
        raise ResponseFormatError(f"It holds more than one block of Python, and there must be one with all of the script. {FORM}")
    return WrittenScript("\n".join(lines[:start]).strip(), scripts[end])


def _tag(line: str) -> str | None:
    """The language behind a fence, in lower case; None for a line that is none."""
    match = _FENCE.fullmatch(line)
    return match[1].lower() if match else None


def _opening(lines: list[str], first: int) -> int | None:
    """Where the next block of Python begins."""
    inside = False
    for number in range(first, len(lines)):
        tag = _tag(lines[number])
        if inside:
            inside = tag != ""
        elif tag in PYTHON:
            return number
        else:
            inside = tag is not None
    return None


def _parses(script: str) -> bool:
    try:
        ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
