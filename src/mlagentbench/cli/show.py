"""The command `mlab show`."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.text import Text

from mlagentbench.cli.main import FAILED, INTERRUPTED
from mlagentbench.cli.options import run_argument
from mlagentbench.errors import UsageError
from mlagentbench.records import Step
from mlagentbench.report import run_terminal
from mlagentbench.report.formatting import duration, plural, visible
from mlagentbench.report.run_json import run_object, step_object
from mlagentbench.report.step_view import shown_path
from mlagentbench.results.follow import follow
from mlagentbench.results.load import Run, load_run
from mlagentbench.rundir.directory import find_runs


class StepDetails(NamedTuple):
    """The details of each step that are shown beside it."""

    diff: bool
    files: bool
    calls: bool


@click.command()
@run_argument
@click.option("--step", "number", type=click.IntRange(1), help="Show this step whole.")
@click.option("--diff", is_flag=True, help="Show what changed in the files, too.")
@click.option("--files", is_flag=True, help="Show all files as they were after the step, too.")
@click.option("--calls", is_flag=True, help="Show the prompts and raw replies of each step, and those after the last, too.")
@click.option("-f", "--follow", "following", is_flag=True, help="Show each step of a run in progress as it is done, until the run is over.")
@click.option("--json", "as_json", is_flag=True, help="Print the run as one JSON object; with --follow one a step, and then the run's.")
def show(run: Path, number: int | None, diff: bool, files: bool, calls: bool, following: bool, as_json: bool) -> int:
    """Show a run, or one step of it.

    RUN is a run's id in --log-dir or the beginning of one, a run's directory, or a log directory that holds one run; with --follow, one
    that is in progress. The exit status of --follow is 3 when the run was stopped before it ended and no process works on it any more: it
    is not waited for.
    """
    loaded, more = _the_run(run, in_progress=following), StepDetails(diff, files, calls)
    if following:
        if number is not None:
            raise UsageError("--follow shows every step; leave --step out")
        return _follow(loaded, more, as_json)
    steps = [step for step in loaded.steps if number in (None, step.number)]
    if number is not None and not steps:
        raise UsageError(f"{loaded.name} has {plural(len(loaded.steps), 'step')}, and no step {number}")
    if as_json:
        click.echo(
            json.dumps(
                {**run_object(loaded, calls=calls), "steps": [step_object(loaded, step, **more._asdict()) for step in steps]}, indent=1
            )
        )
        return 0
    console = Console()
    if number is None:
        console.print(run_terminal.identity(loaded))
        console.print(run_terminal.outcome(loaded), crop=False)
        _print_headings(console)
    for step in steps:
        _print_step(console, loaded, step, more, whole=number is not None)
    if number is None:
        _print_calls_after_last(console, loaded, more)
    return 0


def _the_run(path: Path, in_progress: bool) -> Run:
    """Return the run at a path; of several, the only one in progress if `in_progress`.

    Raises:
        UsageError: there is more than one.
    """
    found = find_runs(path)
    going_on = [directory for directory in found if directory.held] if in_progress else []
    if len(found) > 1 and len(going_on) == 1:
        found = going_on
    if len(found) > 1:
        newest = shown_path((going_on or found)[-1].path)
        many = f"{len(going_on)} runs in progress" if going_on else plural(len(found), "run")
        raise UsageError(f"{path} holds {many}; name one, such as the newest: mlab show {newest}{' --follow' if in_progress else ''}")
    return load_run(found[0])


def _print_headings(console: Console) -> None:
    console.print()
    console.print(run_terminal.headings(console.width), no_wrap=True, crop=True)


def _print_step(console: Console, run: Run, step: Step, more: StepDetails, *, whole: bool) -> None:
    view = run_terminal.view_of(run, step, run_terminal.WHOLE if whole or more.diff else run_terminal.BRIEF)
    if not whole:
        console.print(run_terminal.step_lines(run, view, console.width))
    parts = list(run_terminal.step_whole(run, view)) if whole else []
    if more.diff:
        parts += run_terminal.changes(view)
    if more.files or whole:
        parts += run_terminal.files(run, step.number, most=None if more.files else run_terminal.FEW_FILES)
    if more.calls:
        parts += run_terminal.calls(run, step.number)
    for part in parts:
        # Lines are not wrapped here: a terminal may do so, and a pipe gets them as they were written.
        console.print(part, soft_wrap=True)


def _print_calls_after_last(console: Console, run: Run, more: StepDetails) -> None:
    for part in run_terminal.calls_after_last(run, whole=more.calls):
        console.print(part, soft_wrap=True)


def _follow(run: Run, more: StepDetails, as_json: bool) -> int:
    """Show a run while it goes on, and return the exit status. An interrupt ends this command, not the run."""
    console = Console()
    try:
        if as_json:
            for step in follow(run.directory):
                click.echo(json.dumps(step_object(run, step, **more._asdict())))
        else:
            console.print(run_terminal.identity(run))
            _print_headings(console)
            _follow_steps(console, run, more)
        run = load_run(run.directory)
        if as_json:
            click.echo(json.dumps(run_object(run, calls=more.calls)))
        else:
            _print_calls_after_last(console, run, more)
            console.print()
            console.print(run_terminal.outcome(run), crop=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0 if run.result else FAILED


def _follow_steps(console: Console, run: Run, more: StepDetails) -> None:
    moving = console.is_terminal and not console.is_dumb_terminal
    with console.status("") if moving else nullcontext() as status:
        done, since, ended = 0, time.time(), False

        def idle() -> None:
            assert status is not None
            status.update(_now(console, run, done, since, grading=ended))

        for step in follow(run.directory, idle=idle if moving else None):
            _print_step(console, run, step, more, whole=False)
            done, since, ended = step.number, step.started + step.seconds, step.action.name == "Final Answer"


def _now(console: Console, run: Run, done: int, since: float, *, grading: bool) -> Text:
    """Return a line about the step in progress: its duration so far, and the last line that its script printed."""
    if grading:
        return Text.assemble("grading ", (duration(max(0.0, time.time() - since)), "cyan"))
    output = run.directory.output_end(done + 1).rstrip().rsplit("\n", 1)[-1]
    text = Text.assemble(f"step {done + 1} of at most {run.info.spec.limits.steps} ", (duration(max(0.0, time.time() - since)), "cyan"))
    text.append(f"  {visible(output)}", style="dim")
    text.truncate(console.width - 3, overflow="ellipsis")
    return text
