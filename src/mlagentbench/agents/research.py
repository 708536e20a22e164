"""The paper's research agent: in each reply it reflects, keeps a plan, checks its facts, thinks and acts.

See arXiv 2310.03302, section 4: each reply has the entries Reflection, Research Plan and Status, Fact Check, Thought, Action and Action
Input; the prompt holds the last steps; a long observation is summarised by a fast model. The prompt's wording is this project's own. The
other agents of this file are the same agent with other options.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from mlagentbench.actions.base import ActionDefinition
from mlagentbench.actions.fences import fenced
from mlagentbench.agents.base import ask_until_parsed, render
from mlagentbench.agents.reply.response import Response, parse_response
from mlagentbench.agents.research_options import ENTRIES, ResearchOptions, Steps
from mlagentbench.agents.summaries import Summaries, action_line, thought
from mlagentbench.environment import Environment
from mlagentbench.errors import ActionError
from mlagentbench.records import Action, Step
from mlagentbench.util.text import shortened

APPEND, RETRIEVE, REFLECT = "Append Summary to Research Log", "Retrieval from Research Log", "Reflection"
HELP = "Request Help"
PLAN = "Research Plan and Status"
LOGGED_PART = 10_000
"""Characters of an observation that the summary for the research log is made from."""


class ResearchAgent(ResearchOptions):
    """The paper's research agent: each reply reflects, keeps a plan, checks facts and thinks before it acts."""

    async def __call__(self, environment: Environment) -> None:
        """Ask the model and execute its actions, until the final answer or a limit."""
        environment.sampling = self.sampling
        instructions = self._instructions(environment)
        summaries = Summaries(environment, self.summarise_over if self.summarise else None, self.summary_options)
        while not environment.ended:
            taken = [step for step in environment.steps if step.counted]
            recent = _last(taken, self.context_steps)
            seen = _last(recent, self.context_observations)
            await summaries.make(seen)
            found = await self._consult_log(environment, taken, summaries) if self.research_log and taken else ""
            history = "".join(self._remembered(step, summaries.observation(step) if step in seen else None) for step in recent)
            prompt = f"{instructions}{found}{history}\nThis is step {len(taken) + 1}. Reply now.\n"
            response = await self._respond(environment, prompt)
            await environment.execute(
                Action(name=response.action, arguments=response.arguments), entries=response.entries, memory=summaries.memory()
            )

    def offered(self, environment: Environment) -> list[ActionDefinition]:
        """Return the actions that the prompt names."""
        return [action for action in self._callable(environment).values() if self._offers(action)]

    def _offers(self, action: ActionDefinition) -> bool:
        if action.name in self.actions_remove:
            return False
        if action.name in self.actions_add or (self.research_log and action.name == REFLECT):
            return True
        return not action.hidden if self.high_level_actions or action.name == HELP else True

    def _callable(self, environment: Environment) -> dict[str, ActionDefinition]:
        return {
            name: action
            for name, action in environment.actions.items()
            if self.high_level_actions or not action.high_level or name in self.actions_add
        }

    def _instructions(self, environment: Environment) -> str:
        limits = environment.limits
        return render(
            "research.md",
            task=environment.description.strip(),
            actions=self.offered(environment),
            entries=[entry for entry in ENTRIES if entry.name in self.entries],
            adaptive=self.adaptive,
            steps=limits.steps,
            hours=f"{limits.time / 3600:g} hours",
        )

    def _remembered(self, step: Step, observation: str | None) -> str:
        """Return a step for the prompt: the reply as the agent wrote it, and the observation, if it is to be shown."""
        written = [f"{name}: {step.entries[name]}" for name in self.entries if name in step.entries]
        arguments = json.dumps(dict(step.action.arguments), indent=4)
        reply = "\n".join([*written, f"Action: {step.action.name}", f"Action Input: {arguments}"])
        shown = "(It is no longer shown.)" if observation is None else fenced(observation)
        return f"\n{reply}\nObservation:\n{shown}\n"

    async def _respond(self, environment: Environment, prompt: str) -> Response:
        actions = self._callable(environment)
        return await ask_until_parsed(environment, prompt, lambda text: parse_response(text, self.entries, actions), self.reply_options)

    async def _consult_log(self, environment: Environment, taken: Sequence[Step], summaries: Summaries) -> str:
        """Write the last step into the research log, and return what in the log matters for the current plan.

        Both are executed as uncounted steps, so that they are recorded, and a resumed run does not repeat them.
        """
        last = taken[-1]
        done = {step.action.name: step for step in environment.steps[last.number :]}
        if APPEND not in done:
            content = f"Step {len(taken)}: {await self._summary(environment, last, summaries)}"
            action = Action(name=APPEND, arguments={"content": content})
            await environment.execute(action, memory=summaries.memory(), counted=False)
        if len(taken) + 1 < self.retrieve_from:
            return ""
        if RETRIEVE not in done:
            plan = next((step.entries[PLAN] for step in reversed(taken) if PLAN in step.entries), thought(last))
            action = Action(name=RETRIEVE, arguments={"current_plan": plan})
            done[RETRIEVE] = await environment.execute(action, memory=summaries.memory(), counted=False)
        retrieved = done[RETRIEVE]
        return render("retrieved.md", text=retrieved.observation) if retrieved.status == "ok" else ""

    async def _summary(self, environment: Environment, step: Step, summaries: Summaries) -> str:
        """Return a summary of a step for the research log."""
        await summaries.make([step])
        observation = shortened(summaries.observation(step), LOGGED_PART)
        prompt = render("log.md", thought=thought(step), action=action_line(step), observation=observation)
        try:
            return (await environment.ask(prompt, role="fast", purpose="research log", options=self.summary_options)).text.strip()
        except ActionError:
            return f"{action_line(step)}\n{shortened(observation, self.summarise_over)}"


def _last(steps: Sequence[Step], count: Steps) -> Sequence[Step]:
    return steps if count == "all" else steps[-count:] if count else ()


full_history = partial(ResearchAgent, context_steps="all")
"""The research agent with all steps in its prompt, rather than the last three."""
adaptive_entries = partial(ResearchAgent, adaptive=True)
"""The research agent that chooses at each step which of the entries it writes."""
primitive_only = partial(ResearchAgent, high_level_actions=False)
"""The research agent without the high-level actions, such as Edit Script (AI) and Understand File."""
react = partial(ResearchAgent, entries=("Thought",))
"""The paper's ReAct: the research agent that writes a thought, then an action."""
act = partial(ResearchAgent, entries=())
"""The paper's act only: the research agent that writes an action, and nothing before it."""
