"""Parses a reply of an agent's model: the action it asks for, the arguments, and the thinking entries.

Covers: labels in any markup (bold, headings, lists, numbers, quotes, capitals, `Action_Input`); the name after `Action` or on the next
line, in lower or snake case, without `(AI)`; arguments as JSON or nearly so, in fences, after prose, or right after the name; thinking
blocks before the reply; a repetition of the format or of earlier steps around the one action.

Does not cover: actions without labels, arguments that are not an object in braces, and anything else that would need a guess. Those replies
are refused, with a message that shows what to write: a refusal costs one call to a model, a wrong guess may cost the run.

The first complete action counts: a known name with all its arguments. One that is introduced as an example, or as what not to do, is
skipped. After an attempted action or an object without a label, a line `Observation:` ends the reply, since the model invented that
observation. The search also ends at a broken object that may include the rest of the reply.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.actions.base import ActionDefinition
from mlagentbench.agents.reply.arguments import ArgumentError, action_names, fit_arguments, squeezed
from mlagentbench.agents.reply.labels import INPUT_LABEL, Label, end_of_thinking, entries_around, find_labels
from mlagentbench.agents.reply.loose_json import read_object
from mlagentbench.agents.reply.values import Unreadable
from mlagentbench.errors import ResponseFormatError


class Response(NamedTuple):
    """A parsed reply."""

    entries: Mapping[str, str]
    """The thinking entries that were found, by their requested names."""
    action: str
    """The action's name, as in the paper."""
    arguments: Mapping[str, JsonValue]
    """The given arguments, without defaults, by the action's own names for them."""


def parse_response(text: str, entries: Sequence[str], actions: Mapping[str, ActionDefinition]) -> Response:
    """Parse a reply of an agent's model, in time linear in its length.

    Arguments are converted in type only: a whole number may be given as `"10"` or `10.0`, any number as text, text as a bare number
    (digits unchanged) or as a list of one text, true and false as text. An optional argument given as null counts as left out.

    Args:
        text: the reply as the provider gave it.
        entries: the names of the requested thinking entries; `Action` and `Action Input` among them are ignored.
        actions: the definitions, by the paper's names.

    Raises:
        ResponseFormatError: the reply holds no complete action, or has two possible readings. The first line of the message says what is
            wrong, the lines after it show what to write.
    """
    thoughts = tuple(entry for entry in entries if squeezed(entry) not in ("action", "actioninput"))
    text = text[end_of_thinking(text) :]
    labels = find_labels(text, thoughts)
    call = _Search(text, thoughts, actions).first(labels)
    found = entries_around(text, labels, call.start, call.end)
    return Response(found, call.action, call.arguments)


class _Call(NamedTuple):
    """A complete action, and its position in the text."""

    action: str
    arguments: Mapping[str, JsonValue]
    start: int
    end: int


