"""Turn a step's record into the words and texts, cut to a length, that the page and the terminal show. The caller escapes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.audit.record import Claim
from mlagentbench.errors import RunNotFound
from mlagentbench.records import Step, StepScore, Usage
from mlagentbench.report import formatting, wording
from mlagentbench.results.load import Run
from mlagentbench.task.success import THRESHOLD
from mlagentbench.workspace.snapshots.snapshots import FileChange

SHORT = 72
"""The longest argument, in characters, that is shown within a line."""
FILES = 20
"""How many of a step's changed files are shown with their diffs; the rest are counted."""

NO_SNAPSHOT = "no snapshot of this step"


class Argument(NamedTuple):
    """A named text of a step: an argument of its action, an entry of the agent's reply, or a rejected reply."""

    name: str
    text: formatting.CutText
    block: bool
    """Whether the text is shown as a block of its own."""


class DiffPart(NamedTuple):
    """Adjacent lines of a unified diff of one kind: `add`, `del`, `hunk` or `same`."""

    kind: str
    text: str


class ChangeView(NamedTuple):
    """A file that a step changed."""

    path: str
    what: str
    added: int
    removed: int
    parts: tuple[DiffPart, ...]
    left_out: int
    """Characters of the diff that are not shown."""
    note: str


class StepView(NamedTuple):
    """A step, as the page and the terminal show it."""

    record: Step
    number: int
    command: str
    """The command that shows the whole step in a terminal."""
    action: str
    gist: str
    """The action's short arguments: what it was about."""
    thought: str
    """The first words of the agent's thought, for a folded step."""
    status: str
    status_words: str
    seconds: str
    split: str
    tokens: str
    calls: str
    entries: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    observation: tuple[formatting.CutText, ...]
    """The observation, without a diff that `changes` shows: then in two parts, before and after it."""
    changes: tuple[ChangeView, ...]
    changes_note: str
    score: str
    score_value: float | None
    score_note: str
    stage: str
    """The grader's note on the score, where it is not the same as after the last graded step before; else empty."""
    score_kind: str
    """`better` or `worse` than the baseline by more than a success needs; `same` if by less, or if the score equals that of the last graded
    step before; `invalid`; empty where the step was not graded."""
    rejected: tuple[Argument, ...]
    claims: tuple[Claim, ...]
    """What the agent stated at this step, as the audit judged it."""
    unfounded: int
    """How many of them the evidence does not bear out."""
    signs: tuple[tuple[str, str], ...]
    """Signs of cheating: what they are, and the line."""


def step_views(run: Run, limit: int) -> Iterable[StepView]:
    """Yield the views of a run's steps, with texts cut to `limit` characters."""
    scores = {score.step: score for score in run.scores}
    before = scores.get(0)
    for step in run.steps:
        score = scores.get(step.number)
        yield step_view(run, step, limit, score, before)
        before = score or before


def shown_path(path: Path) -> Path:
    """Return a path as a user would type it: relative to the working directory if it is inside it, else absolute."""
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def step_view(run: Run, step: Step, limit: int, score: StepScore | None, before: StepScore | None) -> StepView:
    """Return the view of one step.

    Args:
        run: the run.
        step: the step.
        limit: how many characters a text may have before it is cut.
        score: the score of the submission after the step; None where it was not graded.
        before: the score of the last graded step before it.
    """
    changes, note = _changes(run, step.number)
    split = [
        f"{label} {formatting.duration(seconds)}"
        for label, seconds in (("model", step.model_seconds), ("script", step.script_seconds))
        if seconds
    ]
    entries = {name: entry for name, entry in step.entries.items() if entry.strip()}
    shown, shown_note, kind = _score(run, score, before)
    claims = tuple(claim for claim in run.audit.claims if claim.step == step.number) if run.audit else ()
    signs = [sign for sign in run.audit.signs if sign.step == step.number] if run.audit else []
    return StepView(
        record=step,
        number=step.number,
        command=f"mlab show {shown_path(run.directory.path)} --step {step.number}",
        action=step.action.name,
        gist=_gist(step.action.arguments),
        thought=_first_words(entries),
        status=step.status,
        status_words=wording.STATUSES[step.status],
        seconds=formatting.duration(step.seconds),
        split=", ".join(split),
        tokens=formatting.tokens(step.usage.tokens) if step.usage.calls else "",
        calls=f"{formatting.plural(step.usage.calls, 'model call')}: {usage_words(step.usage)}" if step.usage.calls else "no model call",
        entries=tuple(Argument(name, formatting.cut(entry.strip(), limit), block=True) for name, entry in entries.items()),
        arguments=tuple(_argument(name, value, limit) for name, value in step.action.arguments.items()),
        observation=tuple(formatting.cut(part, limit) for part in _without(changes, step.observation)),
        changes=tuple(_change_view(change, limit) for change in changes[:FILES]),
        changes_note=note,
        score=shown,
        score_value=score.value if score else None,
        score_note=shown_note,
        stage=score.note if score and (before is None or before.note != score.note) else "",
        score_kind=kind,
        rejected=rejected_replies(run, step.number, limit) if step.malformed else (),
        claims=claims,
        unfounded=sum(claim.is_unfounded for claim in claims),
        signs=tuple((wording.SIGNS[sign.kind], sign.line) for sign in signs),
    )


