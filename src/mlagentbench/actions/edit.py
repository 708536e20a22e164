"""Looking at scripts and having a model edit them; every change can be undone, one at a time."""

from __future__ import annotations

import ast
import difflib
from typing import Annotated

from mlagentbench.actions.base import ActionContext, Observation, action
from mlagentbench.actions.files import shown
from mlagentbench.errors import ActionError
from mlagentbench.model import GenerateOptions

MOST_LINES = 100
"""Lines that one inspection shows (the paper's)."""
EDITOR_OPTIONS = GenerateOptions(temperature=0.01, max_tokens=4000)

EDIT_PROMPT = """\
Below is the Python script {name}{state}. Change it as instructed.

The script:
```python
{script}
```

The instruction:
{instruction}

Answer with the whole script as it should be after the change, in one block that starts with ```python and ends with ```. Change nothing
that the instruction does not ask for. Write no placeholders: every line of the script must be there.
"""


@action("Inspect Script Lines", returns="The observation will be those lines, numbered.")
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
    lines = shown(context.workspace.read_text(script_name)).splitlines()
    if start_line_number > len(lines):
        raise ActionError(f"{script_name} has {len(lines)} lines, so it has no line {start_line_number}.")
    chosen = enumerate(lines[start_line_number - 1 : end_line_number], start=start_line_number)
    numbered = "\n".join(f"{number:>4} {line}" for number, line in chosen)
    return f"Lines {start_line_number} to {min(end_line_number, len(lines))} of {len(lines)} in {script_name}:\n{numbered}"


@action("Edit Script (AI)", returns="The observation will be the change that was made, as a diff; check that it is right.")
async def edit_script(
    context: ActionContext,
    script_name: Annotated[str, "the script to edit, with its folder; a new one is made if there is none"],
    edit_instruction: Annotated[str, "what to change, in every detail; a model that sees only this and the script makes the edit"],
    save_name: Annotated[str, "the file to save the edited script as, with its folder"],
) -> Observation:
    """Have a model edit a script by an instruction."""
    if context.workspace.is_read_only(save_name):
        raise ActionError(f"{save_name} is read-only; save the edited script under another name.")
    exists = context.workspace.kind(script_name) is not None
    before = shown(context.workspace.read_text(script_name)) if exists else ""
    prompt = EDIT_PROMPT.format(
        name=script_name, state="" if exists else ", which does not exist yet", script=before, instruction=edit_instruction
    )
    reply = await context.ask(prompt, role="editor", purpose="Edit Script (AI)", options=EDITOR_OPTIONS)
    if reply.truncated:
        raise ActionError(f"The edited script was longer than the model may write, so {save_name} was not changed. Ask for a smaller edit.")
    after = script_in(reply.text)
    context.workspace.write_text(save_name, after)
    return Observation(
        f"The edited script is saved as {save_name}. The change:\n{_diff(before, after, script_name, save_name)}",
        details={"changed": save_name},
    )


@action("Undo Edit Script", returns="The observation will be the script as it is after the undo.")
async def undo_edit_script(context: ActionContext, script_name: Annotated[str, "a script, with its folder"]) -> Observation:
    """Take back the last change to a script. Repeat it to take back the change before that."""
    before = context.last_change(script_name)
    if before is None:
        context.workspace.remove(script_name)
        return Observation(f"The last change had made {script_name}; it is removed again.", details={"undone": script_name})
    context.workspace.write_bytes(script_name, before)
    content = before.decode("utf-8", "replace")
    return Observation(f"{script_name} is as it was before its last change:\n{content}", details={"undone": script_name})


def script_in(reply: str) -> str:
    """The script in an editor's reply: the block after its first fence, or all of it where it has none.

    A script may hold fences itself, and prose with fences may follow it: of the fences that could end the block, the last one counts that
    leaves a script Python can parse, else the first.
    """
    lines = reply.replace("\r\n", "\n").split("\n")
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    if not fences:
        return reply.strip("\n") + "\n"
    start = fences[0] + 1
    ends = [number for number in fences[1:] if lines[number].strip() == "```"] or [len(lines)]
    scripts = ["\n".join(lines[start:end]).rstrip("\n") + "\n" for end in ends]
    return next((script for script in reversed(scripts) if _parses(script)), scripts[0])


def _parses(script: str) -> bool:
    try:
        ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _diff(before: str, after: str, source: str, target: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), source, target, lineterm="")
    return "\n".join(lines) or "(nothing changed)"
