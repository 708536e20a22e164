"""What an agent is, and how agents are found by name.

An agent is an object that is called with an environment and acts in it until the environment has ended:

    class Lister:
        async def __call__(self, environment: Environment) -> None:
            await environment.execute(Action(name="List Files", arguments={"dir_path": "."}))

Its class takes its options as keyword arguments; one that asks no model says `needs_model = False`. `path/to/file.py:Name` names an agent
by its file; an `@agent` of Inspect's is one too (see `engine/inspect_agent.py`). Packages add agents by the entry point group
`mlagentbench.agents`; this package's own are found the same way.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from jinja2 import Environment as Templates
from jinja2 import FileSystemLoader, StrictUndefined
from pydantic import ValidationError

from mlagentbench.environment import Environment
from mlagentbench.errors import AgentError

ENTRY_POINT_GROUP = "mlagentbench.agents"
PROMPTS = Path(__file__).parent / "prompts"


class Agent(Protocol):
    """Anything that acts in an environment."""

    async def __call__(self, environment: Environment) -> None:
        """Act until `environment.ended`. A limit of the run ends it from within, by an exception that an agent lets pass."""
        ...


def find_agents() -> Mapping[str, Callable[..., Agent]]:
    """The classes of all agents by name, not yet loaded with options."""
    return {
        entry_point.name: entry_point.load() for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda found: found.name)
    }


def make_agent(name: str, options: Mapping[str, object] = {}) -> Agent:
    """An agent by name, or by the file and name of its class: `path/to/file.py:Name`.

    Raises:
        AgentError: there is no such agent, or it refuses an option.
    """
    factory = _from_file(name) if ".py:" in name else _from_entry_points(name)
    known = inspect.signature(factory).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise AgentError(f"the agent {name!r} has no option {unknown[0]!r}; it has: {', '.join(known) or 'none'}")
    try:
        return factory(**options)
    except ValidationError as error:
        raise AgentError(f"the agent {name!r} cannot be made with these options: {_said(error)}") from None
    except (TypeError, ValueError) as error:
        raise AgentError(f"the agent {name!r} cannot be made with these options: {error}") from None


def _said(error: ValidationError) -> str:
    """What is wrong with the first option that is wrong, in one line."""
    faults = error.errors()
    option = faults[0]["loc"][0]
    messages = [fault["msg"].removeprefix("Value error, ") for fault in faults if fault["loc"][0] == option]
    return f"{option}: {', or: '.join(messages)}"


@cache  # every run of many asks, and reading what is installed takes 20 ms
def _from_entry_points(name: str) -> Callable[..., Agent]:
    found = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if found:
        factory: Callable[..., Agent] = next(iter(found)).load()
        return factory
    names = sorted(entry_points(group=ENTRY_POINT_GROUP).names)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? There are" if close else "there are"
    raise AgentError(f"there is no agent {name!r}; {hint}: {', '.join(names)}, or name your own as path/to/file.py:Name")


def _from_file(name: str) -> Callable[..., Agent]:
    file, _, attribute = name.rpartition(":")
    path = Path(file).resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise AgentError(f"there is no file {file} to take the agent {attribute!r} from")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The file is its user's own: whatever it raises is told as its fault.
        raise AgentError(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(factory := getattr(module, attribute, None)):
        raise AgentError(f"{file} has no class or function {attribute!r}")
    made: Callable[..., Agent] = factory
    return _adopted(made) if getattr(getattr(made, "__registry_info__", None), "type", None) == "agent" else made


def _adopted(factory: Callable[..., object]) -> Callable[..., Agent]:
    """An agent of Inspect's, which marks its own, as the engine lets it act here; its options stay its own."""
    adopted = partial(_from_entry_points("inspect"), factory)
    adopted.__signature__ = inspect.signature(factory)  # type: ignore[attr-defined]
    return adopted


def render(prompt: str, **values: object) -> str:
    """A prompt of `prompts/`, filled in. A name that the prompt uses and is not given is an error, not an empty text."""
    templates = Templates(
        loader=FileSystemLoader(PROMPTS), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    return templates.get_template(prompt).render(**values)
