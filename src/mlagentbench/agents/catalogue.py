"""Lists the agents: what each does, where it comes from, and its options.

Listing parses their source without importing it, so that a slow import or a broken package does not get in the way.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import NamedTuple

from mlagentbench.agents.base import ENTRY_POINT_GROUP, find_agent
from mlagentbench.agents.programs.definition import BUILT_IN, FILE, Program, built_in, find_program, is_program, read_program
from mlagentbench.agents.programs.install import find_installed
from mlagentbench.errors import AgentError

EXTRA = "extra"
"""The attribute of an agent's class that names the extra of its package which must be installed."""


class AgentEntry(NamedTuple):
    """One agent, as its source describes it."""

    name: str
    about: str
    """The first sentence of its docstring; empty if it has none."""
    place: str
    """Its location, as `module:name`."""
    package: str
    """The package that provides it, with its version; empty for a file."""
    file: Path | None
    extra: str | None
    """The extra that `pip install "package[extra]"` must have installed; None if it needs none."""
    problem: str = ""
    """Why its source cannot be read; empty if it can."""
    installs: str | None = None
    """The package that `mlab agents install` gets, as `<registry> <name> <version>`; None for an agent that needs none."""
    installed: bool | None = None
    """Whether that package is installed; None for an agent that needs none."""


class AgentOption(NamedTuple):
    """One option of an agent."""

    name: str
    default: object
    """`inspect.Parameter.empty` if the option is required."""
    meaning: str


def list_agents() -> list[AgentEntry]:
    """Return all agents that a name stands for, sorted by name."""
    programs = [_program_entry(folder, name) for name, folder in built_in().items()]
    return sorted([*programs, *(_entry(found) for found in entry_points(group=ENTRY_POINT_GROUP))], key=lambda entry: entry.name)


def describe_agent(name: str) -> tuple[AgentEntry, list[AgentOption]]:
    """Import one agent and return it with its options.

    Args:
        name: an agent's name, the file and name of its class, or the folder of its `agent.toml`.

    Raises:
        AgentError: there is no such agent, or it cannot be imported.
    """
    if is_program(name):
        program = find_program(name)
        return _program_entry(program.folder, name), program_options(program)
    factory = find_agent(name)
    documented = _documented(factory)
    options = [
        AgentOption(parameter.name, parameter.default, documented.get(parameter.name, ""))
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    installed = next((entry for entry in list_agents() if entry.name == name), None)
    if installed is not None:
        return installed, options
    file, _, attribute = name.rpartition(":")
    return _described(AgentEntry(name, "", f"{Path(file).stem}:{attribute}", "", Path(file).resolve(), None)), options


def program_options(program: Program) -> list[AgentOption]:
    """Return the options of an agent that is described by an `agent.toml`."""
    definition = program.definition
    options = [AgentOption(name, option.default, option.meaning) for name, option in definition.options.items()]
    if definition.package is not None:
        options.append(AgentOption("version", definition.package.version, "the version of its package, which must be installed"))
    return options


def _program_entry(folder: Path, name: str) -> AgentEntry:
    package_name = f"mlagentbench {version('mlagentbench')}" if folder.is_relative_to(BUILT_IN) else ""
    entry = AgentEntry(name, "", str(folder), package_name, folder / FILE, None)
    try:
        program = read_program(folder)
    except AgentError as error:
        return entry._replace(problem=str(error))
    package = program.definition.package
    installs = f"{package.registry} {package.name} {package.version}" if package else None
    installed = find_installed(program) is not None if package else None
    return entry._replace(about=program.definition.about, installs=installs, installed=installed)


def _entry(found: EntryPoint) -> AgentEntry:
    package = f"{found.dist.name} {found.dist.version}" if found.dist is not None else ""
    entry = AgentEntry(found.name, "", found.value, package, None, None)
    origin = _origin(found.module)
    if origin is None:
        return entry._replace(problem=f"there is no module {found.module}")
    return _described(entry._replace(file=Path(origin)))


def _described(entry: AgentEntry) -> AgentEntry:
    """Return an entry completed from the source of its file."""
    assert entry.file is not None
    try:
        module = ast.parse(entry.file.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return entry._replace(problem=f"{entry.file}{line}: {getattr(error, 'msg', None) or error}")
    attribute = entry.place.partition(":")[2]
    for node, text in _definitions(module.body):
        if getattr(node, "name", None) == attribute or attribute in _targets(node):
            constants = {name: _constant(each) for each in getattr(node, "body", ()) for name in _targets(each)}
            extra = constants.get(EXTRA)
            return entry._replace(about=_sentence(text), extra=extra if isinstance(extra, str) else None)
    return entry


def _definitions(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the definitions in the body of a module or class with their docstrings; that of a value is the string below it."""
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            text = _constant(following)
            yield node, inspect.cleandoc(text) if isinstance(text, str) else ""


def _targets(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _constant(node: ast.stmt | None) -> object:
    """Return the constant that a statement consists of or assigns; None for any other statement."""
    value = node.value if isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign) else None
    return value.value if isinstance(value, ast.Constant) else None


def _sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _origin(module: str) -> str | None:
    """Return a module's file, importing neither it nor its packages, unlike `importlib.util.find_spec`; None if there is no such module."""
    path, spec = None, None
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        spec = next((spec for finder in sys.meta_path if (spec := _spec(finder, name, path)) is not None), None)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec.origin if spec is not None else None


def _spec(finder: object, name: str, path: object) -> ModuleSpec | None:
    find: Callable[..., ModuleSpec | None] | None = getattr(finder, "find_spec", None)
    return find(name, path) if find is not None else None


def _documented(factory: Callable[..., object]) -> Mapping[str, str]:
    """Return the descriptions of a class's options: from the `Args` of its docstrings, and from the strings below its fields."""
    while not inspect.isclass(factory) and hasattr(factory, "func"):
        factory = factory.func
    kinds = factory.__mro__ if inspect.isclass(factory) else (factory,)
    found: dict[str, str] = {}
    for kind in reversed(kinds):
        if getattr(kind, "__module__", "builtins") == "builtins":
            continue
        found |= _arguments(inspect.getdoc(kind) or "") | _arguments(inspect.getdoc(getattr(kind, "__init__", None)) or "")
        try:
            (node,) = ast.parse(inspect.cleandoc(inspect.getsource(kind))).body
        except (OSError, SyntaxError, TypeError, ValueError):
            continue
        found |= {name: _sentence(text) for each, text in _definitions(getattr(node, "body", [])) for name in _targets(each) if text}
    return found


def _arguments(docstring: str) -> dict[str, str]:
    """Return the descriptions in the `Args` section of a Google-style docstring, by argument."""
    section = docstring.partition("\nArgs:\n")[2].split("\n\n")[0]
    found: dict[str, str] = {}
    for line in section.splitlines():
        name, colon, meaning = line.strip().partition(":")
        if colon and line.startswith("    ") and not line.startswith("     "):
            found[name.split()[0]] = meaning.strip()
        elif found:
            last = next(reversed(found))
            found[last] = f"{found[last]} {line.strip()}"
    return found
