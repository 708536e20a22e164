"""`mlab run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from pydantic import JsonValue
from rich.console import Console

from mlagentbench.agents.base import make_agent
from mlagentbench.cli.main import FAILED, INTERRUPTED
from mlagentbench.cli.options import Duration, KeyValue, log_directory_option, task_path_option
from mlagentbench.cli.progress import Progress
from mlagentbench.cli.summary import as_json, show
from mlagentbench.engine.evaluate import Evaluation, Watch, evaluate
from mlagentbench.environment import RunLimits
from mlagentbench.errors import UsageError
from mlagentbench.records import Result
from mlagentbench.report.page import write_report
from mlagentbench.run.conduct import RunPlan
from mlagentbench.sandbox import isolation
from mlagentbench.store.run_directory import RunDirectory, prepare_log_directory
from mlagentbench.tasks.catalogue import find_task
from mlagentbench.tasks.spec import Variant

UNSANDBOXED = "No sandbox: the agent's scripts can read and change anything on this machine. Results are flagged."
REPORT = "report.html"


@click.command()
@click.argument("task_ids", metavar="TASK...", nargs=-1, required=True)
@click.option("--agent", default="research", show_default=True, help="Who does the task.")
@click.option("-A", "--agent-option", "agent_options", multiple=True, type=KeyValue(), metavar="KEY=VALUE", help="An option of the agent.")
@click.option("--model", help="Any model of Inspect, such as openai/gpt-4o, or scripted/<file>.")
@click.option("--fast-model", help="The model that reads long texts; by default the main one.")
@click.option("--editor-model", help="The model that edits scripts; by default the main one.")
@click.option("--runs", default=1, show_default=True, type=click.IntRange(1), help="How often each task is done.")
@click.option("--parallel", type=click.IntRange(1), help="How many runs go on at once; by default as many as there are cores.")
@click.option("--steps", type=click.IntRange(1), help="The most steps of a run; by default the task's own limit.")
@click.option("--time", "seconds", type=Duration(), help="The most time of a run, such as 90s, 30m or 5h; by default the task's own limit.")
@click.option("--tokens", type=click.IntRange(1), help="The most tokens of a run.")
@click.option(
    "--cost", type=click.FloatRange(0, min_open=True), help="The most US dollars of a run; holds where the model's price is known."
)
@click.option(
    "--variant", type=click.Choice(["mini", "full"]), default="full", show_default=True, help="The data: real, or small and generated."
)
@click.option(
    "--sandbox",
    type=click.Choice(isolation.CHOICES),
    default="auto",
    show_default=True,
    help="What scripts run in; auto takes the strongest there is.",
)
@click.option("--python", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="The interpreter of the agent's scripts.")
@click.option("--gpu", "gpus", multiple=True, help="A GPU that scripts may use, by its index; can be given again.")
@click.option("--score-steps/--no-score-steps", default=True, show_default=True, help="Score the submission after every step, too.")
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a run, and nothing else, on standard output.")
@log_directory_option
@task_path_option
def run(
    task_ids: Sequence[str],
    agent: str,
    agent_options: Sequence[tuple[str, JsonValue]],
    model: str | None,
    fast_model: str | None,
    editor_model: str | None,
    runs: int,
    parallel: int | None,
    steps: int | None,
    seconds: float | None,
    tokens: int | None,
    cost: float | None,
    variant: Variant,
    sandbox: isolation.Choice,
    python: Path | None,
    gpus: Sequence[str],
    score_steps: bool,
    as_lines: bool,
    log_directory: Path,
    task_paths: Sequence[Path],
) -> int:
    """Run an agent on tasks, and grade what it leaves.

    The exit status is 3 when a run ended by a failure that was not the agent's, such as a provider's, and 0 otherwise.
    """
    tasks = [find_task(task_id, task_paths) for task_id in dict.fromkeys(task_ids)]
    options = dict(agent_options)
    if getattr(make_agent(agent, options), "needs_model", True) and model is None:
        raise UsageError(f"the agent {agent!r} needs a model; name one with --model, such as --model openai/gpt-4o")
    plans = []
    for task in tasks:
        plan = RunPlan(
            task=task,
            agent=agent,
            agent_options=options,
            log_directory=prepare_log_directory(log_directory),
            variant=variant,
            sandbox=sandbox,
            python=python or Path(sys.executable),
            gpus=tuple(gpus),
            score_steps=score_steps,
        )
        own = plan.run_limits
        limits = RunLimits(steps=steps or own.steps, time=seconds or own.time, tokens=tokens, cost=cost)
        plans.append(replace(plan, limits=limits))
    console = Console(stderr=as_lines)
    evaluation, directories = carry_out(
        plans, console, model=model, fast_model=fast_model, editor_model=editor_model, runs=runs, parallel=parallel
    )
    if as_lines:
        for directory in directories:
            click.echo(as_json(directory))
    else:
        print_results(console, directories, evaluation)
    return status(directories, evaluation)


def carry_out(
    plans: Sequence[RunPlan],
    console: Console,
    *,
    model: str | None,
    fast_model: str | None = None,
    editor_model: str | None = None,
    runs: int = 1,
    parallel: int | None = None,
) -> tuple[Evaluation, list[RunDirectory]]:
    """Carry out plans under a progress display.

    Raises:
        SandboxUnavailable: the sandbox asked for cannot be had here; nothing was run.
    """
    if isolation.choose(plans[0].sandbox).isolation == "none":
        console.print(UNSANDBOXED, style="bold red")
    directories: list[RunDirectory] = []
    progress = Progress(console, runs * len(plans))

    def done(plan: RunPlan, number: int, result: Result) -> None:
        progress.done(plan, number, result)
        directories.append(RunDirectory(plan.log_directory / result.run))

    with progress:
        watch = Watch(progress.listen, done, progress.stopping)
        evaluation = evaluate(plans, watch, model=model, fast_model=fast_model, editor_model=editor_model, runs=runs, parallel=parallel)
    return evaluation, directories


def print_results(console: Console, directories: Sequence[RunDirectory], evaluation: Evaluation) -> None:
    """A panel a run, and where the logs and the report are."""
    if not directories:
        return
    logs = directories[0].path.parent
    report = write_report(logs, logs / REPORT)
    for directory in directories:
        show(console, directory, [("log", directory.path), *(("Inspect log", log) for log in evaluation.logs), ("report", report)])


def status(directories: Sequence[RunDirectory], evaluation: Evaluation) -> int:
    """The exit status that tells how runs ended."""
    if evaluation.stopped:
        return INTERRUPTED
    results = [directory.result for directory in directories]
    return FAILED if any(result is None or result.outcome.ended == "infrastructure" for result in results) else 0
