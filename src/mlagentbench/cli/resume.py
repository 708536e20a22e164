"""The command `mlab resume`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from mlagentbench.cli.interactive import ask_person, end
from mlagentbench.cli.options import Duration, Size, run_argument
from mlagentbench.cli.output.summary import as_json
from mlagentbench.cli.run import carry_out, check_runs, print_results, status
from mlagentbench.engine.models.prices import price_of
from mlagentbench.engine.models.providers import check_model
from mlagentbench.report.console import command_console
from mlagentbench.report.formatting import visible
from mlagentbench.results.load import load_run
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.resume import resume as resumed
from mlagentbench.runner.resume import seal_if_killed


@click.command()
@run_argument
@click.option("--step", type=click.IntRange(0), help="Fork: a new run that goes on from this step (0 is the start).")
@click.option("--model", help="For a fork: another model than the run had, in all roles.")
@click.option("--steps", type=click.IntRange(1), help="The most steps in all, those before included.")
@click.option("--time", "seconds", type=Duration(), help="The most time in all, that before included.")
@click.option("--storage", type=Size(), help="The most that its snapshots take on disk, those before included.")
@click.option("--interactive", is_flag=True, help="Work with the agent: it asks you for help, and a session leaves its changes as a patch.")
@click.option("--json", "as_line", is_flag=True, help="Print one JSON object, and nothing else, on standard output.")
def resume(
    run: Path,
    step: int | None,
    model: str | None,
    steps: int | None,
    seconds: float | None,
    storage: int | None,
    interactive: bool,
    as_line: bool,
) -> int:
    """Continue a run, or fork a new one from a step.

    RUN is a run's id in --log-dir or the beginning of one, or a run's directory. Whatever ended the run, it continues after its last
    finished step, with its files, its agent's memory and what it has used of its limits; only the step in progress is lost.
    """
    if model is not None:
        check_model(model)  # before a fork is made
    known = price_of(model, {}) if model is not None else None
    prices = {model: known} if model is not None and known is not None else {}
    console = command_console(stderr=as_line)
    for line in load_run(RunDirectory(run)).damage:
        console.print(Text(visible(line), style="red"), soft_wrap=True)
    if step is None and _seal(RunDirectory(run), console):
        if as_line:
            click.echo(as_json(RunDirectory(run)))
        return 0
    with resumed(run, step, model=model, prices=prices, steps=steps, seconds=seconds, storage_mb=storage) as (spec, directory):
        ready = check_runs([spec], directory.path.parent, console, directory)
        evaluation, directories = carry_out(ready, console, ask=ask_person if interactive else None)
    if as_line:
        for directory in directories:
            click.echo(as_json(directory))
    else:
        print_results(console, directories, evaluation)
    if interactive and directories:
        end(directories[0], ready[0].task)
    return status(directories, evaluation)


def _seal(directory: RunDirectory, console: Console) -> bool:
    """Seal a run that was over when its process was killed, and say so; return whether it was needed."""
    with directory.lock():
        sealed = seal_if_killed(directory)
    if sealed:
        console.print(f"{directory.name} was over when its process was killed; it is sealed now, and can be verified", soft_wrap=True)
    return sealed
