"""Reading a reply: which action it asks for, with which arguments, and what its author thought.

Covers: labels in any dress (bold, headings, lists, numbers, quotes, capitals, `Action_Input`); the name on a line of its own, in quotes or
backticks, in lower or snake case, without `(AI)`; arguments in fences, after prose, or right behind the name; a whole reply as one JSON
object, or a tool call in JSON; a call as Python writes it, lines `script_name: train.py`, elements, the lone value of an action with one
argument; a name that stands right before its arguments, under labels of other words or none; `<think>` blocks; a recital of the format or
of earlier steps around the one action.

Does not cover: arguments whose end cannot be told, prose that tells of an action, names of actions that do not exist, and all else that
would need a guess. Those replies are refused, with a message that shows what to write: a refusal costs one call to a model, a wrong guess
may cost the run.

Where more than one action could be meant:

- the first complete one counts, complete being a known name with its arguments;
- once an action was attempted, a line `Observation:` ends the reply, for what follows builds on an observation that never was;
- nothing is looked for behind an object that may have swallowed the rest of the reply;
- labels that begin a line go before labels within one, and those before actions without any; of the latter two, and of actions in
  thinking, there must be only one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.agents._replies import labels
from mlagentbench.agents._replies.arguments import ActionLike, Misfit, Names, as_call, fit, squeezed
from mlagentbench.agents._replies.elements import elements, read_children
from mlagentbench.agents._replies.escapes import Unreadable
from mlagentbench.agents._replies.loose_json import read_object
from mlagentbench.agents._replies.refusals import Faults, form
from mlagentbench.agents._replies.unbraced import read_unbraced
from mlagentbench.agents._replies.values import Call, LooseObject, outermost, outside
from mlagentbench.agents._replies.wrapped import read_arguments
from mlagentbench.errors import ResponseFormatError


class Response(NamedTuple):
    """What a reply says."""

    entries: Mapping[str, str]
    """The thinking entries that were found, by the names that were asked for."""
    action: str
    """The action's name as the paper has it."""
    arguments: Mapping[str, JsonValue]
    """The arguments that were given and no others, under the action's own names for them."""


def parse_response(text: str, entries: Sequence[str], actions: Mapping[str, ActionLike], *, strict: bool = False) -> Response:
    """Read a reply of an agent's model, in time linear in its length.

    No argument is changed but in its type: a whole number may be given as `"10"` or `10.0`, any number as text, text as a bare number
    (kept digit by digit), true and false as text. An optional argument given as null counts as left out.

    Args:
        text: the reply as the provider gave it.
        entries: the names of the thinking entries that were asked for; `Action` and `Action Input` among them are passed over.
        actions: the definitions by the paper's names.
        strict: refuse a reply that lacks one of the entries.

    Raises:
        ResponseFormatError: the reply holds no complete action, or could be read in two ways. The first line of the message says what is
            wrong, the lines after it show what to write.
    """
    thoughts = tuple(entry for entry in entries if squeezed(entry) not in ("action", "actioninput"))
    reading, call = _read_reply(text, thoughts, actions)
    found = reading.entries(call)
    if strict and (missing := [entry for entry in thoughts if entry not in found]):
        raise ResponseFormatError(
            f"The reply lacks {', '.join(missing)}. Write every entry, each on a line of its own, like this:\n\n"
            + form(call.action, actions[call.action].usage, thoughts)
        )
    return Response(found, call.action, call.arguments)


def _read_reply(text: str, thoughts: Sequence[str], actions: Mapping[str, ActionLike]) -> tuple[_Reading, Call]:
    thinking = labels.end_of_thinking(text)
    reading = _Reading(text[thinking.end :], thoughts, actions)
    call = reading.find(anywhere=not thinking.closed)
    drafted = not thinking.closed
    if thinking.end and (not thinking.opened or not reading.attempted):
        # The tag may be part of an argument. Or nothing was said behind it: then the action may stand before it, if there is just one.
        whole = _Reading(text, thoughts, actions)
        first = whole.find(anywhere=not reading.attempted)
        if not reading.attempted or (first and first.start < thinking.end <= first.end):
            reading, call = whole, first
            drafted = first is not None and first.end <= thinking.end
    if call is None:
        raise ResponseFormatError(reading.faults.message())
    if drafted and not labels.says_nothing(reading.text, call.end):
        reading.faults.drafted(call.action)
        raise ResponseFormatError(reading.faults.message())
    return reading, call


