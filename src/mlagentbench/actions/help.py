"""The action that asks the person who watches an interactive run."""

from __future__ import annotations

from typing import Annotated

from mlagentbench.actions.base import ActionContext, action


@action("Request Help", returns="The observation will be what the person answers.", hidden=True)
async def request_help(
    context: ActionContext, request: Annotated[str, "what you need to know, with all that is needed to answer it"]
) -> str:
    """Ask the person who watches for help. Only an interactive run has one."""
    return await context.ask_person(request)
