"""Collects what happens between two steps."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from mlagentbench.actions.files import printable
from mlagentbench.records import Inner, Usage
from mlagentbench.workspace.paths import Use


@dataclass
class StepUsage:
    """Times, tokens and what an action did, to be recorded in the next step."""

    started: float = field(default_factory=time.monotonic)
    wall: float = field(default_factory=time.time)
    model_seconds: float = 0.0
    waited: float = 0.0
    usage: Usage = field(default_factory=Usage)
    malformed: int = 0
    inside: list[Inner] = field(default_factory=list)
    acting: bool = False
    """Whether an action is being performed; questions before it are the agent's own."""

    def did(self, what: Literal["ask", "run"] | Use, subject: str, seconds: float = 0.0) -> None:
        """Note something that an action did."""
        if self.acting:
            self.inside.append(Inner(did=what, what=printable(subject), seconds=seconds))
