"""The options of the research agent. The defaults are the paper's; each ablation changes one or two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.dataclasses import dataclass

from mlagentbench.actions import ACTIONS
from mlagentbench.agents.reply.arguments import squeezed
from mlagentbench.model import GenerateOptions
from mlagentbench.records import Role
from mlagentbench.util.text import hint


class ReplyEntry(NamedTuple):
    """One part of a reply, and what the prompt asks for in it."""

    name: str
    meaning: str
    use: str
    """When to write it, for an agent that chooses its entries itself (`adaptive`)."""


ENTRIES = (
    ReplyEntry(
        "Reflection",
        "what the last observation means; for an error, its likely cause and how to mend it",
        "after an error or a surprise",
    ),
    ReplyEntry(
        "Research Plan and Status",
        "the whole plan, each part with its state and the results that observations have confirmed; put **two stars** around what is new",
        "when the plan or its state has changed",
    ),
    ReplyEntry(
        "Fact Check",
        "each new statement of the plan, and whether an observation confirms it or it is a guess; only a run of the code confirms a number",
        "when you are about to rely on a number or a statement that is new",
    ),
    ReplyEntry("Thought", "what you do next, and why", "when the next action does not follow by itself"),
)

ENTRY_NAMES = tuple(entry.name for entry in ENTRIES)

LONG_OBSERVATION = 5000
"""Characters above which an observation is summarised (the paper's)."""


def _listed(value: object) -> object:
    """Return the names in a comma-separated text, as a command line gives them; none of them for `none`."""
    if not isinstance(value, str):
        return value
    names = [name.strip() for name in value.split(",")]
    return [name for name in names if name and name != "none"]


def _known(kind: str, names: Iterable[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return names as they are spelled in `names`, whatever case and punctuation they were given with.

    Raises:
        ValueError: there is no such name.
    """
    known = {squeezed(name): name for name in names}
    for name in given:
        if squeezed(name) not in known:
            raise ValueError(f"there is no {kind} {name!r}; {hint(name, known.values())}")
    return tuple(known[squeezed(name)] for name in given)


def _entries(given: Sequence[str]) -> tuple[str, ...]:
    chosen = _known("entry", ENTRY_NAMES, given)
    return tuple(name for name in ENTRY_NAMES if name in chosen)


Listed = Annotated[Sequence[str], BeforeValidator(_listed)]
EntryNames = Annotated[Listed, AfterValidator(_entries)]
ActionNames = Annotated[Listed, AfterValidator(lambda given: _known("action", ACTIONS, given))]
Steps = Annotated[int, Field(ge=0)] | Literal["all"]
Tokens = Annotated[int, Field(ge=1)] | None
Temperature = Annotated[float, Field(ge=0)] | None


@dataclass(frozen=True)
class ResearchOptions:
    """The options of the research agent. Lists may be comma-separated text; None leaves a sampling setting to the provider."""

    context_steps: Steps = 3
    """How many of the last steps the prompt holds."""
    context_observations: Steps = "all"
    """How many of those steps are shown with their observations."""
    entries: EntryNames = ENTRY_NAMES
    """The entries asked for before the action, of those in `ENTRIES`."""
    adaptive: bool = False
    """Whether the agent chooses at each step which of the entries it writes."""
    research_log: bool = False
    """Whether each step is summarised into the research log, which is searched for what matters before a step."""
    retrieve_from: Annotated[int, Field(ge=2)] = 5
    """The first step before which the research log is searched."""
    actions_add: ActionNames = ()
    """Actions that the prompt offers though they are hidden by default."""
    actions_remove: ActionNames = ()
    """Actions that the prompt does not offer. They can still be called."""
    high_level_actions: bool = True
    """Whether high-level actions are offered. If not, all primitive actions are, and only these and `actions_add` can be called."""
    summarise: bool = True
    """Whether the fast model summarises long observations."""
    summarise_over: Annotated[int, Field(ge=1)] = LONG_OBSERVATION
    """Characters above which an observation is long."""
    temperature: Temperature = 0.5
    """The sampling temperature of the agent's replies."""
    max_tokens: Tokens = 2000
    """The most tokens of an agent's reply."""
    stop: Listed = ("Observation:",)
    """Texts that end a reply."""
    fast_temperature: Temperature = 0.01
    """The sampling temperature of the fast model, in actions and in summaries."""
    fast_max_tokens: Tokens = 2000
    """The most tokens of the fast model's replies in actions."""
    summary_max_tokens: Tokens = 1000
    """The most tokens of the fast model's summaries of observations and steps."""
    editor_temperature: Temperature = 0.01
    """The sampling temperature of the editor model."""
    editor_max_tokens: Tokens = 4000
    """The most tokens of the editor model's replies: it cannot edit a longer script."""

    @property
    def reply_options(self) -> GenerateOptions:
        """The sampling of the agent's own replies."""
        return GenerateOptions(self.temperature, self.max_tokens, tuple(self.stop))

    @property
    def summary_options(self) -> GenerateOptions:
        """The sampling of summaries."""
        return GenerateOptions(self.fast_temperature, self.summary_max_tokens)

    @property
    def sampling(self) -> Mapping[Role, Mapping[str, object]]:
        """The sampling settings that override those of the actions, by role: the ones that differ from the defaults here."""
        own = ResearchOptions()
        chosen: dict[Role, dict[str, object]] = {"fast": {}, "editor": {}}
        for role, options in chosen.items():
            for setting in ("temperature", "max_tokens"):
                value = getattr(self, f"{role}_{setting}")
                if value != getattr(own, f"{role}_{setting}"):
                    options[setting] = value
        return chosen
