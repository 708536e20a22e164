"""What a reply's words stand for: the action that a phrase names, and the arguments that an object gives it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from mlagentbench.agents._replies.loose_json import NumberText, Value


class ParameterLike(Protocol):
    """What is asked of one argument of an action."""

    @property
    def type(self) -> type:
        """`str`, `int`, `float` or `bool`."""
        ...

    @property
    def required(self) -> bool:
        """Whether it may not be left out."""
        ...


class ActionLike(Protocol):
    """What is asked of an action's definition."""

    @property
    def parameters(self) -> Mapping[str, ParameterLike]:
        """Its arguments by name."""
        ...

    @property
    def usage(self) -> str:
        """An example of its arguments, as JSON."""
        ...


class Misfit(Exception):
    """An object does not give an action its arguments. The message says why, as a clause."""


def squeezed(words: str) -> str:
    """A name without case, spaces and punctuation."""
    return _NOT_ALPHANUMERIC.sub("", words).casefold()


_NOT_ALPHANUMERIC = re.compile(r"[\W_]++")


class Names:
    """Finds the action that a phrase names."""

    _WORD = re.compile(r"[^\W_]+")
    _SIGN = re.compile(r"[^\w\s]|\n")
    _FUNCTION_WORD = re.compile(r"\s+(?:on|to|for|with|in|of|using|again|now)\b", re.IGNORECASE)
    _BEFORE = r"(?:[\"'`*(\[]|(?i:\b(?:the|use|using|call|calling|perform|is)\s))"
    _AFTER = r"(?=[\"'`*)\].,:;]|\s*$|(?i:\s(?:action|tool|command|function|to|on|for|with)\b))"
    _LONGEST = 200

    def __init__(self, names: Iterable[str]) -> None:
        names = list(names)
        short = [(squeezed(re.sub(r"\(.*?\)", "", name)), name) for name in names]
        self._known = {alias: name for alias, name in short if [other for other, _ in short].count(alias) == 1}
        self._known |= {squeezed(name): name for name in names}
        self._most_words = max((len(self._WORD.findall(name)) for name in names), default=0)
        wordy = "|".join(re.escape(name) for name in names if len(self._WORD.findall(name)) > 1)
        self._within = re.compile(self._BEFORE + rf"({wordy or '(?!)'})" + self._AFTER)
        self._seen: dict[str, str | None] = {}

    def exactly(self, phrase: str) -> str | None:
        """The action whose name the phrase is, whatever its case and punctuation."""
        return self._known.get(squeezed(phrase)) if len(phrase) <= self._LONGEST else None

    def leading(self, phrase: str) -> str | None:
        """The action that the phrase is, or begins with and comments on, or speaks of.

        `Execute Script (to check it)`, `Execute Script to check it` and `I will use the Execute Script action` name one,
        `Execute Script Remotely` and `Execute Script, then List Files` do not.
        """
        phrase = phrase[: self._LONGEST]
        if phrase not in self._seen:
            self._seen[phrase] = self.exactly(phrase) or self._commented(phrase) or self._quoted(phrase)
        return self._seen[phrase]

    def _commented(self, phrase: str) -> str | None:
        words = list(itertools.islice(self._WORD.finditer(phrase), self._most_words + 1))
        for count in range(min(self._most_words, len(words)), 0, -1):
            name = self._known.get("".join(word.group() for word in words[:count]).casefold())
            if name:
                end = words[count - 1].end()
                goes_on = self._SIGN.search(phrase, end, words[count].start() if count < len(words) else len(phrase))
                comments = goes_on or self._FUNCTION_WORD.match(phrase, end)
                return name if comments and not self._another(name, phrase[end:]) else None
        return None

    def _quoted(self, phrase: str) -> str | None:
        found = self._within.search(phrase)
        if found is None or self._another(found.group(1), phrase[: found.start()] + phrase[found.end() :]):
            return None
        return found.group(1)

    def _another(self, name: str, rest: str) -> bool:
        """Whether the rest of a phrase names another action; names of one short word could mean something else."""
        rest = squeezed(rest)
        return any(other != name and len(alias) > 8 and alias in rest for alias, other in self._known.items())


