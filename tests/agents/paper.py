"""The paper's seventeen actions as a parser sees them, and a reader of replies over them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mlagentbench.agents.response import Response, parse_response

DATA = Path(__file__).parent / "data"
ENTRIES = ("Reflection", "Research Plan and Status", "Fact Check", "Thought")


class PaperParameter(NamedTuple):
    type: type
    required: bool = True


class PaperAction(NamedTuple):
    parameters: Mapping[str, PaperParameter]
    hidden: bool = False

    @property
    def usage(self) -> str:
        return json.dumps({name: f"[{name}]" for name in self.parameters})


PAPER: Mapping[str, Mapping[str, str]] = json.loads((DATA / "paper_actions.json").read_text())
ACTIONS = {
    name: PaperAction({key: PaperParameter({"str": str, "int": int}[kind]) for key, kind in keys.items()}) for name, keys in PAPER.items()
}


def read(text: str, *, strict: bool = False) -> Response:
    return parse_response(text, ENTRIES, ACTIONS, strict=strict)
