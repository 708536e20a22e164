"""Show a run and its steps in a terminal: the content of the page, as Rich renderables.

Whatever an agent, its model or its files wrote passes through `formatting.visible`, and is never read as markup, so that a terminal
executes none of its escapes. Rich's console leaves colours out in pipes and if NO_COLOR is set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mlagentbench.records import Step, StepStatus
from mlagentbench.report.formatting import MINUS, number, plural, size, visible
from mlagentbench.report.run_view import run_view
from mlagentbench.report.step_view import NO_SNAPSHOT, ChangeView, StepView, last_line, shown_path, step_view
from mlagentbench.results.load import Run, unless_damaged
from mlagentbench.run_spec import NO_MODEL

BRIEF = 4_000
"""The longest text, in characters, that is shown whole unless the user asks for all of it."""
BRIEF_ANSWER = 400
WHOLE = 10**9
FEW_FILES = 20
"""How many files are listed unless the user asks for all."""
FEW_CHANGES = 3
"""How many changed files are named in a step's few lines."""
INDENT = 7
"""Spaces before the lines below a step's first line."""
MARKS: Mapping[StepStatus, str] = {"ok": "✓", "error": "✗"}
MARK_STYLES: Mapping[StepStatus, str] = {"ok": "green", "error": "red"}
SCORE_STYLES: Mapping[str, str] = {"better": "green", "worse": "red", "invalid": "red", "same": "dim"}
VERDICT_STYLES: Mapping[str, str] = {"success": "green", "unfinished": "cyan", "damaged": "red"}
DIFF_STYLES: Mapping[str, str] = {"add": "green", "del": "red", "hunk": "cyan"}


def view_of(run: Run, step: Step, limit: int = BRIEF) -> StepView:
    """Return the view of a step of a run, with texts cut to `limit` characters."""
    graded = {score.step: score for score in run.scores}
    before = [score for number, score in graded.items() if number < step.number]
    return step_view(run, step, limit, graded.get(step.number), before[-1] if before else None)


def identity(run: Run) -> RenderableType:
    """Return a run's task, agent, model, name and start, in two lines."""
    view = run_view(run, BRIEF_ANSWER)
    spec = run.info.spec
    who = f" by {visible(spec.agent)}" + (f" with {visible(view.models)}" if view.models != NO_MODEL else "")
    return Text.assemble((spec.task, "bold"), f", {spec.data_name} variant,", who, (f"\n{run.name}  {view.started}", "dim"))


def outcome(run: Run) -> RenderableType:
    """Return a run's verdict, its key figures, its final answer, and the meaning of its flags.

    Print it with `crop=False`, so that the command to go on with the run is not cut off.
    """
    view = run_view(run, BRIEF_ANSWER)
    style = VERDICT_STYLES.get(view.kind, "yellow")
    parts: list[RenderableType] = [
        Text(visible(view.title), style=f"bold {style}"),
        Text(visible(view.lede)) if run.result or run.result_is_damaged else _state(run),
    ]
    if view.reason:
        parts.append(Text(f"Reason: {visible(view.reason)}", style=style))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    for figure in view.figures:
        note = "; ".join(share.label for share in view.shares) if figure.label == "Time" else figure.note
        table.add_row(figure.label.lower(), visible(figure.value), visible(note))
    parts += [Text(), table]
    if view.final_answer:
        answer = " ".join((view.final_answer.head + (" … " if view.final_answer.left_out else "") + view.final_answer.tail).split())
        parts += [Text(), Text.assemble(("Final answer: ", "bold"), visible(answer))]
    for flag in view.flags:
        parts += [Text(), Text.assemble((f"{flag.title}: ", "bold yellow"), (flag.meaning, "yellow"))]
    parts += [Text(visible(problem), style="red") for problem in run.problems]
    return Group(*parts)


def _state(run: Run) -> RenderableType:
    """Say whether a process is working on a run without a result, and what the user can do, as a command on a line of its own."""
    path = visible(str(shown_path(run.directory.path)))
    if run.directory.held:
        state, command = "A process is working on it. Each step as it is done:", f"mlab show {path} --follow"
    else:
        state, command = "No process is working on it: it was stopped before it ended. To go on with it:", f"mlab resume {path}"
    return Group(Text(state), Text(f"    {command}", overflow="ignore", no_wrap=True))


