"""The command `mlab baseline`."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from mlagentbench.cli.options import Indices, mini_seed_option, python_option, sandbox_option, task_path_option, variant_option
from mlagentbench.errors import GradingError, TaskError
from mlagentbench.grading.baseline import (
    CHEAP_SECONDS,
    FEW_RUNS,
    RUNS,
    MeasuredBaseline,
    ScriptSettings,
    StarterRun,
    measure,
    read_baseline,
)
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import Variant
from mlagentbench.report.console import Item, Listing, command_console
from mlagentbench.report.formatting import duration, plural, quantity, visible
from mlagentbench.report.wording import SOURCES
from mlagentbench.task.catalogue import Task, find_task
from mlagentbench.util import interrupts


@click.command()
@click.argument("task_ids", metavar="TASK...", nargs=-1, required=True)
@click.option(
    "--runs",
    type=click.IntRange(1),
    help="How often each starter is run, with other seeds, at least; runs that were measured before count. "
    f"By default {RUNS} times, or {FEW_RUNS} if a run takes longer than {duration(CHEAP_SECONDS)}.",
)
@variant_option("full")
@mini_seed_option
@click.option("--again", is_flag=True, help="Measure anew what was measured before.")
@sandbox_option
@python_option
@click.option("--gpu", "gpus", type=Indices(), default=(), help="The GPU of tasks that want one, by its index.")
@task_path_option
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a task, and nothing else, on standard output.")
def baseline(
    task_ids: Sequence[str],
    runs: int | None,
    variant: Variant,
    mini_seed: int | None,
    again: bool,
    sandbox: SandboxChoice,
    python: Path | None,
    gpus: tuple[str, ...],
    task_paths: Sequence[Path],
    as_lines: bool,
) -> int:
    """Measure the starter's own score and its spread.

    The result is stored for this machine and this version of the task, and later runs are compared with it. For a
    starter that does not run as it is, the naive predictor that its task names is scored instead. The exit status is 3 if a task has no
    baseline.
    """
    tasks = [find_task(task_id, task_paths) for task_id in dict.fromkeys(task_ids)]
    console = command_console(stderr=as_lines)
    found: list[tuple[Task, MeasuredBaseline]] = []
    for task in tasks:
        settings = ScriptSettings(sandbox, python or Path(sys.executable), gpus if task.spec.gpu else ())
        try:
            measured, before = _measured(console, task, variant, mini_seed, settings, runs, again)
        except (TaskError, GradingError) as error:
            console.print(Text(f"{task.id} has no baseline: {visible(str(error))}", style="red"))
            continue
        found.append((task, measured))
        if as_lines:
            stored = measured.model_dump(mode="json", exclude={"baseline": {"resampled"}})
            click.echo(json.dumps({**stored, "spread": measured.baseline.spread, "measured_before": before}))
        elif before:
            how = "predicted" if measured.baseline.source == "predictor" else f"measured in {plural(len(measured.baseline.values), 'run')}"
            console.print(f"[dim]{task.id}: was {how} before; --runs adds more, --again does it anew")
    if found and not as_lines:
        console.print(_listing(found), crop=False)
        console.print(Text(_machine(found[0][1]), style="dim"))
    return 3 if len(found) < len(tasks) else 0


def _measured(
    console: Console,
    task: Task,
    variant: Variant,
    mini_seed: int | None,
    settings: ScriptSettings,
    runs: int | None,
    again: bool,
) -> tuple[MeasuredBaseline, bool]:
    """Measure a task's baseline; return it, and whether it had been measured before."""
    before = None if again else read_baseline(task, variant, settings, mini_seed)
    of = f" of {runs}" if runs else ""
    with console.status(f"{task.id}: the starter") as status:

        def on_run(number: int, run: StarterRun) -> None:
            worth = Text(quantity(run.score.value, task.spec.metric.unit) if run.score else visible(run.reason))
            console.print(
                Text.assemble((f"{task.id}, run {number}{of}: ", "dim"), worth, (f" in {duration(run.execution.seconds)}", "dim"))
            )
            status.update(f"{task.id}: the starter, run {min(number + 1, runs or number + 1)}{of}")

        measured = interrupts.run(measure(task, variant, mini_seed=mini_seed, settings=settings, runs=runs, again=again, on_run=on_run))
    return measured, measured == before


def _machine(measured: MeasuredBaseline) -> str:
    """Return one line about the machine and the sandbox of a measurement."""
    facts = measured.hardware
    gpus = facts.get("gpus")
    parts = [f"{facts.get('cpu')}", f"{facts.get('cores')} cores", f"{facts.get('memory_gb')} GB", f"{facts.get('system')}"]
    named = [str(gpu) for gpu in gpus] if isinstance(gpus, list) else []
    return f"on {', '.join([*parts, *named])}; scripts in {measured.isolation}"


def _listing(found: Sequence[tuple[Task, MeasuredBaseline]]) -> Listing:
    items = []
    for task, measured in found:
        unit, value = task.spec.metric.unit, measured.baseline
        failed = f", {plural(len(measured.failures), 'run')} failed" if measured.failures else ""
        cells = (
            quantity(value.value, unit),
            f"± {quantity(value.spread, unit, 2)}" if value.spread is not None else "-",
            str(len(value.values)),
            duration(statistics.median(measured.seconds)) if measured.seconds else "-",
            SOURCES[value.source] + failed,
        )
        items.append(Item(task.id, cells))
    return Listing("task", ("baseline>", "spread>", "runs>", "a run>", "from"), items)
