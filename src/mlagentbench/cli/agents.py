"""The commands of `mlab agents`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import click
from pydantic import JsonValue
from rich.text import Text

from mlagentbench.agents.catalogue import AgentEntry, AgentOption, describe_agent, list_agents
from mlagentbench.agents.programs.definition import find_program
from mlagentbench.agents.programs.install import install, installed_versions, uninstall
from mlagentbench.cli.lazy import LazyGroup
from mlagentbench.cli.options import cache_option
from mlagentbench.report.console import Definitions, command_console, unbroken
from mlagentbench.report.formatting import visible


@click.group("agents", cls=LazyGroup)
def agents() -> None:
    """List and describe agents; install and remove those that are programs of their own."""


@agents.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_all(as_json: bool) -> None:
    """List all agents, and which of them must be installed before their first run."""
    found = list_agents()
    if as_json:
        click.echo(json.dumps([_facts(entry) for entry in found], indent=1))
        return
    console = command_console()
    console.print(Definitions((entry.name, _about(entry)) for entry in found), crop=False)
    console.print()
    console.print(Text("Options of one: mlab agents show NAME. Your own is path/to/file.py:Name, or the folder of its agent.toml."))


@agents.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def show_one(name: str, as_json: bool) -> None:
    """Show one agent: where it comes from, and its options with their defaults.

    NAME is an agent's name, or path/to/file.py:Name or the folder of an agent.toml for one of your own.
    """
    entry, options = describe_agent(name)
    if as_json:
        click.echo(json.dumps({**_facts(entry), "options": [_option_facts(option) for option in options]}, indent=1))
        return
    console = command_console()
    console.print(Text.assemble((entry.name, "bold"), f": {visible(entry.about or 'it has no description')}"))
    console.print()
    rows = [("from", f"{entry.place}" + (f", of {entry.package}" if entry.package else ""))]
    if entry.extra:
        rows.append(("needs", f"the extra {entry.extra} of its package"))
    if entry.installs:
        rows.append(("package", entry.installs))
        rows.append(("installed", _installed(entry)))
    console.print(Definitions(rows), crop=False)
    unbroken(console, ("file", str(entry.file)))
    console.print()
    if options:
        console.print(Text("Options, each given as -A NAME=VALUE, with their defaults:"))
        console.print(Definitions((f"{option.name}={_value(option)}", visible(option.meaning)) for option in options), crop=False)
    else:
        console.print(Text("It has no options."))


@agents.command("install")
@click.argument("name")
@click.option("--version", help="The version of its package, or `latest`; by default the one that was tested.")
@click.option(
    "--python",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For a package of PyPI, the interpreter that it will run in: the --python of your runs.",
)
@cache_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def install_one(name: str, version: str | None, python: Path | None, cache: Path | None, as_json: bool) -> None:
    """Install an agent that is a program of its own, from the registry of its package (npm or PyPI).

    NAME is an agent's name, or the folder of an agent.toml. Runs use what is installed, and download nothing.
    """
    program = find_program(name)
    found = install(program, version=version, python=python, cache=cache, begin=lambda text: click.echo(text, err=True))
    if as_json:
        click.echo(json.dumps({"agent": program.name, **found.record.package.model_dump(), "place": str(found.folder)}, indent=1))
        return
    usual = program.definition.package is not None and found.version == program.definition.package.version
    option = "" if usual else f" -A version={found.version}"
    click.echo(f"{program.name} {found.version} is installed in {found.folder}: mlab run TASK --agent {name}{option} --model MODEL")


@agents.command("remove")
@click.argument("name")
@click.option("--version", help="Only this version of its package.")
@cache_option
def remove_one(name: str, version: str | None, cache: Path | None) -> None:
    """Remove an agent that was installed. Its runs stay; those in progress lose it."""
    program = find_program(name)
    removed = uninstall(program, version, cache)
    click.echo(f"{program.name} {' and '.join(removed)} removed")


def _about(entry: AgentEntry) -> Text:
    if entry.problem:
        return Text(f"cannot be read: {visible(entry.problem)}", style="red")
    needs = f" Needs the extra {entry.extra}." if entry.extra else ""
    if entry.installed is False:
        needs = f" Not installed: mlab agents install {entry.name}"
    return Text(visible(entry.about) + needs)


def _installed(entry: AgentEntry) -> str:
    others = [version for version in installed_versions(find_program(entry.name)) if version != (entry.installs or "").split()[-1]]
    also = f" (installed: {', '.join(others)}, for -A version=...)" if others else ""
    return ("yes" if entry.installed else f"no: mlab agents install {entry.name}") + also


def _value(option: AgentOption) -> str:
    """Return an option's default as `-A` takes it; `...` if the option is required."""
    if option.default is inspect.Parameter.empty:
        return "..."
    default = _plain(option.default)
    if isinstance(default, list):
        return ",".join(map(str, default)) or "none"
    return default if isinstance(default, str) else json.dumps(default)


def _plain(value: object) -> JsonValue:
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _option_facts(option: AgentOption) -> dict[str, JsonValue]:
    required = option.default is inspect.Parameter.empty
    return {"name": option.name, "required": required, "default": None if required else _plain(option.default), "meaning": option.meaning}


def _facts(entry: AgentEntry) -> dict[str, JsonValue]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in entry._asdict().items()}
