"""Shorten texts that others wrote: to one line, for reasons and messages, or to their head and tail, for prompts."""

from __future__ import annotations

LINE = 500
"""The most characters of a line."""


def one_line(text: str, most: int = LINE) -> str:
    """Return a text as one line of at most `most` characters, without characters that would control a terminal."""
    read = text[: 20 * most]  # the rest of a text of megabytes cannot be shown
    line = " ".join("".join(character if character.isprintable() else " " for character in read).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def shortened(text: str, most: int) -> str:
    """Return a text cut to about `most` characters: its head and its tail, with a note of how much is left out."""
    half = max(1, most // 2)
    return text if len(text) <= most else f"{text[:half]}\n(… {len(text) - 2 * half:,} characters are left out …)\n{text[-half:]}"