def rejected_replies(run: Run, step: int, limit: int) -> tuple[Argument, ...]:
    """Return the replies before a step that had no action, each named by the correction that was sent to its model."""
    try:
        calls = run.calls(step)
    except RunNotFound as error:
        return (Argument(str(error), formatting.cut("", 0), block=True),)
    return tuple(Argument(call.rejected, formatting.cut(call.reply, limit), block=True) for call in calls if call.rejected)


def _score(run: Run, score: StepScore | None, before: StepScore | None) -> tuple[str, str, str]:
    """Return a step's score in words, a note on it, and its kind (`StepView.score_kind`)."""
    if score is None:
        return "", "", ""
    if score.value is None:
        return "no valid score", score.reason or "", "invalid"
    shown = formatting.quantity(score.value, run.info.unit)
    improved = formatting.percent(score.improvement) if score.improvement is not None else ""
    note = ", ".join(filter(None, (improved, score.note)))
    if before is not None and before.value == score.value:
        return shown, note, "same"
    improvement = score.improvement or 0.0
    return shown, note, "better" if improvement > THRESHOLD else "worse" if improvement < -THRESHOLD else "same"


def _changes(run: Run, step: int) -> tuple[tuple[FileChange, ...], str]:
    """Return the files that a step changed, and a note on changes that are not shown."""
    try:
        changes = run.changes(step)
    except RunNotFound as error:
        return (), str(error)
    if changes is None:
        return (), NO_SNAPSHOT
    return changes, f"and {formatting.plural(len(changes) - FILES, 'file')} more" if len(changes) > FILES else ""


def _without(changes: Iterable[FileChange], observation: str) -> list[str]:
    """Remove a diff from an observation where it is shown as a changed file, too, as after an edit; return the parts around it."""
    for change in changes:
        _, _, body = (change.text or "").partition("\n+++ ")
        body = body.partition("\n")[2].rstrip("\n")
        if len(body) > SHORT and body in observation:
            before, _, after = observation.partition(body)
            return [re.sub(r"--- .*\n\+\+\+ .*\n\Z", "", before), after]
    return [observation]


def _change_view(change: FileChange, limit: int) -> ChangeView:
    if change.text is None:
        sizes = [formatting.size(size) for size in (change.size_before, change.size_after) if size is not None]
        return ChangeView(change.path, change.change, 0, 0, (), 0, f"{' to '.join(sizes)}, no text or too long to compare".lstrip(", "))
    head, names, body = change.text.partition("--- ")
    # The two lines that name the file repeat the heading.
    lines = [*head.split("\n")[:-1], *body.split("\n")[2:-1]] if names else change.text.split("\n")[:-1]
    shown: list[str] = []
    left = limit + 80
    for line in lines:
        left -= len(line) + 1
        if left < 0 and shown:
            break
        shown.append(line[: limit + 80])
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


def _argument(name: str, value: JsonValue, limit: int) -> Argument:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Argument(name, formatting.cut(shown, limit), block=len(shown) > SHORT or "\n" in shown)


def _gist(arguments: Mapping[str, JsonValue]) -> str:
    short = [value for value in arguments.values() if isinstance(value, str) and len(value) <= 48 and re.search(r"^.*\w.*$", value)]
    return ", ".join(dict.fromkeys(short[:3]))


def last_line(step: Step) -> str:
    """Return the last line of a script's or an error's observation, which tells how it went; empty for any other observation."""
    if step.action.name != "Execute Script" and step.status == "ok":
        return ""
    return next((line.strip() for line in reversed(formatting.visible(step.observation).splitlines()) if line.strip()), "")


def _first_words(entries: Mapping[str, str]) -> str:
    """Return the first sentence of the thought: of the entry of that name, or else of the last entry."""
    if not entries:
        return ""
    thought = " ".join(entries.get("Thought", list(entries.values())[-1]).split())
    sentence = re.split(r"(?<=[.!?])\s", thought, maxsplit=1)[0]
    return sentence if len(sentence) <= 160 else sentence[:160].rsplit(" ", 1)[0] + " …"


def usage_words(usage: Usage) -> str:
    """Return the tokens by kind: `1,234 in, 56 out`."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    parts = f"{formatting.tokens(usage.input_tokens)} in, {formatting.tokens(usage.output_tokens)} out"
    parts += f", {formatting.tokens(cached)} cached" if cached else ""
    return f"{parts}, not reported for {formatting.plural(usage.uncounted, 'call')}" if usage.uncounted else parts
