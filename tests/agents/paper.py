"""The paper's seventeen actions as a parser sees them, and a reader of replies over them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mlagentbench import ActionContext
from mlagentbench.actions.base import ActionDefinition, Parameter
from mlagentbench.agents.reply.response import Response, parse_response

DATA = Path(__file__).parent / "data"
ENTRIES = ("Reflection", "Research Plan and Status", "Fact Check", "Thought")


PAPER: Mapping[str, Mapping[str, str]] = json.loads((DATA / "paper_actions.json").read_text())


def action(name: str, parameters: Mapping[str, Parameter], *, hidden: bool = False) -> ActionDefinition:
    """An action that is only read, never done."""

    async def perform(context: ActionContext, **arguments: object) -> str:
        raise NotImplementedError

    return ActionDefinition(name, "", "", parameters, perform, hidden)


ACTIONS = {
    name: action(name, {key: Parameter(key, {"str": str, "int": int}[kind]) for key, kind in keys.items()}) for name, keys in PAPER.items()
}


def read(text: str) -> Response:
    return parse_response(text, ENTRIES, ACTIONS)
