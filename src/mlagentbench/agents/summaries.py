"""Summaries of long observations by the fast model, and texts of steps for prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from mlagentbench.agents.base import render
from mlagentbench.environment import Environment
from mlagentbench.errors import ActionError
from mlagentbench.model import GenerateOptions, all_replies
from mlagentbench.records import Step
from mlagentbench.util.text import shortened

SUMMARY_PART = 10_000
"""Characters of an observation that one question to the fast model holds."""


class Summaries:
    """The summaries of a run's long observations, those made before it was resumed included.

    Args:
        environment: the run.
        over: characters above which an observation is long; None to summarise none.
        options: the sampling of the fast model.
    """

    def __init__(self, environment: Environment, over: int | None, options: GenerateOptions) -> None:
        self._environment = environment
        self._over = over
        self._options = options
        self._texts: dict[str, str] = {}
        self._new: dict[str, str] = {}
        for step in environment.steps:
            stored = step.memory.get("summaries")
            self._texts |= {number: str(text) for number, text in stored.items()} if isinstance(stored, dict) else {}

    async def make(self, steps: Sequence[Step]) -> None:
        """Summarise those observations of some steps that are long and have no summary yet."""
        for step in steps:
            number = str(step.number)
            if self._over is not None and len(step.observation) > self._over and number not in self._texts:
                self._texts[number] = self._new[number] = await self._summary(step, self._over)

    def observation(self, step: Step) -> str:
        """Return the summary of a step's observation if there is one, else the observation itself."""
        return self._texts.get(str(step.number), step.observation)

    def memory(self) -> dict[str, JsonValue]:
        """Return what to record with the next step: the summaries made since the last call."""
        new, self._new = self._new, {}
        return {"summaries": dict(new)} if new else {}

    async def _summary(self, step: Step, most: int) -> str:
        """Return the fast model's summary of a long observation, made of its parts, which are summarised concurrently."""
        text = step.observation
        parts = [text[start : start + SUMMARY_PART] for start in range(0, len(text), SUMMARY_PART)]
        prompts = [
            render("summary.md", part=number, parts=len(parts), action=action_line(step), thought=thought(step), text=part)
            for number, part in enumerate(parts, start=1)
        ]
        questions = (self._environment.ask(prompt, role="fast", purpose="summary", options=self._options) for prompt in prompts)
        try:
            replies = await all_replies(questions)
        except ActionError:
            return shortened(text, most)
        return "(A summary of a long observation.)\n" + "\n".join(reply.text.strip() for reply in replies)


def action_line(step: Step) -> str:
    """Return an action with its arguments, in one line."""
    return f"{step.action.name} {json.dumps(dict(step.action.arguments))}"


def thought(step: Step) -> str:
    """Return the thought that a step records, the reason for its action."""
    return step.entries.get("Thought", "nothing was said")
