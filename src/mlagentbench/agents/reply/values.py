"""The values and objects that are parsed from a reply, and the errors for those that cannot be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Value: TypeAlias = "str | NumberText | bool | list[Value] | dict[str, Value] | None"

NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])")
CONSTANTS: Mapping[str, bool | None] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}


class NumberText(str):
    """A number as it was written, so that no digit is lost before the parameter's type is known."""


class ParsedObject(NamedTuple):
    """An object, and the offset in the text at which it ends."""

    pairs: Mapping[str, Value]
    end: int


class Unreadable(Exception):
    """There is no object, or it has more than one reading. The message says what is wrong, as a clause."""


class Ambiguous(Unreadable):
    """The object's structure is clear, but one of its values has two possible readings."""