_QUOTED_CALL = re.compile(
    r"\{\s*+([\"'])(?:name|tool|tool_name|function|action|action_name|command)\1\s*+:\s*+([\"'])[^\"'\n]{1,80}\2\s*+,\s*+"
    r"([\"'])(?:arguments|args|parameters|params|input|kwargs|tool_input|action_input|action_args)\3\s*+:",
    re.IGNORECASE,
)
_BRACE = re.compile(r"\{(?!\s*\w[\w -]{0,80}\})")
"""The beginning of an object, and not of a placeholder such as `{script_name}`."""
_OPENING = re.compile(r"^[ \t]*+(?=\{\s*+[\"'\u201c])", re.MULTILINE)
_EMPTY = re.compile(r"[^\w\n]*+\n?[ \t]*+(?:```\w*+)?\s*+")
_NAME_LINE = re.compile(r"(?:[ \t]*+```\w*+[ \t\r]*+\n|[^\w\n{]*+\n)*+([^\n]*+)")
_ARGUMENTS = re.compile(r"[^\w\n(]*+(?:\n[^\w(]*+)?\((?=\s*+[A-Za-z_]\w*+\s*+=(?!=))")
_OPENS = re.compile(rf"{_BRACE.pattern}|\(")
_MAX_OPENINGS = 1000
"""A text with more objects or elements, and without labels, is none that a model means as an action."""
_MAX_NAME = 60
_MAX_BROKEN = 20
_MAX_GAP = 200


