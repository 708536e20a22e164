"""The commands `mlab agents list` and `mlab agents show`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import click
from pydantic import JsonValue
from rich.text import Text

from mlagentbench.agents.catalogue import AgentEntry, AgentOption, describe_agent, list_agents
from mlagentbench.report.console import Definitions, command_console, unbroken
from mlagentbench.report.formatting import visible


@click.group("agents")
def agents() -> None:
    """List the agents, and describe one."""


@agents.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_all(as_json: bool) -> None:
    """List all agents that are installed."""
    found = list_agents()
    if as_json:
        click.echo(json.dumps([_facts(entry) for entry in found], indent=1))
        return
    console = command_console()
    console.print(Definitions((entry.name, _about(entry)) for entry in found), crop=False)
    console.print()
    console.print(Text("Options of one: mlab agents show NAME. One of your own is named by its file: path/to/file.py:Name."))


@agents.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def show_one(name: str, as_json: bool) -> None:
    """Show one agent: where it comes from, and its options with their defaults.

    NAME is an agent's name, or path/to/file.py:Name for one of your own.
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
    console.print(Definitions(rows), crop=False)
    unbroken(console, ("file", str(entry.file)))
    console.print()
    if options:
        console.print(Text("Options, each given as -A NAME=VALUE, with their defaults:"))
        console.print(Definitions((f"{option.name}={_value(option)}", visible(option.meaning)) for option in options), crop=False)
    else:
        console.print(Text("It has no options."))


def _about(entry: AgentEntry) -> Text:
    if entry.problem:
        return Text(f"cannot be read: {visible(entry.problem)}", style="red")
    return Text(visible(entry.about) + (f" Needs the extra {entry.extra}." if entry.extra else ""))


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
