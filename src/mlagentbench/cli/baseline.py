"""`mlab baseline`."""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from mlagentbench.cli.options import Indices, task_path_option
from mlagentbench.report.text import duration, plural, quantity, visible
from mlagentbench.report.words import SOURCES
from mlagentbench.run.baseline import RUNS, Measured, Place, StarterRun, measure
from mlagentbench.sandbox import isolation
from mlagentbench.tasks.catalogue import Task, find_task
from mlagentbench.tasks.spec import Variant


@click.command()
@click.argument("task_ids", metavar="TASK...", nargs=-1, required=True)
@click.option("--runs", default=RUNS, show_default=True, type=click.IntRange(1), help="How often each starter is run, with other seeds.")
@click.option("--variant", type=click.Choice(["mini", "full"]), default="full", show_default=True, help="The data.")
@click.option("--again", is_flag=True, help="Measure anew what was measured before.")
@click.option("--sandbox", type=click.Choice(isolation.CHOICES), default="auto", show_default=True, help="What isolates the scripts.")
@click.option("--python", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Their interpreter.")
@click.option("--gpu", "gpus", type=Indices(), default=(), help="The GPU of tasks that want one, by its index.")
@task_path_option
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a task, and nothing else, on standard output.")
def baseline(
    task_ids: Sequence[str],
    runs: int,
    variant: Variant,
    again: bool,
    sandbox: isolation.Choice,
    python: Path | None,
    gpus: tuple[str, ...],
    task_paths: Sequence[Path],
    as_lines: bool,
) -> None:
    """Measure the starter's own score and its spread.

    What is measured is kept, for this machine and this state of the task, and every later run is compared with it.
    """
    tasks = [find_task(task_id, task_paths) for task_id in dict.fromkeys(task_ids)]
    console = Console(stderr=as_lines)
    found: list[tuple[Task, Measured]] = []
    for task in tasks:
        place = Place(sandbox, python or Path(sys.executable), gpus if task.spec.gpu else ())
        with console.status(f"{task.id}: the starter") as status:

            def tell(number: int, run: StarterRun, task: Task = task) -> None:
                worth = quantity(run.score.value, task.spec.metric.unit) if run.score else visible(run.reason)
                console.print(f"[dim]{task.id}, run {number} of {runs}:[/] {worth} [dim]in {duration(run.execution.seconds)}")
                status.update(f"{task.id}: the starter, run {number + 1} of {runs}")

            measured = asyncio.run(measure(task, variant, place=place, runs=runs, again=again, tell=tell))
        found.append((task, measured))
        if as_lines:
            click.echo(measured.model_dump_json())
    if not as_lines:
        console.print(_table(found))


def _table(found: Sequence[tuple[Task, Measured]]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("task", "baseline", "spread", "runs", "a run", "from"):
        table.add_column(
            heading, justify="right" if heading in ("baseline", "spread", "runs", "a run") else "left", no_wrap=heading != "from"
        )
    for task, measured in found:
        unit, value = task.spec.metric.unit, measured.baseline
        failed = f", {plural(len(measured.failures), 'run')} failed" if measured.failures else ""
        table.add_row(
            task.id,
            quantity(value.value, unit),
            f"± {quantity(value.spread, unit, 2)}" if value.spread is not None else "-",
            str(len(value.values)),
            duration(statistics.median(measured.seconds)) if measured.seconds else "-",
            SOURCES[value.source] + failed,
        )
    return table
