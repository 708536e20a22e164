"""The listener that watches a run, and the middleware that its actions pass through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from mlagentbench.actions.base import Observation
from mlagentbench.records import Action, Step


class Listener(Protocol):
    """Is notified of a run's progress. Its methods must not block."""

    def on_status(self, text: str) -> None:
        """Show what is being done now, given in a few words."""
        ...

    def on_output(self, text: str) -> None:
        """Take a piece of a script's output, as it comes."""
        ...

    def on_step(self, step: Step) -> None:
        """Take a step that is done."""
        ...


class SilentListener:
    """A listener that does nothing."""

    def on_status(self, text: str) -> None:
        """Do nothing."""

    def on_output(self, text: str) -> None:
        """Do nothing."""

    def on_step(self, step: Step) -> None:
        """Do nothing."""


Perform = Callable[[Action], Awaitable[Observation]]
ActionMiddleware = Callable[[Action, Perform], Awaitable[Observation]]
"""Wraps every action, for an engine with machinery such as approval. It is given the action and the function that performs it."""


async def directly(action: Action, perform: Perform) -> Observation:
    """Perform an action with nothing in between."""
    return await perform(action)