def headings(width: int) -> Text:
    """Return the headings of steps' lines, for a terminal of this width in characters."""
    line = _line(_Cells(number="", mark="", action="step", gist="", time="time", tokens="tokens", score="score"), width)
    line.stylize("dim")
    return line


def step_lines(run: Run, view: StepView, width: int) -> RenderableType:
    """Return a step in lines of `width` characters: its action, time, tokens and score; the thought; the observation; the changed files."""
    step = view.record
    mark = MARKS.get(step.status, "!")
    cells = _Cells(str(step.number), mark, view.action, view.gist, view.seconds, view.tokens, _score(view))
    first = _line(cells, width)
    style = MARK_STYLES.get(step.status, "yellow")
    first.stylize("dim", 0, 4)
    first.stylize(style, 5, 6)
    first.stylize("bold", 7, 7 + len(view.action))
    if view.score:
        first.stylize(SCORE_STYLES[view.score_kind], len(first) - cell_len(cells.score))
    below: list[Text] = []
    if view.stage:
        below.append(Text(view.stage, style=SCORE_STYLES[view.score_kind]))
    if view.thought:
        below.append(Text(view.thought, style="italic"))
    if step.status != "ok":
        below.append(Text(f"{view.status_words}: {_gist_of(step)}", style=style))
    elif (gist := _gist_of(step)) and (step.action.name == "Execute Script" or not view.changes):
        below.append(Text(gist, style="dim"))
    if step.malformed:
        below.append(Text(f"{plural(step.malformed, 'reply')} before it without an action", style="yellow"))
    if (files := _files(run, view)) != NO_SNAPSHOT and files:
        below.append(Text(files, style="cyan"))
    lines = [first]
    for text in below:
        line = Text(" " * INDENT).append_text(Text(visible(" ".join(text.plain.split())), style=text.style))
        lines.append(line)
    for line in lines:
        line.truncate(width, overflow="ellipsis")
        line.no_wrap = True
    return Group(*lines)


def step_whole(run: Run, view: StepView) -> Iterator[Text]:
    """Yield all of a step: rejected replies, the agent's entries, the action's arguments, the observation and the changed files."""
    step = view.record
    style = MARK_STYLES.get(step.status, "yellow")
    yield Text.assemble((f"Step {step.number}: {visible(view.action)}", "bold"), "  ", (view.status_words, style))
    split = f" ({view.split})" if view.split else ""
    yield Text(f"{view.seconds}{split}; {view.calls}", style="dim")
    if view.score:
        note = f" ({view.score_note})" if view.score_note else ""
        yield Text(f"The submission as it left it: {view.score}{visible(note)}", style=SCORE_STYLES[view.score_kind])
    for rejected in view.rejected:
        yield Text(f"\nA reply before it was sent back: {visible(rejected.name)}", style="yellow")
        yield Text(visible(rejected.text.head), style="dim")
    for entry, text in step.entries.items():
        yield Text.assemble(("\n" + visible(entry) + ": ", "bold"), visible(text.strip()))
    for name, value in step.action.arguments.items():
        given = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield Text.assemble((f"\n{visible(name)}:" + ("\n" if "\n" in given else " "), "bold"), visible(given))
    yield Text("\nObservation:", style="bold")
    yield Text(visible(step.observation), style="red" if step.status != "ok" else "")
    if line := _files(run, view, most=FEW_FILES):
        yield Text(f"\nFiles: {visible(line)}", style="cyan")


def changes(view: StepView) -> Iterator[Text]:
    """Yield a step's changes of files, as diffs."""
    for change in view.changes:
        note = f" ({change.note})" if change.note else ""
        yield Text(f"{change.what}: {visible(change.path)}{note}", style="bold")
        for part in change.parts:
            yield Text(visible(part.text.removesuffix("\n")), style=DIFF_STYLES.get(part.kind, ""))
        if change.left_out:
            yield Text(f"{change.left_out:,} characters more", style="dim")
    if view.changes_note:
        yield Text(view.changes_note, style="dim" if view.changes else "red")


