"""The command `mlab verify`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from pydantic import JsonValue
from rich.console import Console
from rich.progress import track
from rich.text import Text

from mlagentbench.cli.options import logs_argument
from mlagentbench.engine.sample_metadata import logged_heads
from mlagentbench.errors import RunNotFound
from mlagentbench.grading.fork_server import fork_server
from mlagentbench.report.console import command_console
from mlagentbench.report.formatting import visible
from mlagentbench.rundir.directory import RunDirectory, find_runs
from mlagentbench.rundir.provenance import head_of
from mlagentbench.runner.verify import LoggedHead, Verification, verify
from mlagentbench.util import interrupts

DIFFERS, UNCHECKED = 1, 3


@click.command("verify")
@logs_argument
@click.option("--grade/--no-grade", default=True, help="Grade the submission again, and compare its score.")
@click.option("--every-step", is_flag=True, help="Grade the submission of each step again too, and compare their scores.")
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a run, and nothing else, on standard output.")
def verify_runs(logs: Path, grade: bool, every_step: bool, as_lines: bool) -> int:
    """Check that the files of runs are what they were, and that their submissions still have their scores.

    LOGS is a log directory, or one run: its directory, or its id in runs or the beginning of one. Nothing is changed. The exit status is 1
    if something differs, and 3 if nothing does but something could not be checked. docs/audit.md says what is compared.
    """
    runs = find_runs(logs)
    heads = {folder: logged_heads(folder) for folder in {directory.path.parent for directory in runs}}
    console = command_console(stderr=as_lines)
    found = interrupts.run(_verify(runs, heads, console, grade=grade, every_step=every_step))
    for each in found:
        if as_lines:
            click.echo(json.dumps(_fields(each)))
        else:
            _print(each, console)
    return DIFFERS if any(each.differences for each in found) else UNCHECKED if any(each.unchecked for each in found) else 0


async def _verify(
    runs: list[RunDirectory], heads: dict[Path, dict[str, list[LoggedHead]]], console: Console, *, grade: bool, every_step: bool
) -> list[Verification]:
    # One after another, so that a timed submission is timed alone.
    async with fork_server() as forks:
        return [
            await verify(directory, heads[directory.path.parent].get(_name(directory), ()), grade=grade, every_step=every_step, forks=forks)
            for directory in track(runs, "verifying", console=console, transient=True)
        ]


def _name(directory: RunDirectory) -> str:
    """Return a run's name, which its directory need not have if it was copied."""
    try:
        return directory.info.run
    except RunNotFound:
        return directory.name


def _fields(found: Verification) -> dict[str, JsonValue]:
    return {
        "run": found.directory.name,
        "whole": not found.differences and not found.unchecked,
        "head": head_of(found.directory),
        "differences": [difference._asdict() for difference in found.differences],
        "unchecked": list(found.unchecked),
        "notes": list(found.notes),
        "score": found.score,
        "score_again": found.score_again,
    }


def _print(found: Verification, console: Console) -> None:
    verdict, style = ("differs", "red") if found.differences else ("not verified", "yellow") if found.unchecked else ("verified", "green")
    console.print(Text.assemble((found.directory.name, "bold"), "  ", (verdict, style)), soft_wrap=True)
    lines = [(f"{difference.file}: {difference.problem}", "red") for difference in found.differences]
    lines += [(line, "yellow") for line in found.unchecked] + [(line, "dim") for line in found.notes]
    for line, color in lines:
        console.print(Text(f"    {visible(line)}", style=color), soft_wrap=True)
