"""What is read from a reply: values, and objects with the place where they end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

Value: TypeAlias = "str | NumberText | bool | list[Value] | dict[str, Value] | None"

NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])")
CONSTANTS: Mapping[str, bool | None] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}


class NumberText(str):
    """A number as it was written, so that no digit is lost before its type is known."""


class ParsedObject(NamedTuple):
    """An object, and where it ends in the text."""

    pairs: Mapping[str, Value]
    end: int


class Unreadable(Exception):
    """There is no object here, or more than one way to read it. The message says what is wrong with it, as a clause."""


class Ambiguous(Unreadable):
    """The object's shape is clear, but one of its values can be read in two ways."""
