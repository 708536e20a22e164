"""Options that several commands share, the types of their values, and a command whose help groups its options."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import JsonValue

from mlagentbench.errors import UsageError
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import Variant
from mlagentbench.rundir.locate import locate

Command = Callable[..., object]
"""The function of a command."""

DEFAULT_LOGS = Path("runs")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MEGABYTES = {"m": 1, "g": 1 << 10, "t": 1 << 20}

log_directory_option = click.option(
    "--log-dir",
    "log_directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_LOGS,
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
cache_option = click.option(
    "--cache-dir",
    "cache",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    help="Where data is kept; by default $MLAB_CACHE, or the platform's place for caches.",
)
sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(get_args(SandboxChoice)),
    default="auto",
    show_default=True,
    help="What isolates the scripts; auto takes the strongest there is.",
)
python_option = click.option(
    "--python", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="The interpreter of the scripts."
)


mini_seed_option = click.option(
    "--mini-seed",
    type=click.IntRange(0, 2**63 - 1),
    metavar="N",
    help="Draw the mini data anew from this number, so that no model has seen it.",
)


def variant_option(default: Variant) -> Callable[[Command], Command]:
    """Return the option `--variant`."""
    choices = click.Choice(get_args(Variant))
    return click.option("--variant", type=choices, default=default, show_default=True, help="The data: real, or small and generated.")


def run_argument(command: Command) -> Command:
    """Add the argument RUN to a command, which gets the run's path as `run`.

    RUN is a directory, or a run's id or the beginning of one in `--log-dir`.
    """

    @functools.wraps(command)
    def located(run: str, log_directory: Path, **options: object) -> object:
        return command(run=locate(run, log_directory), **options)

    argument = click.argument("run", metavar="RUN", nargs=-1, required=True, callback=_only)
    return argument(log_directory_option(located))


def logs_argument(command: Command) -> Command:
    """Add the argument LOGS to a command, which gets the path as `logs`.

    LOGS is a log directory, or one run: its directory, or its id in `runs` or the beginning of one.
    """

    @functools.wraps(command)
    def located(logs: str, **options: object) -> object:
        return command(logs=locate(logs, DEFAULT_LOGS), **options)

    return click.argument("logs", metavar="[LOGS]", nargs=-1, callback=_only)(located)


def _only(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str:
    """Return the only value of RUN or LOGS, by default `DEFAULT_LOGS`.

    Raises:
        UsageError: there are several, as a shell makes of `runs/*`; the message names the directory to give instead.
    """
    if len(values) > 1:
        parents = {Path(value).parent for value in values}
        directory = parents.pop() if len(parents) == 1 and Path(values[0]).exists() else "DIR"
        takes = f"{context.info_name} takes one %s, and {len(values)} were given"
        if parameter.name == "run":
            raise UsageError(f"{takes % 'run'}; name one, or compare all of them: mlab report {directory}")
        raise UsageError(f"{takes % 'log directory or run'}; to take every run in it: {context.command_path} {directory}")
    return values[0] if values else str(DEFAULT_LOGS)


class GroupedCommand(click.Command):
    """A command whose help lists the options under headings, in the order in which they are declared.

    Args:
        groups: by heading, the first option under it. The options before the first heading are under `Options`.
    """

    def __init__(self, *arguments: Any, groups: dict[str, str], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._headings = {before: heading for heading, before in groups.items()}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, heading by heading."""
        found: dict[str, list[tuple[str, str]]] = {}
        heading = "Options"
        for parameter in self.get_params(ctx):
            if not isinstance(parameter, click.Option):
                continue
            heading = next((self._headings[name] for name in parameter.opts if name in self._headings), heading)
            record = parameter.get_help_record(ctx)
            if record is not None:
                found.setdefault(heading, []).append(record)
        for heading, records in found.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class Duration(click.ParamType[float]):
    """A duration such as `90`, `90s`, `30m` or `1.5h`, converted to seconds."""

    name = "time"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> float:
        """Convert a duration to seconds."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is no time; write it as 90s, 30m or 5h", parameter, context)
        return float(match[1]) * SECONDS[match[2] or "s"]


class Size(click.ParamType[int]):
    """A size such as `900`, `900m` or `1.5g`, converted to megabytes (of 2^20 bytes)."""

    name = "size"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> int:
        """Convert a size to megabytes."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mgt]?)(?:i?b)?", str(value).strip().lower())
        megabytes = int(float(match[1]) * MEGABYTES[match[2] or "m"]) if match else 0
        if megabytes < 1:
            self.fail(f"{value!r} is no size of a megabyte or more; write it as 900m or 4g", parameter, context)
        return megabytes


class Indices(click.ParamType[tuple[str, ...]]):
    """Comma-separated names, such as `0,1`."""

    name = "indices"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, ...]:
        """Split the names."""
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in str(value).split(","))
        if not all(names):
            self.fail(f"{value!r} names a GPU that has no name; write them as 0,1", parameter, context)
        return names


class ModelRate(click.ParamType[tuple[str, dict[str, float]]]):
    """`MODEL=REQUESTS` or `MODEL=REQUESTS/TOKENS`: a model's rate limit, a minute; 0 requests are no limit of requests."""

    name = "model=requests/tokens"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, dict[str, float]]:
        """Parse a model's name and limits."""
        match = re.fullmatch(r"(.+)=(\d+(?:\.\d+)?)(?:/(\d+))?", str(value).strip())
        limits = {"requests": float(match[2]), "tokens": float(match[3] or 0)} if match else {}
        limits = {what: limit for what, limit in limits.items() if limit > 0}
        if match is None or not limits:
            self.fail(f"{value!r} is no rate limit; write it as openai/gpt-4o=500/200000, requests and tokens a minute", parameter, context)
        return match[1], limits


class KeyValue(click.ParamType[tuple[str, JsonValue]]):
    """`KEY=VALUE`; the value is parsed as JSON if it is valid JSON, else it is text."""

    name = "key=value"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, JsonValue]:
        """Parse a pair; dashes in the key become underscores."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key:
            self.fail(f"{value!r} is not of the form KEY=VALUE", parameter, context)
        try:
            return key.replace("-", "_"), json.loads(text)
        except ValueError:
            return key.replace("-", "_"), text
