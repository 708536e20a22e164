"""The commands `mlab report` and `mlab view`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click
from rich.padding import Padding
from rich.text import Text

from mlagentbench.cli.options import logs_argument
from mlagentbench.cli.output.page import OVERVIEW, drawing, write_page
from mlagentbench.errors import ReportFailed, UsageError
from mlagentbench.report.console import INDENT, command_console, unbroken
from mlagentbench.report.experiment import FEW, Experiment
from mlagentbench.report.formatting import plural, visible
from mlagentbench.report.tables.build import tables
from mlagentbench.report.tables.curves import curves
from mlagentbench.report.tables.export import FORMATS, Format, report_object, write_tables
from mlagentbench.report.tables.model import Table
from mlagentbench.report.tables.terminal import shown
from mlagentbench.report.wording import headline
from mlagentbench.results.load import Loaded, Run, scan
from mlagentbench.rundir.directory import find_runs

T = TypeVar("T")


class Cutoff(click.ParamType[tuple[str, datetime.date]]):
    """`MODEL=YYYY-MM-DD`: the knowledge cutoff of a model."""

    name = "model=date"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, datetime.date]:
        """Parse a pair of a model and a date."""
        if isinstance(value, tuple):
            return value
        model, _, day = str(value).rpartition("=")
        try:
            return model, datetime.date.fromisoformat(day)
        except ValueError:
            self.fail(f"{value!r} is not of the form MODEL=YYYY-MM-DD", parameter, context)


@click.command()
@logs_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The overview's file; by default report.html in LOGS."
)
@click.option("--no-page", is_flag=True, help="Leave the page out, which takes longest.")
@click.option(
    "--tables", "folder", type=click.Path(path_type=Path, file_okay=False), help="Write every table into this folder, a file each."
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(FORMATS),
    help="Of the tables; can be given again. csv (the default), parquet and json have raw values, and all runs and steps too.",
)
@click.option("--figures", type=click.Path(path_type=Path, file_okay=False), help="Write every chart here, as SVG, PDF and PNG.")
@click.option("--cutoff", "given", multiple=True, type=Cutoff(), metavar="MODEL=YYYY-MM-DD", help="The last day that a model knows of.")
@click.option(
    "--compare", multiple=True, metavar="A,B", help="Compare these two agents or models only; can be given again. By default every pair."
)
@click.option("--json", "as_json", is_flag=True, help="Print all tables and runs as one JSON object.")
def report(
    logs: Path,
    output: Path | None,
    no_page: bool,
    folder: Path | None,
    formats: tuple[Format, ...],
    figures: Path | None,
    given: tuple[tuple[str, datetime.date], ...],
    compare: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare runs: tables here, and pages to open in a browser.

    If the page or a figure cannot be made, the rest is printed all the same, and the exit status is 3.
    """
    if no_page and output is not None:
        raise UsageError("--no-page and --output exclude each other; leave one out")
    if formats and folder is None:
        raise UsageError("--format is of tables; say where to write them with --tables DIR")
    loaded = scan(logs)
    experiment = Experiment.of(loaded.runs, compare)
    found = tables(experiment, _cutoffs(experiment, dict(given)))
    # Curves are for files: they take a while, and a terminal has no room for them.
    every = [*found, *curves(experiment)] if folder is not None or as_json else found
    faults: list[ReportFailed] = []
    if not as_json:
        _print(experiment, found, loaded)
    if folder is not None:
        _write(folder, experiment, every, formats or ("csv",))
        if not as_json:
            click.echo(f"tables  {folder}")
    drawn = _unless_failed(faults, lambda: _draw(figures, loaded.runs, compare)) if figures is not None else None
    if drawn is not None and not as_json:
        click.echo(f"figures {figures}" if drawn else "no figures: no chart would say anything")
    page = None if no_page else _unless_failed(faults, lambda: write_page(loaded, output or logs / OVERVIEW, compare))
    if page is not None and not as_json:
        click.echo(f"page    {page}")
    if as_json:
        written = {
            "page": None if page is None else str(page),
            **report_object(experiment, every, loaded.damage),
        }
        click.echo(json.dumps(written, indent=1))
    for fault in faults:
        raise fault


def _unless_failed(faults: list[ReportFailed], make: Callable[[], T]) -> T | None:
    """Return the result of `make`; on failure add the error to `faults`, for after the rest is printed, and return None."""
    try:
        return make()
    except ReportFailed as fault:
        faults.append(fault)
        return None


def _write(folder: Path, experiment: Experiment, found: Iterable[Table], formats: tuple[Format, ...]) -> None:
    from mlagentbench.results.frames import runs_frame, steps_frame

    write_tables(folder, found, {"runs": runs_frame(experiment.runs), "steps": steps_frame(experiment.runs)}, formats)


def _draw(folder: Path, runs: Sequence[Run], compare: Sequence[str]) -> list[Path]:
    with drawing("the figures"):
        # Imported here, since the drawing library takes a second to import.
        from mlagentbench.report.charts.figures import write_figures

        return write_figures(runs, folder, compare)


def _print(experiment: Experiment, found: Iterable[Table], loaded: Loaded) -> None:
    console = command_console()
    columns, tasks, runs = len(experiment.columns), len(experiment.tasks), len(experiment.runs)
    opening = f"{plural(runs, 'run')} of {plural(tasks, 'task')} by {plural(columns, 'agent')}; {experiment.counted:,} counted"
    console.print(Text(opening, style="bold"))
    if runs <= FEW:
        # Success rates of so few runs mean nothing.
        for run in experiment.runs:
            unbroken(console, ("", run.name))
            console.print(
                Padding(Text(visible(headline(run.info, run.result, damaged=run.result_is_damaged))), (0, 0, 0, INDENT), expand=False)
            )
    else:
        for table in found:
            console.print()
            for part in shown(table, console.width):
                console.print(part, crop=False)
    console.print()
    for notice in experiment.notices():
        console.print(Text.assemble((f"{visible(notice.title)}: ", "bold yellow"), (visible(notice.text), "yellow")))
    for line in loaded.damage:
        console.print(Text(visible(line), style="red"))


def _cutoffs(experiment: Experiment, given: Mapping[str, datetime.date]) -> dict[str, datetime.date | None]:
    """Return the knowledge cutoff of each model: as given, or as its maker states it; None if that is unknown.

    Raises:
        UsageError: a cutoff is given for a model without runs.
    """
    cells = [cell for by_task in experiment.columns.values() for cell in by_task.values()]
    models = {cell.conditions.model for cell in cells}
    for model in given.keys() - models:
        raise UsageError(f"no run is by the model {model!r}, of which a cutoff is given; there are {', '.join(sorted(models))}")
    asked = {model for model in models - given.keys() if not model.startswith(("scripted/", "none/"))}
    found: dict[str, datetime.date | None] = {**given}
    if asked and any(cell.published for cell in cells):
        # Imported here, since Inspect takes seconds to import.
        from mlagentbench.engine.models.model import knowledge_cutoff

        found |= {model: knowledge_cutoff(model) for model in asked}
    return found


@click.command()
@logs_argument
@click.option(
    "--port", default=7575, show_default=True, type=click.IntRange(1, 65535), help="Where the viewer listens, on this machine only."
)
def view(logs: Path, port: int) -> None:
    """Open Inspect's viewer on a log directory."""
    find_runs(logs)
    # Imported here, since Inspect takes seconds to import.
    from mlagentbench.engine.viewer import serve

    serve(logs, port)
