"""`mlab show`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from mlagentbench.errors import UsageError
from mlagentbench.records import Step
from mlagentbench.report.text import duration, plural, quantity, size, tokens, visible
from mlagentbench.report.words import STATUSES, headline, outcome_words
from mlagentbench.results.load import Run, load

FEW_FILES = 20
"""Files that are listed unless all are asked for."""
CHANGE_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--step", "number", type=click.IntRange(1), help="Show this step whole.")
@click.option("--diff", is_flag=True, help="Show what changed in the files, too.")
@click.option("--files", is_flag=True, help="Show all files as they were after the step, too.")
@click.option("--calls", is_flag=True, help="Show the prompts and raw replies of the step, too.")
def show(run: Path, number: int | None, diff: bool, files: bool, calls: bool) -> None:
    """Show a run, or one step of it.

    RUN is a run's directory.
    """
    if not (run / "run.json").is_file():
        example = next(run.glob("*/run.json"), run / "a-run" / "run.json").parent
        raise UsageError(f"{run} is no run's directory; name one, such as {example}")
    (loaded,) = load(run)
    console = Console()
    steps = {step.number: step for step in loaded.steps}
    if number is not None and number not in steps:
        raise UsageError(f"{loaded.name} has {plural(len(steps), 'step')}, and no step {number}")
    if number is None:
        _print_run(console, loaded)
    for step in loaded.steps if number is None else [steps[number]]:
        _print_step(console, loaded, step, whole=number is not None)
        if diff:
            _print_changes(console, loaded, step)
        if files or number is not None:
            _print_files(console, loaded, step, most=None if files else FEW_FILES)
        if calls:
            _print_calls(console, loaded, step)


def _print_run(console: Console, run: Run) -> None:
    info = run.info
    console.print(Text(f"{info.task} ({info.variant}) by {info.agent} with {info.models['agent']}", style="dim"))
    console.print(Text(headline(info, run.result), style="bold"))
    console.print(Text(outcome_words(run.result)))


def _print_step(console: Console, run: Run, step: Step, *, whole: bool) -> None:
    title = Text.assemble(
        (f"\n{step.number:>3}  ", "dim"),
        (step.action.name, "bold"),
        (f"  {STATUSES[step.status]}", "green" if step.status == "ok" else "red"),
        (f"  {duration(step.seconds)}, {tokens(step.usage.tokens)} tokens", "dim"),
    )
    for score in run.scores:
        if score.step == step.number:
            title.append(f"  {quantity(score.value, run.info.unit)}" if score.value is not None else "  no valid score", style="cyan")
    if lost := run.lost(step.number):
        title.append(f"  let go: {visible(', '.join(lost))}", style="dim")
    console.print(title)
    if not whole:
        console.print(Text(f"     {visible(step.entries.get('Thought', ''))}", style="italic"), overflow="ellipsis", no_wrap=True)
        return
    for entry, text in step.entries.items():
        console.print(Text.assemble((f"{entry}: ", "bold"), visible(text)))
    arguments = json.dumps(dict(step.action.arguments), indent=2, ensure_ascii=False)
    console.print(Text.assemble(("Arguments: ", "bold"), visible(arguments)))
    console.print(Text.assemble(("Observation:\n", "bold"), visible(step.observation)))


def _print_changes(console: Console, run: Run, step: Step) -> None:
    changes = run.changes(step.number)
    if changes is None:
        console.print(Text("     (its snapshot is missing)", style="red"))
    for change in changes or ():
        console.print(Text(f"     {change.change}: {visible(change.path)} ({size(change.size_after or 0)})", style="bold"))
        for line in visible(change.text or "").splitlines():
            console.print(Text(f"     {line}", style=CHANGE_STYLES.get(line[:1], "")))


def _print_files(console: Console, run: Run, step: Step, most: int | None) -> None:
    entries = run.files(step.number)
    if entries is None:
        return
    lost = run.lost(step.number)
    console.print(Text(f"Files after the step: {len(entries)}", style="bold"))
    for path, entry in sorted(entries.items())[:most]:
        what = size(entry.size) if entry.kind == "file" else f"{entry.kind} to {entry.target}" if entry.target else entry.kind
        note = ", let go" if path in lost else f", {entry.note}" if entry.note else ""
        console.print(Text(f"     {visible(path)}  {visible(what + note)}"))
    if most is not None and len(entries) > most:
        console.print(Text(f"     and {len(entries) - most} more: --files", style="dim"))


def _print_calls(console: Console, run: Run, step: Step) -> None:
    for call in run.calls(step.number):
        console.print(Text(f"--- {call.model} as {call.role}, for {call.purpose}: the prompt", style="bold magenta"))
        console.print(Text(visible(call.prompt)))
        console.print(Text("--- its reply" + (f", sent back: {visible(call.rejected)}" if call.rejected else ""), style="bold magenta"))
        console.print(Text(visible(call.reply)))
