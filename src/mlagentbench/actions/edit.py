"""Actions that inspect scripts and have a model edit them; changes can be undone one at a time."""

from __future__ import annotations

import difflib
import re
import textwrap
from typing import Annotated

from mlagentbench.actions.base import ActionContext, Observation, action
from mlagentbench.actions.fences import fenced
from mlagentbench.actions.files import printable
from mlagentbench.errors import ActionError
from mlagentbench.model import GenerateOptions
from mlagentbench.util.source import parsed

MOST_LINES = 100
"""The most lines that one inspection shows, as in the paper."""
EDITOR_OPTIONS = GenerateOptions(temperature=0.01, max_tokens=4000)

EDIT_PROMPT = """\
Below is the Python script {where}. Change it as instructed.

{script}

The instruction:
{instruction}

Answer with all of what stands above as it should be after the change, in one block that starts with ```python and ends with ```. Change
nothing that the instruction does not ask for, the indentation included. Write no placeholders: every line must be there.
"""


@action("Inspect Script Lines", returns="The observation will be those lines, numbered.", high_level=True)
async def inspect_script_lines(
    context: ActionContext,
    script_name: Annotated[str, "a script, with its folder"],
    start_line_number: Annotated[int, "the first line, from 1"],
    end_line_number: Annotated[int, f"the last line, at most {MOST_LINES - 1} after the first"],
) -> str:
    """Look at a part of a script, line by line."""
    if start_line_number < 1 or end_line_number < start_line_number:
        raise ActionError(f"Lines {start_line_number} to {end_line_number} are no range: the first is at least 1, the last not before it.")
    if end_line_number - start_line_number >= MOST_LINES:
        raise ActionError(f"At most {MOST_LINES} lines can be inspected at once; ask for a shorter range.")
    lines = [line.rstrip("\r\n") for line in lines_of(printable(context.workspace.read_text(script_name)))]
    if start_line_number > len(lines):
        raise ActionError(f"{script_name} has {len(lines)} lines, so it has no line {start_line_number}.")
    chosen = enumerate(lines[start_line_number - 1 : end_line_number], start=start_line_number)
    numbered = "\n".join(f"{number:>4} {line}" for number, line in chosen)
    return f"Lines {start_line_number} to {min(end_line_number, len(lines))} of {len(lines)} in {script_name}:\n{numbered}"


@action("Edit Script (AI)", returns="The observation will be the change that was made, as a diff; check that it is right.", high_level=True)
async def edit_script(
    context: ActionContext,
    script_name: Annotated[str, "the script to edit, with its folder; a new one is made if there is none"],
    edit_instruction: Annotated[str, "what to change, in every detail; a model that sees only this and the script makes the edit"],
    save_name: Annotated[str, "the file to save the edited script as, with its folder"],
) -> Observation:
    """Have a model edit a script by an instruction."""
    _check_writable(context, save_name)
    exists = context.workspace.kind(script_name) is not None
    before = context.workspace.read_text(script_name) if exists else ""
    where = script_name if exists else f"{script_name}, which does not exist yet"
    after = await _edited(context, "Edit Script (AI)", where, before, edit_instruction, save_name)
    return _saved(context, before, after, script_name, save_name)


@action(
    "Edit Script Segment (AI)",
    returns="The observation will be the change that was made, as a diff; check that it is right.",
    hidden=True,
    high_level=True,
)
async def edit_script_segment(
    context: ActionContext,
    script_name: Annotated[str, "the script to edit, with its folder"],
    start_line_number: Annotated[int, "the first line to edit, from 1"],
    end_line_number: Annotated[int, "the last line to edit"],
    edit_instruction: Annotated[str, "what to change, in every detail; a model that sees only this and those lines makes the edit"],
    save_name: Annotated[str, "the file to save the edited script as, with its folder"],
) -> Observation:
    """Have a model edit some lines of a script by an instruction. The other lines stay as they are."""
    _check_writable(context, save_name)
    before = context.workspace.read_text(script_name)
    lines = lines_of(before)
    if not 1 <= start_line_number <= end_line_number <= len(lines):
        raise ActionError(f"Lines {start_line_number} to {end_line_number} are no range of {script_name}, which has {len(lines)} lines.")
    segment = "".join(lines[start_line_number - 1 : end_line_number])
    where = f"{script_name}, of which these are the lines {start_line_number} to {end_line_number}"
    edited = await _edited(context, "Edit Script Segment (AI)", where, segment, edit_instruction, save_name)
    after = "".join(lines[: start_line_number - 1]) + edited + "".join(lines[end_line_number:])
    return _saved(context, before, after, script_name, save_name)


