"""What is told of a step, on the page and in a terminal: its record turned into words and cut texts. Who shows them escapes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.errors import RunNotFound
from mlagentbench.records import Step, StepScore, Usage
from mlagentbench.report import text, words
from mlagentbench.results.load import Run
from mlagentbench.tasks.success import THRESHOLD
from mlagentbench.workspace.snapshots import FileChange

SHORT = 72
"""Characters of an argument up to which it is shown within a line."""
FILES = 20
"""Changed files of a step that are shown with their differences; the rest are counted."""

NO_SNAPSHOT = "no snapshot of this step"


class Room(NamedTuple):
    """Characters that a text may have before it is cut."""

    words: int
    """For what an agent wrote: thoughts, arguments, answers."""
    output: int
    """For what it was shown, and for differences of files."""


class Argument(NamedTuple):
    """One argument of an action."""

    name: str
    text: text.Cut
    block: bool
    """Whether it is shown as a block of its own."""


class DiffPart(NamedTuple):
    """Adjacent lines of a unified diff that are of one kind: `add`, `del`, `hunk` or `same`."""

    kind: str
    text: str


class ChangeView(NamedTuple):
    """One changed file of a step."""

    path: str
    what: str
    added: int
    removed: int
    parts: tuple[DiffPart, ...]
    left_out: int
    """Characters of the diff that are not shown."""
    note: str


class StepView(NamedTuple):
    """One step."""

    number: int
    anchor: str
    command: str
    """What shows the whole step in a terminal."""
    action: str
    gist: str
    """What the action was about, in a few words."""
    thought: str
    """Its first words, for the folded step."""
    status: str
    status_words: str
    seconds: str
    split: str
    tokens: str
    calls: str
    entries: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    observation: tuple[text.Cut, ...]
    """In parts, between which the differences stood that are shown as the changed files."""
    changes: tuple[ChangeView, ...]
    changes_note: str
    score: str
    score_note: str
    score_kind: str
    """`better` or `worse` by more than a success needs, `same` if not or as the step before, `invalid`; empty where it was not graded."""
    rejected: tuple[Argument, ...]


def step_views(run: Run, slug: str, room: Room) -> Iterable[StepView]:
    """The steps of a run as they are told; long texts are cut."""
    scores = {score.step: score for score in run.scores}
    before = scores.get(0)
    for step in run.steps:
        score = scores.get(step.number)
        yield step_view(run, step, slug, room, score, before)
        before = score or before


def shown_path(path: Path) -> Path:
    """A path as a user would type it: relative to the working directory where it lies below it."""
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def step_view(run: Run, step: Step, slug: str, room: Room, score: StepScore | None, before: StepScore | None) -> StepView:
    """One step as it is told.

    Args:
        run: the run.
        step: the step.
        slug: the run's part of an anchor.
        room: how long texts may be.
        score: of the submission as the step left it; None where it was not graded.
        before: of the last step before it that was graded.
    """
    changes, note = _changes(run, step.number)
    split = [
        f"{label} {text.duration(seconds)}"
        for label, seconds in (("model", step.model_seconds), ("script", step.script_seconds))
        if seconds
    ]
    entries = {name: entry for name, entry in step.entries.items() if entry.strip()}
    shown, shown_note, kind = _score(run, score, before)
    return StepView(
        number=step.number,
        anchor=f"{slug}/{step.number}",
        command=f"mlab show {shown_path(run.directory.path)} --step {step.number}",
        action=step.action.name,
        gist=_gist(step.action.arguments),
        thought=_first_words(entries),
        status=step.status,
        status_words=words.STATUSES[step.status],
        seconds=text.duration(step.seconds),
        split=", ".join(split),
        tokens=text.tokens(step.usage.tokens) if step.usage.calls else "",
        calls=f"{text.plural(step.usage.calls, 'model call')}: {usage_words(step.usage)}" if step.usage.calls else "no model call",
        entries=tuple(Argument(name, text.cut(entry.strip(), room.words), block=True) for name, entry in entries.items()),
        arguments=tuple(_argument(name, value, room) for name, value in step.action.arguments.items()),
        observation=tuple(text.cut(part, room.output) for part in _without(changes, step.observation)),
        changes=tuple(_change_view(change, room) for change in changes[:FILES]),
        changes_note=note,
        score=shown,
        score_note=shown_note,
        score_kind=kind,
        rejected=rejected_replies(run, step.number, room) if step.malformed else (),
    )


def rejected_replies(run: Run, step: int, room: Room) -> tuple[Argument, ...]:
    """The replies before a step that held no action, named by what their model was told to mend."""
    try:
        calls = run.calls(step)
    except RunNotFound as error:
        return (Argument(str(error), text.cut("", 0), block=True),)
    return tuple(Argument(call.rejected, text.cut(call.reply, room.words), block=True) for call in calls if call.rejected)


def _score(run: Run, score: StepScore | None, before: StepScore | None) -> tuple[str, str, str]:
    """A step's score, what to say of it, and its kind."""
    if score is None:
        return "", "", ""
    if score.value is None:
        return "no valid score", score.reason or "", "invalid"
    shown = text.quantity(score.value, run.info.unit)
    note = text.percent(score.improvement) if score.improvement is not None else ""
    if before is not None and before.value == score.value:
        return shown, note, "same"
    improvement = score.improvement or 0.0
    return shown, note, "better" if improvement > THRESHOLD else "worse" if improvement < -THRESHOLD else "same"


