"""Command groups that import a command only when it is called, not when it is listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

LONGEST = 300
"""The most characters of a command's help in a list, over several lines."""


class LazyCommand(NamedTuple):
    """A command that is not imported yet."""

    place: str
    """Its location, as `module:attribute`."""
    help: str
    """The first line of its help."""


class LazyGroup(click.Group):
    """A group that lists its commands with the whole first line of their help, and imports some only when they are called.

    So no command waits for a library that it does not use.

    Args:
        lazy: these commands by name, by the heading that the help lists them under.
    """

    def __init__(self, *arguments: Any, lazy: Mapping[str, Mapping[str, LazyCommand]] = {}, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.lazy = lazy

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(context), *(name for section in self.lazy.values() for name in section)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return a command by name, imported if it is lazy; None if there is none."""
        found = next((section[name] for section in self.lazy.values() if name in section), None)
        if found is None:
            return super().get_command(context, name)
        module, _, attribute = found.place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their headings, without importing them."""
        sections = {heading: {name: lazy.help for name, lazy in section.items()} for heading, section in self.lazy.items()}
        own = {name: command.get_short_help_str(LONGEST) for name, command in self.commands.items()}
        sections["Commands"] = own | sections.get("Commands", {})
        for heading, commands in sections.items():
            if commands:
                with formatter.section(heading):
                    formatter.write_dl(list(commands.items()))
