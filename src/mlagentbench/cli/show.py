"""`mlab show`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from mlagentbench.errors import UsageError
from mlagentbench.records import Step
from mlagentbench.report.text import duration, plural, size, tokens, visible
from mlagentbench.report.words import STATUSES, headline, outcome_words
from mlagentbench.results.load import Run, load

CHANGE_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--step", "number", type=click.IntRange(1), help="Show this step whole.")
@click.option("--diff", is_flag=True, help="Show what changed in the files, too.")
@click.option("--calls", is_flag=True, help="Show the prompts and raw replies of the step, too.")
def show(run: Path, number: int | None, diff: bool, calls: bool) -> None:
    """Show a run, or one step of it.

    RUN is a run's directory.
    """
    if not (run / "run.json").is_file():
        raise UsageError(f"{run} is no run's directory; name one of those in it, such as {next(run.glob('*/run.json'), run / 'a-run').parent}")
    (loaded,) = load(run)
    console = Console()
    steps = {step.number: step for step in loaded.steps}
    if number is None:
        console.print(Text(f"{loaded.info.task} ({loaded.info.variant}) by {loaded.info.agent} with {loaded.info.models['agent']}", style="dim"))
        console.print(Text(headline(loaded.info, loaded.result), style="bold"))
        console.print(Text(outcome_words(loaded.result)))
        for step in loaded.steps:
            _print_step(console, loaded, step, whole=False, diff=diff, calls=calls)
    elif number not in steps:
        raise UsageError(f"{loaded.name} has {plural(len(steps), 'step')}, and no step {number}")
    else:
        _print_step(console, loaded, steps[number], whole=True, diff=diff, calls=calls)


def _print_step(console: Console, run: Run, step: Step, *, whole: bool, diff: bool, calls: bool) -> None:
    scores = {score.step: score for score in run.scores}
    title = Text.assemble(
        (f"\n{step.number:>3}  ", "dim"),
        (step.action.name, "bold"),
        (f"  {STATUSES[step.status]}", "green" if step.status == "ok" else "red"),
        (f"  {duration(step.seconds)}, {tokens(step.usage.tokens)} tokens", "dim"),
    )
    score = scores.get(step.number)
    if score is not None:
        title.append(f"  score {score.value:.6g}" if score.value is not None else "  no valid score", style="cyan")
    console.print(title)
    if whole:
        for entry, text in step.entries.items():
            console.print(Text.assemble((f"{entry}: ", "bold"), visible(text)))
    elif "Thought" in step.entries:
        console.print(Text(f"     {visible(step.entries['Thought'])}", style="italic"), overflow="ellipsis", no_wrap=True)
    if whole:
        console.print(Syntax(visible(json.dumps(dict(step.action.arguments), indent=2, ensure_ascii=False)), "json", background_color="default"))
        console.print(Text(visible(step.observation)))
    if diff:
        _print_changes(console, run, step)
    if calls:
        for call in run.calls(step.number):
            console.print(Text(f"--- {call.role} ({call.purpose}), {call.model}: the prompt", style="bold magenta"))
            console.print(Text(visible(call.prompt)))
            console.print(Text("--- the reply" + (f", which was sent back: {call.rejected}" if call.rejected else ""), style="bold magenta"))
            console.print(Text(visible(call.reply)))


def _print_changes(console: Console, run: Run, step: Step) -> None:
    changes = run.changes(step.number)
    if changes is None:
        console.print(Text("     (its snapshot is missing)", style="red"))
    for change in changes or ():
        console.print(Text(f"     {change.change}: {visible(change.path)} ({size(change.size_after or 0)})", style="bold"))
        for line in visible(change.text or "").splitlines():
            console.print(Text(f"     {line}", style=CHANGE_STYLES.get(line[:1], "")))
