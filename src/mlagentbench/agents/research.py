"""The paper's research agent: it reflects, keeps a plan, checks its facts, thinks, and acts, in every reply.

See arXiv 2310.03302, section 4: each reply has the entries Reflection, Research Plan and Status, Fact Check, Thought, Action and Action
Input; the last steps stand in the prompt; a long observation is summarised by a fast model. Its prompt here is this project's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mlagentbench.agents.base import render
from mlagentbench.agents.response import Response, parse_response
from mlagentbench.environment import Environment
from mlagentbench.errors import ResponseFormatError
from mlagentbench.model import GenerateOptions, all_replies
from mlagentbench.records import Action, Step


class Entry(NamedTuple):
    """One part of a reply, and what the agent is told to write there."""

    name: str
    meaning: str


ENTRIES = (
    Entry("Reflection", "what the last observation means; for an error, its likely cause and how to mend it"),
    Entry(
        "Research Plan and Status",
        "the whole plan, each part with its state and the results that observations have confirmed; put **two stars** around what is new",
    ),
    Entry(
        "Fact Check",
        "each new statement of the plan, and whether an observation confirms it or it is a guess; only a run of the code confirms a number",
    ),
    Entry("Thought", "what you do next, and why"),
)

ENTRY_NAMES = tuple(entry.name for entry in ENTRIES)

LONG_OBSERVATION = 5000
"""Characters above which an observation is summarised (the paper's)."""
SUMMARY_PART = 10_000
"""Characters of an observation that one question to the fast model holds."""
REPLY_OPTIONS = GenerateOptions(temperature=0.5, max_tokens=2000, stop=("Observation:",))
SUMMARY_OPTIONS = GenerateOptions(temperature=0.01, max_tokens=1000)


class ResearchAgent:
    """The paper's agent.

    Args:
        context_steps: how many of the last steps stand in the prompt, observations included.
        entries: the names of the entries that are asked for before the action, of the four in `ENTRIES`.
    """

    def __init__(self, context_steps: int = 3, entries: Sequence[str] = ENTRY_NAMES) -> None:
        self.context_steps = context_steps
        self.entries = [entry for entry in ENTRIES if entry.name in entries]

    async def __call__(self, environment: Environment) -> None:
        """Ask, act and look, until the final answer or a limit."""
        instructions = self._instructions(environment)
        summaries = {number: text for step in environment.steps for number, text in _summaries(step).items()}
        while not environment.ended:
            recent = environment.steps[-self.context_steps :] if self.context_steps else ()
            new = {
                str(step.number): await self._summary(environment, step)
                for step in recent
                if _is_long(step) and str(step.number) not in summaries
            }
            summaries |= new
            history = "".join(self._remembered(step, summaries.get(str(step.number), step.observation)) for step in recent)
            prompt = f"{instructions}{history}\nThis is step {len(environment.steps) + 1}. Reply now.\n"
            response = await self._respond(environment, prompt)
            await environment.execute(
                Action(name=response.action, arguments=response.arguments),
                entries=response.entries,
                memory={"summaries": dict(new)} if new else {},
            )

    def _instructions(self, environment: Environment) -> str:
        offered = [action for action in environment.actions.values() if not action.hidden]
        limits = environment.limits
        return render(
            "research.md",
            task=environment.description.strip(),
            actions=offered,
            entries=self.entries,
            steps=limits.steps,
            hours=f"{limits.time / 3600:g} hours",
        )

    def _remembered(self, step: Step, observation: str) -> str:
        """A step as the agent wrote it, with what it saw."""
        written = [f"{entry.name}: {step.entries[entry.name]}" for entry in self.entries if entry.name in step.entries]
        arguments = json.dumps(dict(step.action.arguments), indent=4)
        reply = "\n".join([*written, f"Action: {step.action.name}", f"Action Input: {arguments}"])
        return f"\n{reply}\nObservation:\n```\n{observation}\n```\n"

    async def _respond(self, environment: Environment, prompt: str) -> Response:
        """Ask until a reply holds an action; the environment ends a run that never gets there."""
        names = [entry.name for entry in self.entries]
        question = prompt
        while True:
            try:
                return await environment.ask_agent(question, lambda text: parse_response(text, names, environment.actions), REPLY_OPTIONS)
            except ResponseFormatError as error:
                question = f"{prompt}\nYour last reply could not be used. {error}\nReply again, in the form given above.\n"

    async def _summary(self, environment: Environment, step: Step) -> str:
        """What the fast model makes of a long observation, part by part, all parts at once."""
        text = step.observation
        parts = [text[start : start + SUMMARY_PART] for start in range(0, len(text), SUMMARY_PART)]
        action = f"{step.action.name} {json.dumps(dict(step.action.arguments))}"
        thought = step.entries.get("Thought", "nothing was said")
        prompts = [
            render("summary.md", part=number, parts=len(parts), action=action, thought=thought, text=part)
            for number, part in enumerate(parts, start=1)
        ]
        questions = (environment.ask(prompt, role="fast", purpose="summary", options=SUMMARY_OPTIONS) for prompt in prompts)
        replies = await all_replies(questions)
        return "(A summary of a long observation.)\n" + "\n".join(reply.text.strip() for reply in replies)


def _is_long(step: Step) -> bool:
    return len(step.observation) > LONG_OBSERVATION


def _summaries(step: Step) -> Mapping[str, str]:
    """The summaries that were made before a step, by the number of the step whose observation they are of."""
    kept = step.memory.get("summaries")
    return {number: str(text) for number, text in kept.items()} if isinstance(kept, dict) else {}