_BRACE = re.compile(r"\{(?!\s*\w[\w -]{0,80}\})")
"""The beginning of an object, as opposed to a placeholder such as `{script_name}`."""
_NAME_LINE = re.compile(r"(?:[ \t]*+```\w*+[ \t\r]*+\n|[^\w\n{]*+\n)*+([^\n]*+)")
_EXAMPLE = re.compile(
    r"(?:\b(?:an example|for (?:example|instance)|how you (?:could|can|might|would)|you (?:should|must)(?: not|n't))\b"
    r"|^\W*(?:examples?|do not|don't|never|avoid)\b)"
    r"[^\n]*:\W*(?:```\w*\W*)?\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that ends in a colon and introduces an action as an example."""
_MAX_GAP = 200
"""Characters that are searched between a name and its arguments, or before a label."""
_MAX_BROKEN = 20


class _Search:
    """The search for the action in one text."""

    def __init__(self, text: str, thoughts: Sequence[str], actions: Mapping[str, ActionDefinition]) -> None:
        self._text = text
        self._thoughts = thoughts
        self._actions = actions
        self._names = action_names(actions)
        self._attempted = False
        """Whether an action was asked for, complete or not."""
        self._broken = 0
        self._faults: dict[str, tuple[str, str]] = {}
        """The first fault of each kind: the action or words that it is about, and a clause that says what is wrong."""

    def first(self, labels: Sequence[Label]) -> _Call:
        """Return the first complete action.

        Raises:
            ResponseFormatError: there is none.
        """
        labels = [label for label in labels if label.kind in ("action", "observation")]
        first_brace = f"{self._text}{{".index("{")
        passed = 0
        for label, stop in zip(labels, [*(label.start for label in labels[1:]), len(self._text)], strict=False):
            if label.start < passed or (label.kind == "action" and stop <= label.end + 2):  # no object is shorter
                continue
            if label.kind == "observation":
                if self._attempted or first_brace < label.start:
                    break
                continue
            call, passed = self._read(label, stop)
            if call and not _EXAMPLE.search(self._text, max(0, label.start - _MAX_GAP), label.start):
                return call
            if call:
                self._faults.setdefault("example", (call.action, "is only shown as an example, or as what not to do"))
            if passed < 0:
                break
        raise ResponseFormatError(self._refusal())

    def _read(self, label: Label, stop: int) -> tuple[_Call | None, int]:
        """Return the action of a label whose text ends at `stop`, if it is complete, and where it ends: -1 if that is unknown."""
        behind = INPUT_LABEL.search(self._text, label.end, stop)
        line = _NAME_LINE.match(self._text, label.end, behind.start() if behind else stop)
        assert line is not None, "every part of it may be empty"
        words, brace, _ = line.group(1).partition("{")
        name = self._names.get(squeezed(words[:_MAX_GAP]))
        if name is None and 0 < len(_bare(words).split()) <= 6:  # more words would be prose
            self._faults.setdefault("name", (_bare(words), ""))
        if name is None and not behind:
            return None, label.end
        after = line.start(1) + len(words)
        near = (behind.end(), stop) if behind and not brace else (after, min(stop, after + _MAX_GAP))
        start = _BRACE.search(self._text, *near)
        self._attempted = self._attempted or name is not None or start is not None
        if start:
            return self._read_object(name, label.start, start.start(), stop)
        if name and not any(parameter.required for parameter in self._actions[name].parameters.values()):
            return _Call(name, {}, label.start, stop), stop
        if name:
            self._faults.setdefault("missing", (name, "must be a JSON object in braces, and there is none"))
        return None, label.end

    def _read_object(self, name: str | None, begin: int, start: int, stop: int) -> tuple[_Call | None, int]:
        text = self._text
        try:
            found = read_object(text, start, list(self._actions[name].parameters) if name else (), stop)
            if text[max(0, start - 20) : start].rstrip().endswith("[") and not text[found.end : stop].lstrip().startswith("]"):
                raise Unreadable("it is a list of several objects")
            if name is None:
                return None, found.end
            return _Call(name, fit_arguments(self._actions[name], found.pairs), begin, found.end), found.end
        except ArgumentError as fault:
            self._faults.setdefault("input", (name or "", f"does not fit: {fault}"))
            return None, found.end
        except Unreadable as fault:
            if name:
                self._faults.setdefault("input", (name, f"cannot be read: {fault}"))
            self._broken += 1
            region = text[start:stop]
            closed = "}" in region and region.count('"') % 2 == region.count('\\"') % 2
            return None, stop if closed and self._broken < _MAX_BROKEN else -1

    def _refusal(self) -> str:
        """Return the message that says what is wrong, and what to write."""
        offered = ", ".join(name for name, definition in self._actions.items() if not definition.hidden)
        kind = next((kind for kind in ("input", "missing", "name", "example") if kind in self._faults), None)
        if kind is None:
            example = _form(f"[one of: {offered}]", "[its arguments as a JSON object]", self._thoughts)
            return f"The reply holds no action.\nEnd it with one, like this:\n\n{example}"
        subject, what = self._faults[kind]
        if kind != "name":
            about = "The action" if kind == "example" else "The Action Input of"
            return f"{about} {subject} {what}.\nWrite:\n\n{_form(subject, self._actions[subject].usage)}"
        close = next(iter(difflib.get_close_matches(subject, self._actions, 1)), None)
        example = _form(close, self._actions[close].usage) if close else _form("[its name]", "[its arguments as a JSON object]")
        hint = f" Did you mean {close}?" if close else ""
        what = f"There is no action {json.dumps(subject, ensure_ascii=False)}.{hint} The actions are: {offered}."
        return f"{what}\nWrite one like this:\n\n{example}"


def _bare(words: str) -> str:
    return words[:120].strip(" \t\r`*\"'.:,")


def _form(name: str, usage: str, thoughts: Sequence[str] = ()) -> str:
    """Return an example of a reply's form."""
    return "".join(f"{entry}: [your text]\n" for entry in thoughts) + f"Action: {name}\nAction Input: {usage}"