def files(run: Run, step: int, most: int | None) -> Iterator[Text]:
    """Yield a list of the files as they were after a step, at most `most`, or all for None; nothing without a whole snapshot."""
    entries = unless_damaged(lambda: run.files(step))
    if entries is None:
        return
    yield Text(f"Files after the step: {len(entries)}", style="bold")
    for path, entry in sorted(entries.items())[:most]:
        what = size(entry.size) if entry.kind == "file" else f"{entry.kind} to {entry.target}" if entry.target else entry.kind
        note = f", {entry.note}" if entry.note else ""
        yield Text(f"  {visible(path)}  {visible(what + note)}")
    if most is not None and len(entries) > most:
        yield Text(f"  and {len(entries) - most} more: --files", style="dim")


def calls(run: Run, step: int) -> Iterator[Text]:
    """Yield the prompts and raw replies of a step; nothing if their file is damaged, which the run's problems mention."""
    for call in unless_damaged(lambda: run.calls(step)) or ():
        yield Text(f"--- {visible(call.model)} as {call.role}, for {visible(call.purpose)}: the prompt", style="bold magenta")
        yield Text(visible(call.prompt))
        ended = f", ended by {visible(call.stop_reason)}" if call.stop_reason not in (None, "stop", "tool_calls") else ""
        sent_back = f", sent back: {visible(call.rejected)}" if call.rejected else ""
        yield Text(f"--- its reply{ended}{sent_back}", style="bold magenta")
        yield Text(visible(call.reply))


def calls_after_last(run: Run, *, whole: bool) -> Iterator[Text]:
    """Yield how many model calls came after the last step, and so led to no step; nothing where there are none."""
    count = len(unless_damaged(lambda: run.calls(run.after_last)) or ())
    if count:
        hint = "" if whole else "; --calls shows them"
        yield Text(f"{plural(count, 'model call')} after the last step, which led to no step{hint}", style="yellow")
    if whole:
        yield from calls(run, run.after_last)


class _Cells(NamedTuple):
    """The cells of a step's first line."""

    number: str
    mark: str
    action: str
    gist: str
    time: str
    tokens: str
    score: str


ACTION, TIME, TOKENS, SCORE = 21, 12, 9, 15
"""Widths of the cells of a step's line, in characters; the gist has the rest."""
NARROWEST = 8
"""The least width, in characters, of an action and its gist together; a narrower terminal wraps."""


def _line(cells: _Cells, width: int) -> Text:
    room = max(NARROWEST, width - INDENT - TIME - TOKENS - SCORE)
    about = Text(f"{visible(' '.join(cells.action.split())):<{ACTION}} {visible(cells.gist)}")
    about.truncate(room, overflow="ellipsis", pad=True)
    right = f"{cells.time:>{TIME}}{cells.tokens:>{TOKENS}}{cells.score:>{SCORE}}"
    return Text(f"{cells.number:>4} {cells.mark or ' '} {about.plain}{right}")


def _score(view: StepView) -> str:
    """Return a step's score as a cell: without its unit if it would not fit."""
    if view.score_kind == "invalid":
        return "no score"
    if view.score_value is None or cell_len(view.score) < SCORE:
        return view.score
    return number(view.score_value)


def _gist_of(step: Step) -> str:
    """Return the most telling line of an observation: the last of a script's or an error's, else the first."""
    if step.action.name == "Final Answer":
        return ""
    return last_line(step) or next((line for line in step.observation.splitlines() if line.strip()), "")


def _files(run: Run, view: StepView, most: int = FEW_CHANGES) -> str:
    """Return the files that a step changed, in a line."""
    parts = [_changed(change) for change in view.changes[:most]]
    more = len(view.changes) - most
    parts += [f"and {more} more"] if more > 0 else []
    parts += [view.changes_note] if view.changes_note and more <= 0 else []
    return ", ".join(parts)


def _changed(change: ChangeView) -> str:
    lines = f" +{change.added} {MINUS}{change.removed}" if change.what == "changed" and (change.added or change.removed) else ""
    return f"{change.what} {change.path}{lines}"
