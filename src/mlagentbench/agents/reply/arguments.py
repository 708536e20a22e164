"""Resolves the names in a reply to actions, and a parsed object to an action's arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from mlagentbench.actions.base import ActionDefinition
from mlagentbench.agents.reply.values import NumberText, Value


class ArgumentError(Exception):
    """An object does not fit an action's arguments. The message says why, as a clause."""


_NOT_ALPHANUMERIC = re.compile(r"[\W_]++")


def squeezed(words: str) -> str:
    """Return a name case-folded, without spaces and punctuation."""
    return _NOT_ALPHANUMERIC.sub("", words).casefold()


def action_names(names: Iterable[str]) -> dict[str, str]:
    """Return the actions by their squeezed names, and by those without `(AI)` if only one action has that name."""
    names = list(names)
    short = [squeezed(re.sub(r"\(.*?\)", "", name)) for name in names]
    found = {alias: name for alias, name in zip(short, names, strict=True) if short.count(alias) == 1}
    return found | {squeezed(name): name for name in names}


def fit_arguments(definition: ActionDefinition, pairs: Mapping[str, Value]) -> dict[str, JsonValue]:
    """Return an object's values as the arguments of an action, by the action's own names.

    A key may differ from the name in case, spaces and punctuation.

    Raises:
        ArgumentError: an argument is missing, unknown, given twice, or of a type that cannot be converted without loss.
    """
    names = {squeezed(parameter): parameter for parameter in definition.parameters}
    values: dict[str, Value] = {}
    for key, value in pairs.items():
        parameter = key if key in definition.parameters else names.get(squeezed(key))
        if parameter is None:
            raise ArgumentError(f"{_shown(key)} is not one of its arguments")
        if parameter in values and values[parameter] != value:
            raise ArgumentError(f"{_shown(parameter)} is given twice")
        values[parameter] = value
    arguments: dict[str, JsonValue] = {}
    for parameter, value in values.items():
        wanted = definition.parameters[parameter]
        if value is not None or wanted.required:
            arguments[parameter] = _converted(parameter, value, wanted.type)
    if missing := [parameter for parameter, wanted in definition.parameters.items() if wanted.required and parameter not in arguments]:
        raise ArgumentError(f"{', '.join(map(_shown, missing))} {'is' if len(missing) == 1 else 'are'} missing")
    return arguments


_WHOLE = re.compile(r"(-?\d{1,18})(?:\.0+)?")
_DECIMAL = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,2})?")
_WORDS = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}


def _converted(parameter: str, value: Value, wanted: type) -> JsonValue:
    """Return a value converted to its parameter's type without loss. A list of one text is that text."""
    if wanted is str and isinstance(value, list) and len(value) == 1 and type(value[0]) is str:
        return value[0]
    if wanted is str and isinstance(value, str):
        return str(value)
    if wanted is bool and (isinstance(value, bool) or (isinstance(value, str) and value in ("true", "false", "True", "False"))):
        return value in (True, "true", "True")
    if wanted is int and isinstance(value, str) and (whole := _WHOLE.fullmatch(value)):
        return int(whole.group(1))
    if wanted is float and isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    given = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else _shown(value)
    raise ArgumentError(f"{_shown(parameter)} must be {_WORDS.get(wanted, wanted.__name__)}, not {given}")


def _shown(value: Value) -> str:
    if isinstance(value, NumberText):
        return value[:40]
    return json.dumps(value if not isinstance(value, str) or len(value) <= 60 else value[:57] + "…", ensure_ascii=False)
