"""The command `mlab grade`."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import click
from pydantic import JsonValue
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from mlagentbench.cli.options import logs_argument
from mlagentbench.cli.output.summary import as_json
from mlagentbench.errors import RunNotFound
from mlagentbench.report.console import Item, Listing, command_console
from mlagentbench.report.formatting import estimate, plural, visible
from mlagentbench.report.wording import VERDICTS
from mlagentbench.results.load import scan
from mlagentbench.rundir.directory import find_runs
from mlagentbench.runner.regrade import Regraded, regrade_all
from mlagentbench.util import interrupts


@click.command()
@logs_argument
@click.option("--every-step", is_flag=True, help="Score the submission after every step, too.")
@click.option("--again", is_flag=True, help="Grade also submissions that were graded before and have not changed since, nor their task.")
@click.option("--parallel", type=click.IntRange(1), help="How many runs at once; by default one a core.")
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a run, and nothing else, on standard output.")
def grade(logs: Path, every_step: bool, again: bool, parallel: int | None, as_lines: bool) -> int:
    """Grade finished runs again, from their snapshots.

    LOGS is a log directory, or one run: its directory, or its id in runs or the beginning of one. A submission that was graded before, in
    any run, is not graded again, but a timed one is always timed anew. The exit status is 3 if a run could not be graded, such as one whose
    task is gone; such a run keeps its result.
    """
    found = find_runs(logs)
    finished = [directory for directory in found if directory.has_result]
    console = command_console(stderr=as_lines)
    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("grading", total=len(finished), last="")

        def on_done(regraded: Regraded) -> None:
            progress.update(bar, advance=1, last=escape(regraded.directory.name))

        regraded = interrupts.run(regrade_all(finished, every_step=every_step, again=again, parallel=parallel, on_done=on_done))
    if as_lines:
        for each in regraded:
            click.echo(json.dumps(_facts(each, every_step)))
    elif any(each.after for each in regraded):
        console.print(_listing(regraded, every_step), crop=False)
    for each in regraded:
        if each.after is None:
            console.print(Text(f"{each.directory.name} was not graded: {visible(each.reason)}", style="red"))
    reasons = {each.reason for each in regraded}
    for line in scan(logs, only=found).damage:
        if line not in reasons:
            console.print(Text(visible(line), style="red"))
    if len(found) > len(finished):
        console.print(
            Text(f"{plural(len(found) - len(finished), 'run')} without a result left out: mlab resume goes on with one", style="yellow")
        )
    return 3 if any(each.after is None for each in regraded) else 0


def _facts(regraded: Regraded, every_step: bool) -> dict[str, JsonValue]:
    """Return what `mlab run --json` prints for a run, and the result of grading it again."""
    before = regraded.before
    fields: dict[str, JsonValue] = {"run": regraded.directory.name}
    if before is not None:
        with suppress(RunNotFound):  # the run cannot be read, which is why it was not graded
            fields = json.loads(as_json(regraded.directory))
    fields["graded"] = regraded.after is not None
    fields["not_graded"] = regraded.reason or None
    fields["score_before"] = before.score.value if before and before.score else None
    fields["verdict_before"] = before.outcome.verdict if before else None
    if every_step and regraded.after is not None:
        fields["step_scores"] = [score.model_dump(mode="json") for score in regraded.after.step_scores]
    return fields


def _listing(regraded: list[Regraded], every_step: bool) -> Listing:
    items = []
    for each in regraded:
        if each.after is None or each.before is None:
            continue
        unit, steps = each.directory.info.unit, each.after.step_scores
        scores = (result.score for result in (each.before, each.after))
        before, after = (estimate(score.value, score.standard_error, unit) if score else "-" for score in scores)
        verdicts = [VERDICTS[result.outcome.verdict] for result in (each.before, each.after)]
        scored = [f"{sum(score.value is not None for score in steps)} of {len(steps)}"] * every_step
        items.append(Item(each.directory.name, (before, after, *scored, " → ".join(dict.fromkeys(verdicts)))))
    return Listing("run", ("before>", "now>", *["steps>"] * every_step, "verdict"), items)
