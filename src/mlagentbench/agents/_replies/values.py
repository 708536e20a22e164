"""What is found in a reply: values, objects, and actions with their places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pydantic import JsonValue

from mlagentbench.agents._replies.labels import Mark

Value: TypeAlias = "str | NumberText | bool | list[Value] | dict[str, Value] | None"

UNNAMED = ""
"""The key of an argument that was given without its name."""

NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])")
CONSTANTS: Mapping[str, bool | None] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}


class NumberText(str):
    """A number as it was written, so that no digit is lost before its type is known."""


class LooseObject(NamedTuple):
    """An object, and where it ends in the text."""

    pairs: Mapping[str, Value]
    end: int


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
