"""Read and check `agent.toml`: an agent that is a program of its own, described without any Python.

    about = "My agent."
    command = ["python", "/opt/my-agent/main.py", "{task}"]

The folder with this file is the agent: `--agent path/to/my-agent`. In its sandbox the folder is at `/opt/my-agent`. Unknown keys are errors
that name the key and the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from mlagentbench.errors import AgentError
from mlagentbench.records import Record
from mlagentbench.util.text import hint

FILE = "agent.toml"
BUILT_IN = Path(__file__).parent
OPT = "/opt"
"""Where agents are in their sandboxes, each in a folder of its name."""
GIVEN = ("task", "steps", "script_seconds", "openai_base_url", "anthropic_base_url", "google_base_url")
"""The placeholders that every run fills in, beside the agent's options."""

_PLACEHOLDER = re.compile(r"\{([a-z][a-z_0-9]*)\}")
Word = Annotated[str, StringConstraints(min_length=1)]
Below = Annotated[str, AfterValidator(lambda path: _below(path))]
"""A path that stays below its folder."""
OptionValue = bool | int | float | str


class Package(Record):
    """The package of a registry in which the agent is published. `mlab agents install` gets it, and a run finds it at `/opt/<agent>`."""

    registry: Literal["npm", "pypi"]
    name: Word
    version: Word
    """The version that was tested, and that a run uses unless the option `version` names another."""
    dependencies: tuple[Word, ...] | None = None
    """For a package of PyPI: requirements to install in place of its own; None for its own."""
    also: tuple[Word, ...] = ()
    """Requirements to install beside it."""
    path: tuple[Below, ...] = ("bin",)
    """Folders with programs, as globs below what is installed."""


class ProgramOption(Record):
    """An option, which fills in the placeholder of its name."""

    default: OptionValue
    meaning: Word


class AgentDefinition(Record):
    """The contents of an `agent.toml`.

    The words of `command`, `start` and `resume`, and the values of `environment`, may have placeholders, such as `{task}`: one of `GIVEN`,
    or the name of an option.
    """

    about: Word
    """What the agent is, in a sentence."""
    command: tuple[Word, ...] = Field(min_length=1)
    """The first words of the command that the agent is started with, in the workspace. The command ends when the agent is done."""
    start: tuple[Word, ...] = ()
    """The words that follow in a new run."""
    resume: tuple[Word, ...] | None = None
    """The words that follow in a run that is resumed or forked, to continue from the agent's home. Without this key the agent cannot."""
    package: Package | None = None
    mounts: Mapping[str, str] = Field(default_factory=dict)
    """Further files and folders that the agent can read in its sandbox: the path of each, absolute or below the folder of `agent.toml`,
    with its absolute path in the sandbox."""
    environment: Mapping[Word, str] = Field(default_factory=dict)
    """Variables of the agent."""
    home: Mapping[Word, Below] = Field(default_factory=dict)
    """Variables that name folders below the agent's home, in which it keeps its state. The home is part of every snapshot, and is never
    graded."""
    options: Mapping[str, ProgramOption] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for where, text in self._texts():
            for name in _PLACEHOLDER.findall(text):
                if name not in GIVEN and name not in self.options:
                    raise ValueError(f"{where}: nothing fills in {{{name}}}; there are: {', '.join((*GIVEN, *self.options))}")
        for inside in self.mounts.values():
            if not inside.startswith("/") or ".." in Path(inside).parts:
                raise ValueError(f"mounts: {inside!r} is no absolute path in the sandbox")
        for name in self.options:
            if name in (*GIVEN, "version") or not _PLACEHOLDER.fullmatch(f"{{{name}}}"):
                raise ValueError(f"options: {name!r} cannot be an option's name; take another, in lower case")
        return self

    def _texts(self) -> Iterator[tuple[str, str]]:
        yield from (("command", word) for word in self.command)
        yield from (("start", word) for word in self.start)
        yield from (("resume", word) for word in self.resume or ())
        yield from ((f"environment.{name}", text) for name, text in self.environment.items())


class Program(NamedTuple):
    """An agent that is described by an `agent.toml`."""

    name: str
    """The folder's name, with dashes for underscores."""
    folder: Path
    definition: AgentDefinition

    @property
    def inside(self) -> str:
        """The path in its sandbox of what is installed, or of its folder if it needs no installation."""
        return f"{OPT}/{self.name}"


def filled(text: str, values: Mapping[str, OptionValue]) -> str:
    """Return a text with its placeholders filled in; booleans are written as in TOML."""

    def value(found: re.Match[str]) -> str:
        given = values[found[1]]
        return str(given).lower() if isinstance(given, bool) else str(given)

    return _PLACEHOLDER.sub(value, text)


def read_program(folder: Path) -> Program:
    """Read the agent of a folder.

    Raises:
        AgentError: the folder has no `agent.toml`, or it is no TOML, lacks a key, or has an unknown key or an invalid value.
    """
    path = folder / FILE
    try:
        definition = AgentDefinition.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise AgentError(f"the folder {folder} is no agent: it has no {FILE}") from None
    except OSError as error:
        raise AgentError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise AgentError(f"{path}: {_fault(error)}") from None
    except ValueError as error:
        raise AgentError(f"{path} is no TOML: {error}") from None
    program = Program(folder.resolve().name.replace("_", "-"), folder.resolve(), definition)
    for place in definition.mounts:
        if not host_path(program, place).exists():
            raise AgentError(f"{path}: mounts: there is no {host_path(program, place)}")
    return program


def host_path(program: Program, place: str) -> Path:
    """Return the path on this machine of one of an agent's mounts."""
    return program.folder / Path(place).expanduser()


def is_program(name: str) -> bool:
    """Return whether an agent's name is that of a folder with an `agent.toml`, or of one of the programs that this package describes."""
    return name in built_in() or (("/" in name or name == ".") and Path(name).is_dir())


def find_program(name: str) -> Program:
    """Return an agent by the name of one of this package's, or by its folder.

    Raises:
        AgentError: there is none, or its `agent.toml` is wrong.
    """
    if name in built_in():
        return read_program(built_in()[name])
    if not Path(name).is_dir():
        raise AgentError(f"there is no agent {name!r} that can be installed; {hint(name, built_in())}, or the folder of an {FILE}")
    return read_program(Path(name))


def built_in() -> Mapping[str, Path]:
    """Return the folders of the agents that this package describes, by name."""
    return {path.parent.name.replace("_", "-"): path.parent for path in sorted(BUILT_IN.glob(f"*/{FILE}"))}


def _below(path: str) -> str:
    if not path or path.startswith("/") or ".." in Path(path).parts:
        raise ValueError(f"{path!r} is no path below its folder")
    return path


def _fault(error: ValidationError) -> str:
    """Return what is wrong with the first faulty key."""
    faults = error.errors()
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known = AgentDefinition if len(first["loc"]) == 1 else Package if first["loc"][0] == "package" else ProgramOption
        return f"unknown key {key!r}; the keys are: {', '.join(known.model_fields)}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key}: {message}" if key else message
