"""What a model is told whose reply cannot be read: in one line what is wrong, and below it what to write."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence

from mlagentbench.agents._replies.arguments import ActionLike

_MAX_NAME = 60
_MAX_WORDS = 6


class Faults:
    """Why the parts of a reply are not complete actions. Of several faults the first of the highest rank is told."""

    def __init__(self, thoughts: Sequence[str], actions: Mapping[str, ActionLike]) -> None:
        self._thoughts = thoughts
        self._actions = actions
        self._rank = 0
        self._told: Callable[[], str] = self._nothing
        """Made only when it is told: a reply may hold thousands of faults."""

    def message(self) -> str:
        """The fault that counts."""
        return self._told()

    def several(self) -> None:
        """There are several actions, and none of them is the one that is meant."""
        self._add(
            5, lambda: f"The reply holds several actions. End it with the one that is meant:\n\n{form('[its name]', '[its arguments]')}"
        )

    def drafted(self, name: str) -> None:
        """The only action is a thought that the reply goes on from."""
        what = "The only action of the reply is in its thinking, and more is said behind it. End the reply with the action that is meant:"
        self._add(5, lambda: f"{what}\n\n{form(name, self._actions[name].usage)}")

    def of_input(self, name: str | None, words: str, rank: int, what: str) -> None:
        """The arguments of an action are wrong, or of what the words name instead of one."""
        if name is None:
            self.of_name(words, rank)
        else:
            self._add(rank, lambda: f"The Action Input of {name} {what}. Write:\n\n{form(name, self._actions[name].usage)}")

    def of_name(self, words: str, rank: int) -> None:
        """The words name no action."""
        name = words[: _MAX_NAME * 2].strip(" \t\r`*\"'.:,")
        if 0 < len(name) <= _MAX_NAME and len(name.split()) <= _MAX_WORDS:  # more would be prose
            self._add(rank, lambda: self._unknown(name))

    def _add(self, rank: int, message: Callable[[], str]) -> None:
        if rank > self._rank:
            self._rank, self._told = rank, message

    def _unknown(self, wanted: str) -> str:
        close = difflib.get_close_matches(wanted, self._actions, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        example = form(close[0], self._actions[close[0]].usage) if close else form("[its name]", "[its arguments as a JSON object]")
        what = f"There is no action {json.dumps(wanted, ensure_ascii=False)}. {hint}The actions are: {self._offered()}."
        return f"{what} Write one like this:\n\n{example}"

    def _offered(self) -> str:
        """The names that prompts mention; a definition may hide its own."""
        return ", ".join(name for name, definition in self._actions.items() if not getattr(definition, "hidden", False))

    def _nothing(self) -> str:
        example = form(f"[one of: {self._offered()}]", "[its arguments as a JSON object]", self._thoughts)
        return f"The reply holds no action. End it with one, like this:\n\n{example}"


def form(name: str, usage: str, thoughts: Sequence[str] = ()) -> str:
    """What a reply has to look like."""
    return "".join(f"{entry}: [your text]\n" for entry in thoughts) + f"Action: {name}\nAction Input: {usage}"