class _Reading:
    """One text being searched for its action."""

    def __init__(self, text: str, thoughts: Sequence[str], actions: Mapping[str, ActionLike]) -> None:
        self.attempted = False
        """Whether an action was asked for, completely or not."""
        self.text = text
        self._thoughts = thoughts
        self._actions = actions
        self._names = Names(actions)
        self._marks = labels.line_marks(text, thoughts)
        self.faults = Faults(thoughts, actions)
        self._broken = 0
        self._broken_at = len(text)
        self._given: dict[str, str] | None = None

    def find(self, *, anywhere: bool) -> Call | None:
        """The action of the text; None where there is none. With `anywhere`, none but a single one counts."""
        call = self._whole_object()
        if call is None:
            calls = self._labelled(self._marks)
            call = self._only(calls) if anywhere else next(calls, None)
            call = self._before_observation(call) if call else None
        return call or (None if self.attempted else self._anywhere())

    def entries(self, call: Call) -> dict[str, str]:
        """The thinking around the action that was found."""
        return self._given if self._given is not None else labels.entries_of(self.text, self._marks, call.start, call.end)

    def _only(self, calls: Iterable[Call]) -> Call | None:
        found = list(calls)
        if any((call.action, call.arguments) != (found[0].action, found[0].arguments) for call in found):
            self.faults.several()
            return None
        return found[0] if found else None

    def _before_observation(self, call: Call) -> Call:
        """The call, or one without a label before an observation that comes first: then that one, and so the call, never was."""
        observed = next((mark.start for mark in self._marks if mark.kind == "observation"), call.start)
        if observed >= call.start:
            return call
        return _Reading(self.text[:observed], self._thoughts, self._actions).find(anywhere=True) or call

    def _anywhere(self) -> Call | None:
        """The one action of a text in which no line begins with the label of one; what stands within an action's arguments is none."""
        unlabelled = outermost([*self._quoted(), *self._elements(), *self._unlabelled()])
        attempted, self.attempted = self.attempted, False
        inline = labels.inline_marks(self.text, self._marks)
        tried = {mark.end for mark in self._marks if mark.kind == "action"}
        labelled = list(self._labelled(outside(unlabelled, inline), tried))
        if self.attempted and not labelled:
            return None
        self.attempted = self.attempted or attempted
        calls = [call for call in outermost([*unlabelled, *labelled]) if call.start <= self._broken_at]
        invented = (mark.start for mark in self._marks if mark.kind == "observation" and calls and mark.start >= calls[0].end)
        end = next(invented, len(self.text))
        return self._only(call for call in calls if call.start < end)

    # Where an action may stand

    def _labelled(self, marks: Sequence[labels.Mark], tried: Collection[int] = ()) -> Iterator[Call]:
        """The complete actions behind labels, up to a hallucinated observation or an object without an end.

        A label that ends where one was tried in vain is passed over.
        """
        stops = [len(self.text)]
        for mark in reversed(marks):
            stops.append(mark.start if mark.kind in ("action", "observation") else stops[-1])
        passed = 0
        for mark, stop in zip(marks, reversed(stops[:-1]), strict=True):  # a label reaches to the next one's beginning
            if mark.start < passed:
                continue
            if mark.kind == "observation" and self.attempted:
                return
            if mark.kind == "action" and stop > mark.end + 2 and mark.end not in tried:  # no object is shorter
                call, passed = self._read(mark, stop)
                if call:
                    yield call
                if passed < 0:
                    return

    def _read(self, mark: labels.Mark, stop: int) -> tuple[Call | None, int]:
        """The action of a label that reaches to `stop`, and where it ends: -1 where that cannot be told."""
        label = labels.input_label(self.text, mark.end, stop)
        line = _NAME_LINE.match(self.text, mark.end, stop)
        assert line is not None, "every part of it may be empty"
        if "(" in line.group(1) and (called := self._names.called(self.text[line.start(1) : line.end() + _MAX_GAP])):
            call = self._object(called[0], called[0], mark.start, line.start(1) + called[1], stop)
            if label is None or label.start() < call[1] or call[1] < 0:
                return call
        phrase = _NAME_LINE.match(self.text, mark.end, label.start()) if label else line
        assert phrase is not None, "every part of it may be empty"
        words, brace, _ = phrase.group(1).partition("{")
        name = self._names.leading(words)
        if label is None and name is None and (words.strip() or not brace):
            self.faults.of_name(words, 1)
            return None, mark.end
        after = phrase.start(1) + len(words)
        near = (label.end(), stop) if label and not brace else (after, min(stop, after + _MAX_GAP))
        in_call = _ARGUMENTS.match(self.text, *near) if label else None
        start = in_call.end() - 1 if in_call else brace_at.start() if (brace_at := _BRACE.search(self.text, *near)) else -1
        try:
            found = read_unbraced(self.text, *near, self._actions[name]) if name and not brace and not in_call else None
        except Unreadable as fault:
            self.attempted = True
            self.faults.of_input(name, words, 4, f"cannot be read: {fault}")
            return None, -1
        if found:
            self.attempted = True
            return self._fitted(name, words, found, mark.start), found.end
        if start < 0:
            self.attempted = self.attempted or name is not None
            self.faults.of_input(name, words, 2, "must be a JSON object in braces, and there is none")
            return None, mark.end
        return self._object(name, words, mark.start, start, stop)

    def _object(self, name: str | None, words: str, begin: int, start: int, stop: int) -> tuple[Call | None, int]:
        """The action whose arguments begin at the brace at `start`, and where it ends: -1 where that cannot be told."""
        self.attempted = True
        try:
            found = read_arguments(self.text, start, list(self._actions[name].parameters) if name else (), stop)
        except Unreadable as fault:
            self.faults.of_input(name, words, 4, f"cannot be read: {fault}")
            self._broken += 1
            self._broken_at = min(self._broken_at, start)
            region = self.text[start:stop]
            closed = "}" in region and region.count('"') % 2 == region.count('\\"') % 2
            return None, stop if closed and self._broken < _MAX_BROKEN else -1
        return self._fitted(name, words, found, begin), found.end

    def _fitted(self, name: str | None, words: str, found: LooseObject, begin: int) -> Call | None:
        """The action with these arguments; None, and a fault, where they are not its own."""
        misfit = "its action is unknown"
        if name is not None:
            try:
                return Call(name, fit(name, self._actions[name], found.pairs), begin, found.end)
            except Misfit as fault:
                misfit = str(fault)
        call = as_call(found.pairs)
        inner = self._names.exactly(call.phrase) if call else None
        if call and inner and (name == inner or not words.strip()):
            return self._fitted(inner, words, LooseObject(call.pairs, found.end), begin)
        self.faults.of_input(name, call.phrase if call else words, 4 if name else 3, f"does not fit: {misfit}")
        return None

    def _whole_object(self) -> Call | None:
        """The action of a reply that is one JSON object, entries and all, perhaps behind prose or an empty label."""
        opening = _OPENING.search(self.text)
        if opening is None or any(self._names_something(mark, opening.start()) for mark in self._marks):
            return None
        try:
            found = read_object(self.text, opening.end(), (), len(self.text))
        except Unreadable:
            return None
        call = as_call(found.pairs)
        name = self._names.leading(call.phrase) if call else None
        after = next((mark.kind for mark in self._marks if mark.start >= found.end and mark.kind in ("action", "observation")), None)
        if call is None or name is None or (after == "action" and self.text[: opening.start()].strip(" \t\r\n`jsonJSON")):
            return None
        self.attempted = True
        complete = self._fitted(name, call.phrase, LooseObject(call.pairs, found.end), 0)
        if complete:
            asked = {squeezed(entry): entry for entry in self._thoughts}
            texts = {asked.get(squeezed(key)): value for key, value in found.pairs.items()}
            self._given = {entry: value.strip() for entry, value in texts.items() if entry and isinstance(value, str)}
        return complete

    def _names_something(self, mark: labels.Mark, stop: int) -> bool:
        """Whether anything but a fence is between the label of an action and a place behind it."""
        return mark.kind == "action" and mark.end < stop and not _EMPTY.fullmatch(self.text, mark.end, stop)

    def _quoted(self) -> Iterator[Call]:
        """The complete actions among tool calls in JSON, without labels."""
        passed = 0
        for found in _QUOTED_CALL.finditer(self.text):
            if found.start() >= passed:
                call, passed = self._object(None, "", found.start(), found.start(), len(self.text))
                if call:
                    yield call
                if passed < 0:
                    return

    def _unlabelled(self) -> Iterator[Call]:
        """The complete actions whose name stands right before their arguments, with labels of other words or none."""
        openings = list(itertools.islice(_OPENS.finditer(self.text), _MAX_OPENINGS + 1))
        passed = 0
        for start in (found.start() for found in openings if len(openings) <= _MAX_OPENINGS):
            is_call = self.text[start] == "("
            name = self._names.before(self.text[max(passed, start - _MAX_GAP) : start], call=is_call) if start >= passed else None
            if name and (not is_call or self._names.called(name + self.text[start : start + _MAX_NAME])):
                call, passed = self._object(name, name, start, start, len(self.text))
                if call:
                    yield call
                if passed < 0:
                    return

    def _elements(self) -> Iterator[Call]:
        """The complete actions among elements that hold their arguments as elements."""
        found_all = list(itertools.islice(elements(self.text), _MAX_OPENINGS + 1))
        passed = 0
        for element in found_all if len(found_all) <= _MAX_OPENINGS else []:
            name = self._names.exactly(element.phrase) if element.start >= passed else None
            if name is None:
                continue
            try:
                found = read_children(self.text, element.inside, len(self.text), element.tag)
            except Unreadable as fault:
                self.attempted = True
                self._broken_at = min(self._broken_at, element.start)
                self.faults.of_input(name, name, 4, f"cannot be read: {fault}")
                return
            if found and (call := self._fitted(name, name, found, element.start)):
                passed = call.end
                yield call
