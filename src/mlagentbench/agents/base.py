"""The agent protocol, and how agents are found by name.

An agent is an object that is called with an environment and acts in it until `environment.ended`:

    class Lister:
        async def __call__(self, environment: Environment) -> None:
            await environment.execute(Action(name="List Files", arguments={"dir_path": "."}))

Its class takes its options as keyword arguments; one that asks no model says `needs_model = False`. `path/to/file.py:Name` names an agent
by its file; an `@agent` of Inspect's is one too (see `engine/agents/inspect_agent.py`), and so is any command, as `cmd:COMMAND` (see
`engine/agents/command.py`). Packages add agents through the entry point
group `mlagentbench.agents`; this package's own are found the same way.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, TypeVar

from jinja2 import Environment as Templates
from jinja2 import FileSystemLoader, StrictUndefined
from pydantic import ValidationError

from mlagentbench.actions.fences import fenced
from mlagentbench.agents.programs.definition import built_in, find_program, is_program
from mlagentbench.environment import Environment
from mlagentbench.errors import AgentError, ResponseFormatError
from mlagentbench.model import GenerateOptions
from mlagentbench.util.source import CurrentSourceLoader
from mlagentbench.util.text import hint, shortened

T = TypeVar("T")

ENTRY_POINT_GROUP = "mlagentbench.agents"
CALL = "async def __call__(self, environment)"
"""The method that makes a class's objects agents."""
COMMAND = "cmd:"
"""How the name of an agent begins that is a command."""
REPLY_SHOWN = 4000
"""Characters of a reply that its model is shown again when it is asked to correct it; the middle of a longer one is left out."""
PROMPTS = Path(__file__).parent / "prompts"


class Agent(Protocol):
    """Anything that acts in an environment."""

    async def __call__(self, environment: Environment) -> None:
        """Act until `environment.ended`. A limit of the run raises LimitReached in the environment's methods; do not catch it."""
        ...


def find_agent(name: str) -> Callable[..., Agent]:
    """Return an agent's class by the agent's name, or by `path/to/file.py:Name`, the folder of an `agent.toml`, or `cmd:COMMAND`.

    Raises:
        AgentError: there is no such agent, or it cannot be imported.
    """
    if name.startswith(COMMAND):
        factory = partial(_from_entry_points("command"), name.removeprefix(COMMAND))
        factory.__doc__ = factory.func.__doc__
        return factory
    if is_program(name):
        return _from_definition(name)
    return _from_file(name) if ".py:" in name else _from_entry_points(name)


def make_agent(name: str, options: Mapping[str, object] = {}) -> Agent:
    """Return an agent by its name, or by `path/to/file.py:Name`, made with these options.

    Raises:
        AgentError: there is no such agent, or it refuses an option.
    """
    factory = find_agent(name)
    if inspect.iscoroutinefunction(factory):
        raise AgentError(f"{name} is an async function, and an agent is a class: put the function into one, as its {CALL}")
    known = inspect.signature(factory).parameters
    any_option = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    unknown = [option for option in options if option not in known and not any_option]
    if unknown:
        raise AgentError(f"the agent {name!r} has no option {unknown[0]!r}; it has: {', '.join(known) or 'none'}")
    try:
        agent = factory(**options)
    except AgentError:
        raise
    except ValidationError as error:
        raise AgentError(f"the agent {name!r} cannot be made with these options: {_reason(error)}") from None
    except (TypeError, ValueError) as error:
        raise AgentError(f"the agent {name!r} cannot be made with these options: {error}") from None
    except Exception as error:
        # A constructor may raise anything; the message says where in its author's file it failed.
        raise AgentError(f"the agent {name!r} cannot be made: {type(error).__name__}: {error}{line_in(factory, error)}") from error
    _check(name, agent)
    return agent


def _check(name: str, agent: Agent) -> None:
    """Check that an agent can be called with an environment, as far as its signature shows.

    Raises:
        AgentError: it cannot be called so.
    """
    if not callable(agent):
        raise AgentError(f"the agent {name!r} cannot be called: give its class a method {CALL}")
    try:
        inspect.signature(agent).bind(None)
    except TypeError as error:
        raise AgentError(f"the agent {name!r} cannot be called with an environment ({error}): write {CALL}") from None
    except ValueError:
        pass  # it has no signature to check, as some built-in callables


