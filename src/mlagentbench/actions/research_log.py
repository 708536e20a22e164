"""Actions on the research log, which an agent writes to and queries. The run's steps hold it, not the working directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mlagentbench.actions.base import ActionContext, Observation, action
from mlagentbench.actions.fences import fenced
from mlagentbench.errors import ActionError
from mlagentbench.model import GenerateOptions
from mlagentbench.records import Step

OPTIONS = GenerateOptions(temperature=0.01, max_tokens=2000)
EMPTY = "The research log is empty. Append Summary to Research Log writes to it."

REFLECT_PROMPT = """\
A researcher works on this task:
{task}

This is the research log so far:
{log}

Reflect on this, from what the log says alone: {wanted}
"""

RETRIEVE_PROMPT = """\
A researcher works on a task with this plan:
{plan}

This is the research log so far:
{log}

Give back what of the log matters for the next step of that plan. Keep every number exactly as it stands, and add nothing.
"""


@action("Append Summary to Research Log", returns="The observation will say that it was written down.", hidden=True, high_level=True)
async def append_summary(context: ActionContext, content: Annotated[str, "what to write down"]) -> Observation:
    """Write a summary of what was done and found into the research log."""
    return Observation("The summary is in the research log.", details={"logged": content.rstrip("\n") + "\n\n"})


@action("Reflection", returns="The observation will be the reflection.", hidden=True, high_level=True)
async def reflection(context: ActionContext, things_to_reflect_on: Annotated[str, "what to reflect on"]) -> str:
    """Have a model look over the research log and reflect on something."""
    prompt = REFLECT_PROMPT.format(task=context.description, log=fenced(_log(context)), wanted=things_to_reflect_on)
    return (await context.ask(prompt, role="fast", purpose="Reflection", options=OPTIONS)).text


@action("Retrieval from Research Log", returns="The observation will be what matters of the log.", hidden=True, high_level=True)
async def retrieval(context: ActionContext, current_plan: Annotated[str, "the plan, with its status"]) -> str:
    """Have a model find what in the research log matters for the current plan."""
    prompt = RETRIEVE_PROMPT.format(plan=current_plan, log=fenced(_log(context)))
    return (await context.ask(prompt, role="fast", purpose="Retrieval from Research Log", options=OPTIONS)).text


def research_log(steps: Sequence[Step]) -> str:
    """Return the research log after some steps; empty if nothing was written."""
    return "".join(str(step.details["logged"]) for step in steps if "logged" in step.details)


def _log(context: ActionContext) -> str:
    """Return the log, or its last part if it is longer than the fast model can read.

    Raises:
        ActionError: the log is empty.
    """
    log = research_log(context.steps)
    if not log:
        raise ActionError(EMPTY)
    most = context.can_read("fast")
    return log if len(log) <= most else "(The beginning is left out.)\n" + log[-most:]