def _changes(run: Run, step: int) -> tuple[tuple[FileChange, ...], str]:
    """What a step changed, and what to say of changes that are not shown."""
    try:
        changes = run.changes(step)
    except RunNotFound as error:
        return (), str(error)
    if changes is None:
        return (), NO_SNAPSHOT
    return changes, f"and {text.plural(len(changes) - FILES, 'file')} more" if len(changes) > FILES else ""


def _without(changes: Iterable[FileChange], observation: str) -> list[str]:
    """An observation, split where it tells a whole difference that is shown as a changed file: an edit's does, and once is enough."""
    for change in changes:
        _, _, body = (change.text or "").partition("\n+++ ")
        body = body.partition("\n")[2].rstrip("\n")
        if len(body) > SHORT and body in observation:
            before, _, after = observation.partition(body)
            return [re.sub(r"--- .*\n\+\+\+ .*\n\Z", "", before), after]
    return [observation]


def _change_view(change: FileChange, room: Room) -> ChangeView:
    if change.text is None:
        sizes = [text.size(size) for size in (change.size_before, change.size_after) if size is not None]
        return ChangeView(change.path, change.change, 0, 0, (), 0, f"{' to '.join(sizes)}, no text or too long to compare".lstrip(", "))
    head, names, body = change.text.partition("--- ")
    # The two lines that name the file say nothing that the heading does not.
    lines = [*head.split("\n")[:-1], *body.split("\n")[2:-1]] if names else change.text.split("\n")[:-1]
    shown: list[str] = []
    left = room.output + 80
    for line in lines:
        left -= len(line) + 1
        if left < 0 and shown:
            break
        shown.append(line[: room.output + 80])
    left_out = len("\n".join(lines)) - len("\n".join(shown))
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return ChangeView(change.path, change.change, added, removed, tuple(_parts(shown)), left_out, "")


def _parts(lines: Iterable[str]) -> Iterable[DiffPart]:
    kinds = {"+": "add", "-": "del", "@": "hunk"}
    kind, held = "", list[str]()
    for line in lines:
        its = kinds.get(line[:1], "same")
        if its != kind and held:
            yield DiffPart(kind, "\n".join(held) + "\n")
            held = []
        kind = its
        held.append(line)
    if held:
        yield DiffPart(kind, "\n".join(held) + "\n")


def _argument(name: str, value: JsonValue, room: Room) -> Argument:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Argument(name, text.cut(shown, room.words), block=len(shown) > SHORT or "\n" in shown)


def _gist(arguments: Mapping[str, JsonValue]) -> str:
    short = [value for value in arguments.values() if isinstance(value, str) and len(value) <= 48 and re.search(r"^.*\w.*$", value)]
    return ", ".join(dict.fromkeys(short[:3]))


def _first_words(entries: Mapping[str, str]) -> str:
    """The first sentence of the thought: the entry of that name, or else the last."""
    if not entries:
        return ""
    thought = " ".join(entries.get("Thought", list(entries.values())[-1]).split())
    sentence = re.split(r"(?<=[.!?])\s", thought, maxsplit=1)[0]
    return sentence if len(sentence) <= 160 else sentence[:160].rsplit(" ", 1)[0] + " …"


def usage_words(usage: Usage) -> str:
    """Tokens by kind: `1,234 in, 56 out`."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    parts = f"{text.tokens(usage.input_tokens)} in, {text.tokens(usage.output_tokens)} out"
    return f"{parts}, {text.tokens(cached)} cached" if cached else parts
