"""What a reply's words stand for: the action that a phrase names, and the arguments that an object gives it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from mlagentbench.agents._replies.escapes import Unreadable
from mlagentbench.agents._replies.loose_json import read_object
from mlagentbench.agents._replies.values import UNNAMED, NumberText, Value


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
    _FUNCTION_WORD = re.compile(r"\s+(?:on|to|for|with|in|of|using|again|now|action|tool|command)\b", re.IGNORECASE)
    _BEFORE = r"(?:[\"'`*(\[]|(?i:\b(?:the|use|using|call|calling|perform|is)\s))"
    _AFTER = r"(?=[\"'`*)\].,:;]|\s*$|(?i:\s(?:action|tool|command|function|to|on|for|with)\b))"
    _NUMBERED = re.compile(r"\W*\d{1,2}[.)]\s+")
    _LAST_SIGN = re.compile(r".*[:\uff1a=]", re.DOTALL)
    _LONGEST = 200
    _SIGNS = re.compile(r"[^\w(\"']*+")
    _CALL = re.compile(r"[ \t]*+\((?=\s*+[A-Za-z_]\w*+\s*+=(?!=))|\((?=\s*+[\"'])")
    _NO_GAP = re.compile(r"[ \t]*+")
    _LABEL = r"[^\w\n{]{0,8}[^\W\d_][\w'\u2019 -]{0,40}[^\w\n{]{0,6}[:\uff1a=][*_`| ]{0,6}"
    _BREAK = r"(?:(?=[ \t\r]*+\n)\s++|[ \t]*+<[^<>\n{]{1,40}+>\s*+)"
    _GAP = re.compile(rf"[^\w\n{{<]{{0,12}}+(?:{_BREAK}(?:```\w{{0,10}}|{_LABEL}|[*_`>|#]{{0,4}})){{0,5}}\s*+")
    # Not behind a bullet or a number: such are the lines of a list of what was or might be done.
    _BULLET = r"[ \t]*+(?:[-+*\u2022]|\d+[.)])[ \t]"
    _HEAD_LABEL = r"(?:[^\w\n]*+[\w'\u2019]++){1,4}[^\w\n]*[:\uff1a=][^\w\n]*+"
    _HEAD = re.compile(rf"(?!{_BULLET})(?:[^\w\n]*+|.*[>|\uff5c][^\w\n]*+|{_HEAD_LABEL})")

    def __init__(self, names: Iterable[str]) -> None:
        names = list(names)
        short = [(squeezed(re.sub(r"\(.*?\)", "", name)), name) for name in names]
        self._known = {alias: name for alias, name in short if [other for other, _ in short].count(alias) == 1}
        self._known |= {squeezed(name): name for name in names}
        self._most_words = max((len(self._WORD.findall(name)) for name in names), default=0)
        wordy = "|".join(re.escape(name) for name in names if len(self._WORD.findall(name)) > 1)
        self._within = re.compile(self._BEFORE + rf"({wordy or '(?!)'})" + self._AFTER)
        self._seen: dict[str, str | None] = {}
        loosely = "|".join(_loosely(name) for name in sorted(names, key=len, reverse=True))
        self._loosely = re.compile(rf"(?<![^\W_])(?:{loosely or '(?!)'})", re.IGNORECASE)

    def exactly(self, phrase: str) -> str | None:
        """The action whose name the phrase is, whatever its case and punctuation."""
        return self._known.get(squeezed(phrase)) if len(phrase) <= self._LONGEST else None

    def leading(self, phrase: str) -> str | None:
        """The action that the phrase is, or begins with and comments on, or speaks of.

        `Execute Script (to check it)`, `Execute Script to check it`, `1. Tool: Execute Script` and `I will use the Execute Script action`
        name one, `Execute Script Remotely` and `Execute Script, then List Files` do not.
        """
        phrase = phrase[: self._LONGEST]
        if phrase not in self._seen:
            plain = phrase[number.end() :] if (number := self._NUMBERED.match(phrase)) else phrase
            self._seen[phrase] = self.exactly(plain) or self._commented(plain) or self._quoted(plain) or self._labelled(plain)
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

    def called(self, phrase: str) -> tuple[str, int] | None:
        """The action that the phrase calls as `Execute Script(script_name="train.py")` does, and where the parenthesis is."""
        sign = self._SIGNS.match(phrase)
        found = self._loosely.match(phrase, sign.end() if sign else 0)
        opening = self._CALL.match(phrase, found.end()) if found else None
        name = self.exactly(found.group()) if found else None
        return (name, opening.end() - 1) if name and opening else None

    def before(self, passage: str, *, call: bool) -> str | None:
        """The action whose name a passage ends with, to which the arguments behind the passage belong.

        The name begins its line, or stands behind a label, a sign or a tag. Nothing but a label, tags and fences may be between it and the
        arguments; between it and those of a `call`, nothing.
        """
        for found in reversed(list(self._loosely.finditer(passage))):
            gap = self._NO_GAP if call else self._GAP
            line = passage[passage.rfind("\n", 0, found.start()) + 1 : found.start()]
            if gap.fullmatch(passage, found.end()):
                return self.exactly(found.group()) if self._HEAD.fullmatch(line) else None
        return None

    def _labelled(self, phrase: str) -> str | None:
        sign = self._LAST_SIGN.match(phrase)
        name = self.exactly(phrase[sign.end() :]) if sign else None
        return name if sign and name and not self._another(name, sign.group()) else None

    def _another(self, name: str, rest: str) -> bool:
        """Whether the rest of a phrase names another action; names of one short word could mean something else."""
        rest = squeezed(rest)
        return any(other != name and len(alias) > 8 and alias in rest for alias, other in self._known.items())


def _loosely(name: str) -> str:
    """A pattern of a name, its words joined in any way, with or without what it has in parentheses."""
    bare, mark, rest = name.partition("(")
    words = r"[\s_-]{0,3}".join(map(re.escape, Names._WORD.findall(bare)))
    return words + (rf"(?:[\s_-]{{0,3}}\(?{re.escape(rest.strip(' )'))}\)?)?" if mark else "")


class NamedCall(NamedTuple):
    """An object that names its own action, as a tool call does."""

    phrase: str
    pairs: Mapping[str, Value]


_INPUT_KEYS = frozenset({"arguments", "args", "parameters", "params", "input", "kwargs", "actioninput", "toolinput", "actionargs"})
_NAME_KEYS = frozenset({"action", "actionname", "name", "tool", "toolname", "function", "command"})


def as_call(pairs: Mapping[str, Value]) -> NamedCall | None:
    """Read `{"action": "List Files", "action_input": {...}}` and its like; None where the object is not of that kind.

    The name may be the only key, too, or the arguments stand beside it. Text for input that is no JSON is the only argument of its action.
    """
    if len(pairs) == 1 and isinstance(inner := next(iter(pairs.values())), dict):
        key = next(iter(pairs))
        return as_call(inner) if squeezed(key) in _NAME_KEYS else None if squeezed(key) in _INPUT_KEYS else NamedCall(key, inner)
    name_keys = [key for key in pairs if squeezed(key) in _NAME_KEYS]
    if len(name_keys) > 1:  # an argument may be called like them
        name_keys = [key for key in name_keys if squeezed(key) == "action"]
    named = [pairs[key] for key in name_keys]
    given = [value for key, value in pairs.items() if squeezed(key) in _INPUT_KEYS]
    if len(named) == 1 and isinstance(named[0], dict) and not given:
        return as_call(named[0])
    if len(named) != 1 or not isinstance(named[0], str):
        return None
    beside = {key: value for key, value in pairs.items() if key not in name_keys}
    if beside and not given and not any(isinstance(value, dict | list) for value in beside.values()):
        return NamedCall(named[0], beside)
    arguments = _encoded(given[0]) if len(given) == 1 else None
    return NamedCall(named[0], arguments) if isinstance(arguments, dict) else None


def _encoded(arguments: Value) -> Value:
    """Arguments that may be text which holds their JSON, or the one argument itself."""
    if not isinstance(arguments, str):
        return arguments
    written = arguments.strip()
    if not written.startswith(("{", "[")):
        return None if stands_for_nothing(written) else {UNNAMED: arguments}
    try:
        found = read_object(written, 0, (), len(written))
    except Unreadable:
        return None
    return dict(found.pairs) if found.end == len(written) else None


def stands_for_nothing(words: str) -> bool:
    """Whether words such as `None` or `N/A` say that there is no input."""
    return words.strip(" \t\r\n\"'`()[]{}-").rstrip(".").casefold() in _NOTHING and words.strip() not in (".", "..")


_NOTHING = frozenset({"", "none", "null", "n/a", "na", "nil", "empty", "no input", "no arguments", "no parameters", "not applicable"})


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
        if key == UNNAMED:
            parameter = _only_parameter(definition)
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


def _only_parameter(definition: ActionLike) -> str:
    if len(definition.parameters) != 1:
        raise Misfit("its arguments must be given by name")
    return next(iter(definition.parameters))


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