def line_in(source: object, error: BaseException) -> str:
    """Return ` (line N)` for the last line of `source` (a file, or a class in one) in an error's traceback; empty if there is none."""
    file = source if isinstance(source, str) else getattr(sys.modules.get(getattr(source, "__module__", "")), "__file__", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" (line {lines[-1]})" if lines else ""


def _place(error: Exception) -> str:
    """Return ` (FILE, line N)` for where a module failed while it was imported; empty if that is unknown."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename and frame.filename != __file__
    ]
    file, line = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (None, None)
    if frames and file is None:
        file, line = frames[-1].filename, frames[-1].lineno
    return f" ({file}, line {line})" if file else ""


def _reason(error: ValidationError) -> str:
    """Return one line that says what is wrong with the first invalid option."""
    faults = error.errors()
    option = faults[0]["loc"][0]
    messages = [fault["msg"].removeprefix("Value error, ") for fault in faults if fault["loc"][0] == option]
    return f"{option}: {', or: '.join(messages)}"


@cache  # each of many runs calls this, and reading the installed entry points takes 20 ms
def _from_entry_points(name: str) -> Callable[..., Agent]:
    found = entry_points(group=ENTRY_POINT_GROUP, name=name)
    if found:
        entry_point = next(iter(found))
        try:
            factory: Callable[..., Agent] = entry_point.load()
        except Exception as error:
            # Another author's package may raise anything when it is imported.
            package = f" of the package {entry_point.dist.name}" if entry_point.dist is not None else ""
            raise AgentError(f"the agent {name!r}{package} cannot be imported: {type(error).__name__}: {error}{_place(error)}") from error
        return factory
    names = sorted({*entry_points(group=ENTRY_POINT_GROUP).names, *built_in()})
    raise AgentError(f"there is no agent {name!r}; {hint(name, names)}, or name your own as path/to/file.py:Name (mlab agents list)")


def _from_definition(name: str) -> Callable[..., Agent]:
    """Return the factory of an agent that an `agent.toml` describes, with the options that it lists as its signature."""
    definition = find_program(name).definition
    factory = partial(_from_entry_points("program"), name)
    names = [*definition.options, *(("version",) if definition.package else ())]
    parameters = [inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None) for option in names]
    factory.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return factory


def _from_file(name: str) -> Callable[..., Agent]:
    file, _, attribute = name.rpartition(":")
    path = Path(file).resolve()
    # The module gets a unique name, since dataclasses look their module up in sys.modules by it.
    unique = f"mlagentbench_agent_{hashlib.sha256(bytes(path)).hexdigest()[:12]}_{path.stem}"
    loader = CurrentSourceLoader(unique, str(path))
    spec = importlib.util.spec_from_file_location(unique, path, loader=loader)
    if spec is None or not path.is_file():
        raise AgentError(f"there is no file {file} to take the agent {attribute!r} from")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        # The file is its user's own and may raise anything; the message says where in it.
        del sys.modules[unique]
        raise AgentError(f"{file} cannot be imported: {type(error).__name__}: {error}{line_in(str(path), error)}") from error
    if not callable(factory := getattr(module, attribute, None)):
        own = [each for each, value in vars(module).items() if inspect.isclass(value) and value.__module__ == unique]
        raise AgentError(f"{file} has no class or function {attribute!r}; its classes are: {', '.join(own) or 'none'}")
    made: Callable[..., Agent] = factory
    return _adopted(made) if getattr(getattr(made, "__registry_info__", None), "type", None) == "agent" else made


def _adopted(factory: Callable[..., object]) -> Callable[..., Agent]:
    """Wrap the factory of an Inspect agent in the agent `inspect`, and keep its signature so that its options stay visible."""
    adopted = partial(_from_entry_points("inspect"), factory)
    adopted.__signature__ = inspect.signature(factory)  # type: ignore[attr-defined]
    return adopted


async def ask_until_parsed(
    environment: Environment,
    prompt: str,
    parse: Callable[[str], T],
    options: GenerateOptions,
    *,
    again: str = "Reply again, in the form given above.",
) -> T:
    """Ask the agent's model until its reply can be parsed, and return that. The environment ends the run after too many that cannot.

    Args:
        environment: the agent's environment.
        prompt: the question.
        parse: parses a reply, and raises ResponseFormatError if it holds no action.
        options: how to sample the replies.
        again: the last line of a further question, after the prompt, the reply and what was wrong with it.
    """
    question, reply = prompt, ""

    def read(text: str) -> T:
        nonlocal reply
        reply = text
        return parse(text)

    while True:
        reply = ""
        try:
            return await environment.ask_agent(question, read, options)
        except ResponseFormatError as error:
            own = f"You replied:\n{fenced(shortened(reply, REPLY_SHOWN))}\nThat reply" if reply else "Your last reply"
            question = f"{prompt}\n{own} could not be used. {error}\n{again}\n"


def render(prompt: str, **values: object) -> str:
    """Return a prompt of `prompts/`, filled in. Raise UndefinedError if the prompt uses a name that is not given."""
    templates = Templates(
        loader=FileSystemLoader(PROMPTS), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    templates.filters["fenced"] = fenced
    return templates.get_template(prompt).render(**values)
