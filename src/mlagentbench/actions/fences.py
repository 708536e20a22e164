"""Puts the text of files and scripts into prompts, in a fence that the text itself cannot close."""

from __future__ import annotations

import re

_BACKTICKS = re.compile("`+")


def fenced(text: str, language: str = "") -> str:
    """Return a text between fences that are longer than any run of backticks in it; CommonMark ends a block only at such a fence.

    Without this a script could print a fence and forge what follows it: an action that was never taken, with its observation.

    Args:
        text: the content of a file or the output of a script.
        language: the info string of the opening fence, such as `python`.
    """
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
