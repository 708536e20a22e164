"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
from pydantic import JsonValue

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

log_directory_option = click.option(
    "--log-dir",
    "log_directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Where runs are kept.",
)
task_path_option = click.option(
    "--task-path",
    "task_paths",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder with a task, or with several; can be given again.",
)


class Duration(click.ParamType[float]):
    """A time such as `90`, `90s`, `30m` or `1.5h`, in seconds."""

    name = "time"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> float:
        """Read a time."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is no time; write it as 90s, 30m or 5h", parameter, context)
        return float(match[1]) * SECONDS[match[2] or "s"]


class KeyValue(click.ParamType[tuple[str, JsonValue]]):
    """`KEY=VALUE`, the value read as JSON where it is JSON and as text where it is not."""

    name = "key=value"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, JsonValue]:
        """Read a pair."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key:
            self.fail(f"{value!r} is not of the form KEY=VALUE", parameter, context)
        try:
            return key.replace("-", "_"), json.loads(text)
        except ValueError:
            return key.replace("-", "_"), text
