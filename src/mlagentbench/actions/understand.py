"""The action that has a model read a long file for the agent."""

from __future__ import annotations

from typing import Annotated

from mlagentbench.actions.base import ActionContext, Observation, action
from mlagentbench.actions.fences import fenced
from mlagentbench.actions.files import printable
from mlagentbench.model import GenerateOptions, all_replies

NAME = "Understand File"
OPTIONS = GenerateOptions(temperature=0.01, max_tokens=2000)

READ_PROMPT = """\
Below is part {part} of {parts} of the file {name}. Tell a researcher what it says of this:
{wanted}

Quote names, numbers and lines of code exactly, with their line numbers where they matter. Say so if this part does not tell; guess nothing.

{text}
"""

JOIN_PROMPT = """\
The file {name} was read in {parts} parts, to find out this:
{wanted}

Below is what each part tells. Make one answer of it, keeping every exact name and number, and leaving out what is said twice.

{answers}
"""


@action(NAME, returns="The observation will be what the file says of those things.", high_level=True)
async def understand_file(
    context: ActionContext,
    file_name: Annotated[str, "a file, with its folder"],
    things_to_look_for: Annotated[str, "what to find out, in every detail"],
) -> str | Observation:
    """Have a model read a whole file and report what you look for."""
    text = printable(context.workspace.read_text(file_name))
    parts = split(text, context.can_read("fast"))
    prompts = [
        READ_PROMPT.format(part=number, parts=len(parts), name=file_name, wanted=things_to_look_for, text=fenced(part))
        for number, part in enumerate(parts, start=1)
    ]
    replies = await all_replies(context.ask(prompt, role="fast", purpose=NAME, options=OPTIONS) for prompt in prompts)
    if len(replies) == 1:
        return replies[0].text
    answers = "\n\n".join(f"Part {number}:\n{reply.text}" for number, reply in enumerate(replies, start=1))
    joined = JOIN_PROMPT.format(name=file_name, parts=len(parts), wanted=things_to_look_for, answers=answers)
    return (await context.ask(joined, role="fast", purpose=NAME, options=OPTIONS)).text


def split(text: str, most: int) -> list[str]:
    """Split a text into parts of at most `most` characters, at line ends unless a line is longer than that."""
    parts: list[str] = []
    start = 0
    while len(text) - start > most:
        newline = text.rfind("\n", start, start + most)
        end = newline + 1 if newline > start else start + most
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]
