"""The commands `mlab experiment run`, `status`, `cancel` and `retry`."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from mlagentbench.cli.lazy import LazyGroup
from mlagentbench.cli.main import FAILED, INTERRUPTED
from mlagentbench.cli.options import Command, KeyValue, Size, task_path_option
from mlagentbench.cli.output.matrix_table import (
    MatrixDisplay,
    change_lines,
    driven_lines,
    expectation,
    expectation_table,
    matrix_table,
    summary,
)
from mlagentbench.engine.models.providers import check_models
from mlagentbench.engine.run import UNSANDBOXED
from mlagentbench.errors import UsageError
from mlagentbench.experiments import driver
from mlagentbench.experiments.estimate import check_budget, estimate, total
from mlagentbench.experiments.file import read_experiment, ready_made
from mlagentbench.experiments.matrix import Matrix, expand
from mlagentbench.experiments.state import UNCOMMITTED, ExecutorName, ExperimentState, Settings
from mlagentbench.experiments.status import read_status
from mlagentbench.report.console import Definitions, command_console
from mlagentbench.rundir.directory import prepare_log_directory
from mlagentbench.runner.preflight import preflight
from mlagentbench.util.machine import cores

RUNS = Path("runs")
EVERY = 2.0
"""Seconds between two looks at the runs' directories."""


@click.group("experiment", cls=LazyGroup)
def experiment() -> None:
    """Run a matrix of tasks, agents and models, here or on a cluster.

    FILE is a TOML file (docs/experiments.md), or the name of one that comes with the package (mlab experiment list). Its runs are kept in
    --log-dir, from which mlab report reads them.
    """


class ExperimentName(click.Path):
    """An experiment's file, or the name of one that comes with the package."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True, dir_okay=False)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the file's path."""
        known = ready_made()
        if str(value) in known and not Path(value).exists():
            return known[str(value)]
        if not Path(value).exists() and not Path(value).suffix:
            self.fail(f"there is no file {value}, and no experiment of that name; there are: {', '.join(known)}", parameter, context)
        return super().convert(value, parameter, context)


@experiment.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_all(as_json: bool) -> None:
    """List the experiments that come with the package, each with the question that it answers."""
    found = [read_experiment(path) for path in ready_made().values()]
    if as_json:
        facts = [{"name": each.name, "about": each.about, "runs": each.runs, "file": str(each.path)} for each in found]
        click.echo(json.dumps(facts, indent=1))
        return
    console = command_console()
    console.print(Definitions((each.name, Text(f"{each.about} {each.runs:,} runs a model.")) for each in found), crop=False)


def of_experiment(command: Command) -> Command:
    """Add the argument FILE and what finds its runs to a command, which gets `matrix` and `state`."""

    @functools.wraps(command)
    def expanded(
        file: Path,
        log_directory: Path | None,
        pairs: Sequence[tuple[str, JsonValue]],
        models: Sequence[str],
        runs: int | None,
        task_paths: Sequence[Path],
        **options: object,
    ) -> object:
        given = {**dict(pairs), **({"models": list(models)} if models else {}), **({"runs": runs} if runs else {})}
        read = read_experiment(file, given)
        directory = (log_directory or RUNS / read.name).resolve()
        return command(matrix=expand(read, task_paths), state=ExperimentState(directory, read.name), **options)

    for option in (
        click.option(
            "--set",
            "pairs",
            multiple=True,
            type=KeyValue(),
            metavar="KEY=VALUE",
            help="Another value for a key in all groups of the file, as JSON, such as --set variant=mini or --set 'limits={\"steps\":5}'.",
        ),
        click.option(
            "--log-dir",
            "log_directory",
            type=click.Path(path_type=Path, file_okay=False),
            help="Where its runs are kept; by default runs/NAME.",
        ),
        task_path_option,
        click.option("--runs", type=click.IntRange(1), help="How often each agent with each model does each task, whatever the file says."),
        click.option("--model", "models", multiple=True, help="A model, in the place of those of the file; can be given again."),
        click.argument("file", type=ExperimentName()),
    ):
        expanded = option(expanded)
    return expanded


def on_executor(command: Command) -> Command:
    """Add the options that say where runs are carried out to a command, which gets `settings`."""

    @functools.wraps(command)
    def chosen(
        executor: ExecutorName,
        gpus: int,
        parallel: int | None,
        batch: int | None,
        cpus: int,
        memory_mb: int | None,
        slurm_options: tuple[str, ...],
        **options: object,
    ) -> object:
        settings = Settings(
            executor=executor,
            gpus=gpus,
            parallel=parallel,
            batch=batch,
            cpus=cpus,
            mem_gb=(memory_mb or 0) / 1024,
            slurm_options=slurm_options,
        )
        return command(settings=settings, **options)

    positive = click.IntRange(1)
    for option in (
        click.option(
            "--slurm-option",
            "slurm_options",
            multiple=True,
            metavar="OPTION",
            help="On Slurm: an option of sbatch, such as --partition=gpu; can be given again.",
        ),
        click.option("--memory", "memory_mb", type=Size(), help="On a cluster: memory for a job, such as 16g."),
        click.option("--cpus", type=positive, default=1, show_default=True, help="On a cluster: cores for a job, and its runs at once."),
        click.option("--batch", type=positive, help="The most runs that share a process; by default all of them here, 16 on a cluster."),
        click.option("--parallel", type=positive, help="Here: how many runs go on at once in a process; by default as many as fit."),
        click.option(
            "--gpus",
            type=click.IntRange(0),
            default=0,
            show_default=True,
            help="How many GPUs to use. Each run of a task that wants one has one to itself; with 0 it does without.",
        ),
        click.option(
            "--executor", type=click.Choice(get_args(ExecutorName)), default="local", show_default=True, help="Where jobs are started."
        ),
    ):
        chosen = option(chosen)
    return chosen