class NamedCall(NamedTuple):
    """An object that names its own action, as a tool call does."""

    phrase: str
    pairs: Mapping[str, Value]


_INPUT_KEYS = frozenset({"arguments", "args", "parameters", "params", "input", "kwargs", "actioninput", "toolinput", "actionargs"})
_NAME_KEYS = frozenset({"action", "actionname", "name", "tool", "toolname", "function", "command"})


def as_call(pairs: Mapping[str, Value]) -> NamedCall | None:
    """Read `{"action": "List Files", "action_input": {...}}` and its like; None where the object is not of that kind."""
    named = [value for key, value in pairs.items() if squeezed(key) in _NAME_KEYS]
    given = [value for key, value in pairs.items() if squeezed(key) in _INPUT_KEYS]
    if len(named) == 1 and isinstance(named[0], dict) and not given:
        return as_call(named[0])
    if len(named) != 1 or len(given) != 1 or not isinstance(named[0], str):
        return None
    arguments = given[0]
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False, parse_int=NumberText, parse_float=NumberText)
        except (ValueError, RecursionError):
            return None
    return NamedCall(named[0], arguments) if isinstance(arguments, dict) else None


def fit(name: str, definition: ActionLike, pairs: Mapping[str, Value]) -> dict[str, JsonValue]:
    """The arguments that an object gives an action, under the action's own names for them.

    `{"arguments": {...}}` around them is looked through. A key may differ from its argument in case, spaces and punctuation.

    Raises:
        Misfit: an argument is missing, unknown, given twice, or of a type that cannot be converted without loss.
    """
    try:
        return _fit(definition, pairs)
    except Misfit:
        inner = next(iter(pairs.values())) if len(pairs) == 1 else None
        if isinstance(inner, dict) and squeezed(next(iter(pairs))) in _INPUT_KEYS | {squeezed(name)}:
            return _fit(definition, inner)
        raise


def _fit(definition: ActionLike, pairs: Mapping[str, Value]) -> dict[str, JsonValue]:
    names = {squeezed(parameter): parameter for parameter in definition.parameters}
    values: dict[str, Value] = {}
    for key, value in pairs.items():
        parameter = key if key in definition.parameters else names.get(squeezed(key))
        if parameter is None:
            raise Misfit(f"{_shown(key)} is not one of its arguments")
        if parameter in values and values[parameter] != value:
            raise Misfit(f"{_shown(parameter)} is given twice")
        values[parameter] = value
    arguments: dict[str, JsonValue] = {}
    for parameter, value in values.items():
        wanted = definition.parameters[parameter]
        if value is not None or wanted.required:
            arguments[parameter] = _convert(parameter, value, wanted.type)
    if missing := [parameter for parameter, wanted in definition.parameters.items() if wanted.required and parameter not in arguments]:
        raise Misfit(f"{', '.join(map(_shown, missing))} {'is' if len(missing) == 1 else 'are'} missing")
    return arguments


_WHOLE = re.compile(r"(-?\d{1,18})(?:\.0+)?")
_DECIMAL = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,2})?")
_WORDS = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}


def _convert(parameter: str, value: Value, wanted: type) -> JsonValue:
    """The value in its parameter's type, where that loses nothing."""
    if wanted is str and isinstance(value, str):
        return str(value)
    if wanted is bool and (isinstance(value, bool) or (isinstance(value, str) and value in ("true", "false", "True", "False"))):
        return value in (True, "true", "True")
    if wanted is int and isinstance(value, str) and (whole := _WHOLE.fullmatch(value)):
        return int(whole.group(1))
    if wanted is float and isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    given = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else _shown(value)
    raise Misfit(f"{_shown(parameter)} must be {_WORDS.get(wanted, wanted.__name__)}, not {given}")


def _shown(value: Value) -> str:
    if isinstance(value, NumberText):
        return value[:40]
    return json.dumps(value if not isinstance(value, str) or len(value) <= 60 else value[:57] + "…", ensure_ascii=False)
