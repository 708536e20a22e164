"""Actions that were found in a reply, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.agents._replies.labels import Mark


class Call(NamedTuple):
    """A complete action, and where in the text it stands."""

    action: str
    arguments: Mapping[str, JsonValue]
    start: int
    end: int


def outermost(calls: Sequence[Call]) -> list[Call]:
    """Those that are not within the arguments of another, in order."""
    outer: list[Call] = []
    for call in sorted(calls, key=lambda call: (call.start, -call.end)):
        if not outer or call.start >= outer[-1].end:
            outer.append(call)
    return outer


def outside(calls: Sequence[Call], marks: Sequence[Mark]) -> list[Mark]:
    """The marks that are not within the arguments of a call; both are in order."""
    found, ahead = [], list(reversed(calls))
    for mark in marks:
        while ahead and ahead[-1].end <= mark.start:
            ahead.pop()
        if not ahead or mark.start < ahead[-1].start:
            found.append(mark)
    return found