@action("Undo Edit Script", returns="The observation will be the script as it is after the undo.")
async def undo_edit_script(context: ActionContext, script_name: Annotated[str, "a script, with its folder"]) -> Observation:
    """Take back the last change to a script. Repeat it to take back the change before that."""
    before = _before_last_change(context, script_name)
    if before is None:
        context.workspace.remove(script_name)
        return Observation(f"The last change had made {script_name}; it is removed again.", details={"undone": script_name})
    context.workspace.write_bytes(script_name, before)
    content = before.decode("utf-8", "replace")
    return Observation(f"{script_name} is as it was before its last change:\n{content}", details={"undone": script_name})


def lines_of(text: str) -> list[str]:
    """Return a text's lines with their ends. Only line feeds end a line, as in editors; form feeds, unlike in `str.splitlines`, do not."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def script_in(reply: str) -> str:
    """Return the script in a reply of the editor's model: the block after its first fence, or all of it if it has none.

    A script may hold fences itself, and prose with fences may follow it: the block ends at the last fence that leaves valid Python, or else
    at the first one.
    """
    lines = reply.replace("\r\n", "\n").split("\n")
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    if not fences:
        return reply.strip("\n") + "\n"
    start = fences[0] + 1
    ends = [number for number in fences[1:] if not lines[number].strip().strip("`")] or [len(lines)]
    scripts = ["\n".join(lines[start:end]).rstrip("\n") + "\n" for end in ends]
    return next((script for script in reversed(scripts) if parsed(textwrap.dedent(script)) is not None), scripts[0])


def _before_last_change(context: ActionContext, path: str) -> bytes | None:
    """Return a file's content before the last change by an action that is not yet undone; None if there was no file.

    Raises:
        ActionError: no action has changed the file, or every change is undone.
    """
    name = context.workspace.relative(path)
    changes: list[int] = []
    for step in context.steps:
        changed, undone = (str(step.details.get(key, "")) for key in ("changed", "undone"))
        if changed and context.workspace.relative(changed) == name:
            changes.append(step.number)
        elif undone and context.workspace.relative(undone) == name:
            changes.pop()
    if not changes:
        raise ActionError(f"No change to {path} is left to undo.")
    return context.content_after(changes[-1] - 1, path)


def _check_writable(context: ActionContext, save_name: str) -> None:
    if context.workspace.is_read_only(save_name):
        raise ActionError(f"{save_name} is read-only; save the edited script under another name.")


async def _edited(context: ActionContext, purpose: str, where: str, script: str, instruction: str, save_name: str) -> str:
    """Have the editor's model edit a script, and return the result.

    Raises:
        ActionError: the script is not UTF-8, or the model's reply was cut off by its token limit.
    """
    if printable(script) != script:
        raise ActionError(f"{where} holds bytes that are no UTF-8 text, which a model would not keep as they are. Edit another file.")
    prompt = EDIT_PROMPT.format(where=where, script=fenced(script, "python"), instruction=instruction)
    reply = await context.ask(prompt, role="editor", purpose=purpose, options=EDITOR_OPTIONS)
    if reply.truncated:
        raise ActionError(f"The edited script was longer than the model may write, so {save_name} was not changed. Ask for a smaller edit.")
    return script_in(reply.text)


def _saved(context: ActionContext, before: str, after: str, script_name: str, save_name: str) -> Observation:
    context.workspace.write_text(save_name, after)
    diff = difflib.unified_diff(printable(before).splitlines(), printable(after).splitlines(), script_name, save_name, lineterm="")
    change = "\n".join(diff) or "(nothing changed)"
    return Observation(f"The edited script is saved as {save_name}. The change:\n{change}", details={"changed": save_name})
