"""Who watches a run, and what its actions pass through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from mlagentbench.actions.base import Observation
from mlagentbench.records import Action, Step


class Listener(Protocol):
    """Who watches a run while it goes on. Its methods must not block."""

    def activity(self, text: str) -> None:
        """What is being done now, in a few words."""
        ...

    def output(self, text: str) -> None:
        """A piece of a script's output, as it comes."""
        ...

    def step(self, step: Step) -> None:
        """A step is done."""
        ...


class Silent:
    """A listener that does nothing."""

    def activity(self, text: str) -> None:
        """Say nothing."""

    def output(self, text: str) -> None:
        """Say nothing."""

    def step(self, step: Step) -> None:
        """Say nothing."""


Perform = Callable[[Action], Awaitable[Observation]]
ActionMiddleware = Callable[[Action, Perform], Awaitable[Observation]]
"""How an engine has every action pass through its own machinery, such as approval: it is given the action and what performs it."""


async def directly(action: Action, perform: Perform) -> Observation:
    """Perform an action with nothing in between."""
    return await perform(action)
