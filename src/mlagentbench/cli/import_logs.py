"""The command `mlab import`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from mlagentbench.cli.options import log_directory_option
from mlagentbench.cli.output.summary import as_json
from mlagentbench.original.files import path_text
from mlagentbench.original.write import ImportedRun, import_logs
from mlagentbench.report.console import Item, Listing, command_console, unbroken
from mlagentbench.report.formatting import plural, quantity, visible
from mlagentbench.report.wording import FLAGS

FAILED = 3
LONGEST_SHOWN = 200
"""Characters of a folder's path that are shown; the middle of a longer one is left out."""


@click.command("import")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@log_directory_option
@click.option("--grade/--no-grade", default=True, show_default=True, help="Grade what can be graded here; nothing is fetched for it.")
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a run, and nothing else, on standard output.")
def import_runs(folder: Path, log_directory: Path, grade: bool, as_lines: bool) -> int:
    """Import logs of the original MLAgentBench.

    DIR is the folder of one run, or one above several. Each becomes a run of the log directory and an .eval log beside it, so that mlab
    report, show and view work on it. Importing again changes nothing, unless a log has changed.

    If a log cannot be imported, the others are imported all the same, it is named at the end, and the exit status is 3.
    """
    console = command_console(stderr=as_lines)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("importing", total=None)
        imported = import_logs(
            folder, log_directory, grade=grade, on_imported=lambda number, total, _: progress.update(bar, completed=number, total=total)
        )
    if as_lines:
        for each in imported:
            click.echo(_line(each))
        _print_failed(console, imported, folder)
    else:
        _print(console, imported, folder, log_directory)
    return FAILED if any(each.run is None for each in imported) else 0


def _line(imported: ImportedRun) -> str:
    fields = {"source": path_text(imported.logs), "state": imported.state}
    if imported.run is None:
        return json.dumps({**fields, "reason": imported.reason})
    more = {"actions": imported.actions, "all_steps": len(imported.run.steps), "files": imported.files}
    usage = imported.run.usage
    more |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return json.dumps({**json.loads(as_json(imported.run.directory)), **fields, **more, "problems": imported.run.problems})


def _print(console: Console, imported: Sequence[ImportedRun], folder: Path, log_directory: Path) -> None:
    console.print(_listing([each for each in imported if each.run is not None], folder), crop=False)
    for each in imported:
        for problem in each.run.problems if each.run else ():
            console.print(Text.assemble((f"{_shown(each, folder)}  ", "dim"), (visible(problem), "yellow")), soft_wrap=True)
    _print_failed(console, imported, folder)
    reasons = Counter(reason for each in imported if (reason := _ungraded(each)))
    for reason, count in reasons.most_common():
        console.print(Text(f"{plural(count, 'run')} not graded: {visible(reason)}", style="dim"), soft_wrap=True)
    states = Counter(each.state for each in imported)
    console.print(Text(f"{FLAGS['imported'].title}: {FLAGS['imported'].meaning}", style="dim"), soft_wrap=True)
    console.print(
        Text(f"{plural(len(imported), 'log')}: " + ", ".join(f"{count} {state}" for state, count in states.items()), style="bold")
    )
    console.print("To look at them:")
    unbroken(console, ("", f"mlab report {log_directory}"), ("", f"mlab view {log_directory}"))


def _print_failed(console: Console, imported: Sequence[ImportedRun], folder: Path) -> None:
    for each in imported:
        if each.run is None:
            console.print(Text(f"{_shown(each, folder)}  not imported: {visible(each.reason)}", style="red"), soft_wrap=True)


def _ungraded(imported: ImportedRun) -> str:
    result = imported.run.result if imported.run else None
    return (result.outcome.reason or "") if result and result.outcome.verdict == "ungraded" else ""


def _listing(imported: Sequence[ImportedRun], folder: Path) -> Listing:
    scored = any(each.run and each.run.score is not None for each in imported)
    items = []
    for each in imported:
        run = each.run
        assert run is not None
        score = quantity(run.score, run.info.unit) if run.score is not None else "-"
        cells = (
            str(len(run.steps)),
            str(each.actions),
            f"{run.usage.input_tokens:,}",
            f"{run.usage.output_tokens:,}",
            f"{run.seconds:,.0f} s",
            str(each.files),
            str(len(run.problems)) if run.problems else "-",
            *((score,) if scored else ()),
        )
        items.append(Item(_shown(each, folder), cells, "dim" if each.state == "there already" else ""))
    headings = ("steps>", "actions>", "tokens in>", "out>", "time>", "files>", "problems>", *(("score>",) if scored else ()))
    return Listing("log", headings, items)


def _shown(imported: ImportedRun, folder: Path) -> str:
    path = imported.logs.resolve()
    inside = path.relative_to(folder.resolve()) if path.is_relative_to(folder.resolve()) else path
    shown = visible(path_text(Path(path.name) if inside == Path() else inside))
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[: LONGEST_SHOWN // 2]}…{shown[-LONGEST_SHOWN // 2 :]}"