@experiment.command("run")
@of_experiment
@on_executor
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and what it is expected to take.")
def run_experiment(matrix: Matrix, state: ExperimentState, settings: Settings, dry_run: bool) -> int:
    """Do the runs of an experiment that are not done yet.

    Run it again after whatever ended it: what is done stays, what has begun goes on. The exit status is 0 when all runs are done, 130 after
    an interrupt or mlab experiment cancel, and 3 otherwise.
    """
    console = command_console()
    if dry_run:
        _announce(console, matrix, state, settings, table=True)
        return 0
    return _drive(console, matrix, state, settings, lambda name: True)


@experiment.command()
@of_experiment
@on_executor
@click.option(
    "--outcome",
    type=click.Choice(UNCOMMITTED),
    default="infrastructure",
    show_default=True,
    help="Which runs: those that a failure of the infrastructure ended, or those that were cancelled.",
)
def retry(matrix: Matrix, state: ExperimentState, settings: Settings, outcome: str) -> int:
    """Try those runs again that ended by no fault of the agent; they go on where they were.

    If another process drives the experiment, it does so when its jobs have ended; else this one does.
    """
    console = command_console()
    if state.driven and state.request("retry"):
        console.print("The process that drives the experiment was told to try them again.")
        return 0
    names = {name for name in matrix.names if (result := state.result(name)) is not None and result.outcome.ended == outcome}
    if not names:
        console.print(f"No run has ended as {outcome}.")
        return 0
    return _drive(console, matrix, state, settings, names.__contains__)


@experiment.command()
@of_experiment
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(matrix: Matrix, state: ExperimentState, as_json: bool) -> None:
    """Show the matrix with the outcomes so far; in a terminal, until nobody drives the experiment any more."""
    found = read_status(state, matrix)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=1))
        return
    console = command_console()
    with MatrixDisplay(console) as display:
        while found.driven and display.moving:
            display.show(found)
            time.sleep(EVERY)
            found = read_status(state, matrix)
    console.print(matrix_table(found), crop=False)
    console.print(Text(summary(found)), soft_wrap=True)


@experiment.command()
@of_experiment
def cancel(matrix: Matrix, state: ExperimentState) -> None:
    """End all runs that go on: each is graded as it stands, and goes on when the experiment is run again."""
    if state.matrix is None:
        raise UsageError(f"{state.log_directory} holds no experiment {matrix.name}; name its directory with --log-dir")
    told = driver.cancel(state, matrix)
    command_console().print("The process that drives the experiment was told to end it." if told else "Cancelled; no process drove it.")


def _drive(console: Console, matrix: Matrix, state: ExperimentState, settings: Settings, only: Callable[[str], bool]) -> int:
    prepare_log_directory(state.log_directory)
    state.create()
    with state.driving():
        _announce(console, matrix, state, settings)
        missing = [cell for cell in matrix.cells if any(only(name) and not state.committed(name) for name in cell.names)]
        # Checked here once, so that what cannot be done is said before anything is submitted, and data is prepared once.
        checked = preflight([cell.spec for cell in missing], state.log_directory, check_models=check_models, console=Console(stderr=True))
        if any(run.sandbox.isolation == "none" for run in checked):
            console.print(UNSANDBOXED, style="bold red", soft_wrap=True)
        state.write(matrix, settings)
        shown = 0.0
        with MatrixDisplay(console) as display:

            def watch() -> None:
                nonlocal shown
                if display.moving and time.monotonic() - shown >= EVERY:
                    display.show(read_status(state, matrix))
                    shown = time.monotonic()

            driven = driver.run_experiment(state, matrix, settings, only=only, watch=watch)
    found = read_status(state, matrix)
    console.print(matrix_table(found), crop=False)
    for line in (*driven_lines(driven), summary(found._replace(driven=True)), f"mlab report {state.log_directory}"):
        console.print(Text(line), soft_wrap=True)
    if state.requested("cancel"):
        return INTERRUPTED
    return FAILED if any(map(only, driven.missing)) else 0


def _announce(console: Console, matrix: Matrix, state: ExperimentState, settings: Settings, *, table: bool = False) -> None:
    check_budget(matrix)
    known = estimate(state, matrix.cells)
    if table:
        console.print(expectation_table(matrix, known), crop=False)
    at_once = settings.gpus if settings.gpus and all(cell.gpu for cell in matrix.cells) else settings.parallel or cores()
    left = sum(cell.spec.limits.time for cell in matrix.cells for name in cell.names if not state.committed(name))
    found = total(state, matrix.cells, known)
    for line in (*change_lines(driver.changes(state, matrix)), expectation(found, len(matrix.names), at_once, left)):
        console.print(Text(line), soft_wrap=True)
