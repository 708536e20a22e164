"""Text of files and scripts in prompts: in a fence that the text itself cannot close."""

from __future__ import annotations

import re

_BACKTICKS = re.compile("`+")


def fenced(text: str, language: str = "") -> str:
    """Put a text between fences longer than any run of backticks in it, as CommonMark ends a block.

    Without this a script could print a fence and forge what follows it: an action that nobody took, with its observation.

    Args:
        text: what a file holds or a script printed.
        language: what stands behind the opening fence, such as `python`.
    """
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
