"""`mlab grade`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from mlagentbench.cli.summary import as_json
from mlagentbench.report.text import plural, quantity, visible
from mlagentbench.report.words import VERDICTS
from mlagentbench.run.regrade import Regraded, regrade_all
from mlagentbench.store.run_directory import find_runs


@click.command()
@click.argument("logs", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("runs"))
@click.option("--every-step", is_flag=True, help="Score the submission after every step, too.")
@click.option("--again", is_flag=True, help="Grade also submissions that were graded before and have not changed since, nor their task.")
@click.option("--parallel", type=click.IntRange(1), help="How many runs at once; by default one a core.")
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a run, and nothing else, on standard output.")
def grade(logs: Path, every_step: bool, again: bool, parallel: int | None, as_lines: bool) -> int:
    """Grade finished runs again, from their snapshots.

    LOGS is a log directory, or one run's. A submission that was seen before is not graded twice, whoever left it. The exit status is 3 when
    a run could not be graded; it keeps the result that it had.
    """
    found = find_runs(logs)
    finished = [directory for directory in found if directory.result is not None]
    console = Console(stderr=as_lines)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("grading", total=len(finished))

        def tell(regraded: Regraded) -> None:
            progress.advance(bar)

        regraded = asyncio.run(regrade_all(finished, every_step=every_step, again=again, parallel=parallel, tell=tell))
    if as_lines:
        for each in regraded:
            click.echo(as_json(each.directory))
    else:
        console.print(_table(regraded))
    for each in regraded:
        if each.after is None:
            console.print(Text(f"{each.directory.name} was not graded: {visible(each.reason)}", style="red"))
    if len(found) > len(finished):
        console.print(
            Text(f"{plural(len(found) - len(finished), 'run')} without a result left out: mlab resume goes on with one", style="yellow")
        )
    return 3 if any(each.after is None for each in regraded) else 0


def _table(regraded: list[Regraded]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("run", no_wrap=True, overflow="ellipsis")
    table.add_column("score before", justify="right", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("verdict")
    for each in regraded:
        if each.after is None:
            continue
        unit = each.directory.info.unit
        before, after = (quantity(result.score.value, unit) if result.score else "-" for result in (each.before, each.after))
        verdicts = [VERDICTS[result.outcome.verdict] for result in (each.before, each.after)]
        table.add_row(each.directory.name, before, after, " → ".join(dict.fromkeys(verdicts)))
    return table
