"""The command `mlab run`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from mlagentbench.cli.interactive import ask_person, begin, end
from mlagentbench.cli.main import FAILED, INTERRUPTED
from mlagentbench.cli.options import (
    Duration,
    GroupedCommand,
    Indices,
    KeyValue,
    ModelRate,
    Size,
    log_directory_option,
    mini_seed_option,
    python_option,
    sandbox_option,
    task_path_option,
    variant_option,
)
from mlagentbench.cli.output.page import print_own_page
from mlagentbench.cli.output.progress import ProgressDisplay
from mlagentbench.cli.output.summary import JsonLines, show, show_all
from mlagentbench.cli.spec import spec_fields
from mlagentbench.engine import run as run_engine
from mlagentbench.engine.evaluate import Evaluation, evaluate
from mlagentbench.engine.models.providers import check_models
from mlagentbench.environment import Listener, SilentListener
from mlagentbench.errors import UsageError
from mlagentbench.records import Result
from mlagentbench.report.console import command_console
from mlagentbench.report.formatting import plural
from mlagentbench.run_spec import RunSpec, check_spec, read_spec
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.runner.interactive import session_of
from mlagentbench.runner.preflight import ReadyRun, make_spec
from mlagentbench.runner.run_once import AskPerson, RunHooks
from mlagentbench.task.catalogue import find_task
from mlagentbench.task.spec import UNGRADED

GROUPS = {
    "The agent": "--agent",
    "Runs": "--runs",
    "Limits of a run": "--steps",
    "Limits of each script (by default the task's own)": "--script-time",
    "Where scripts run": "--sandbox",
    "With a person": "--interactive",
    "Files and output": "--log-dir",
}


@click.command(cls=GroupedCommand, groups=GROUPS)
@click.argument("task_ids", metavar="TASK...", nargs=-1)
@click.option("--agent", default="research", show_default=True, help="Who does the task.")
@click.option(
    "-A",
    "--agent-option",
    "agent_pairs",
    multiple=True,
    type=KeyValue(),
    metavar="KEY=VALUE",
    help="An option of the agent, such as temperature=0.",
)
@click.option(
    "--research-log/--no-research-log", "agent_options__research_log", default=None, help="Keep a research log, and ask it before a step."
)
@click.option("--context-steps", "agent_options__context_steps", metavar="K|all", help="How many of the last steps stand in the prompt.")
@click.option(
    "--entries", "agent_options__entries", metavar="A,B", help="What each reply begins with, such as thought,fact-check; or none."
)
@click.option(
    "--actions-add", "agent_options__actions_add", metavar="A,B", help="Hidden actions that the prompt offers, such as read-file."
)
@click.option("--actions-remove", "agent_options__actions_remove", metavar="A,B", help="Actions that the prompt does not offer.")
@click.option(
    "--experience",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Notes, examples or logs of other runs, for any agent to read in the folder experience.",
)
@click.option(
    "--examples",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A solved example that stands in the prompt: a text file, or the directory of a run; can be given again.",
)
@click.option(
    "--documents",
    metavar="DIR",
    help="Texts that the agent can search by words (BM25); task:NAME for the folder NAME of the task's own data.",
)
@click.option("--model", "models__agent", help="Any model of Inspect, such as openai/gpt-4o, or scripted/<file>.")
@click.option(
    "-M",
    "--model-option",
    "model_pairs",
    multiple=True,
    type=KeyValue(),
    metavar="KEY=VALUE",
    help="An option of that model, as its provider in Inspect names it, such as device=cuda:1.",
)
@click.option("--fast-model", "models__fast", help="The model that reads long texts; by default the main one.")
@click.option("--editor-model", "models__editor", help="The model that edits scripts; by default the main one.")
@click.option(
    "--rate-limit",
    "rate_limits",
    multiple=True,
    type=ModelRate(),
    metavar="MODEL=REQUESTS[/TOKENS]",
    help="What a model's provider allows a minute, shared by all runs of the log directory, such as openai/gpt-4o=500/200000; can be given"
    " again. Without it, the limit is learnt.",
)
@click.option(
    "--spec",
    "spec_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What to do, from a TOML file or the run.json of a run; options on the command line go before it.",
)
@click.option("--runs", "times", default=1, show_default=True, type=click.IntRange(1), help="How often each task is done.")
@click.option(
    "--parallel",
    type=click.IntRange(1),
    help="How many runs go on at once; by default one a core, and no more than fit into the memory with all that their scripts may take.",
)
@variant_option("full")
@mini_seed_option
@click.option("--note", metavar="TEXT", help="Something to remember of the runs; it is stored with them, and nothing depends on it.")
@click.option("--score-steps/--no-score-steps", default=True, show_default=True, help="Score the submission after every step, too.")
@click.option("--audit/--no-audit", default=True, show_default=True, help="Check at the end what the agent said against what it had seen.")
@click.option(
    "--baseline",
    type=click.Choice(["auto", "paper", "none"]),
    default="auto",
    show_default=True,
    help="What scores are compared with: the starter's own as measured here, first if it was not yet; the paper's number for its own"
    " starter; nothing.",
)
@click.option("--steps", "limits__steps", type=click.IntRange(1), help="Steps; by default the task's own limit.")
@click.option("--time", "limits__time", type=Duration(), help="Time in all, such as 90s, 30m or 5h; by default the task's own limit.")
@click.option(
    "--working-time", "limits__working_time", type=Duration(), help="Time without the waiting for rate limits and before retries."
)
@click.option("--tokens", "limits__tokens", type=click.IntRange(1), help="Tokens.")
@click.option("--cost", "limits__cost", type=click.FloatRange(0, min_open=True), help="US dollars; the price of each model must be known.")
@click.option(
    "--prices",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="What models cost, before the list prices that are kept here (docs/models.md).",
)
@click.option(
    "--storage",
    "limits__storage_mb",
    type=Size(),
    help="What its snapshots take on disk, such as 20g; 64g by default, less on a disk with little room.",
)
@click.option(
    "--files",
    "limits__files",
    type=click.IntRange(1),
    help="Files, folders and links in the workspace after any step; 200,000 by default.",
)
@click.option("--script-time", "script_limits__seconds", type=Duration(), help="Time, such as 10m; the limit of the run holds too.")
@click.option("--memory", "script_limits__memory_mb", type=Size(), help="Memory, such as 900m or 4g; a bare number is megabytes.")
@click.option("--processes", "script_limits__processes", type=click.IntRange(1), help="Processes and threads at once.")
@click.option("--file-size", "script_limits__file_mb", type=Size(), help="The size of any file that it writes, such as 4g.")
@click.option("--workspace-size", "script_limits__workspace_mb", type=Size(), help="The size of the workspace, such as 16g.")
@click.option(
    "--workspace-files",
    "script_limits__workspace_files",
    type=click.IntRange(1),
    help="Files, folders and links in the workspace; 100,000 by default.",
)
@click.option(
    "--output",
    "script_limits__output_kb",
    type=click.IntRange(1),
    metavar="KB",
    help="How much of its output is kept, head and tail; 256 by default.",
)
@sandbox_option
@python_option
@click.option(
    "--gpus",
    "--gpu",
    "gpus",
    multiple=True,
    type=Indices(),
    help="GPUs by their indices, such as 0,1. Each run of a task that wants one has one to itself, and waits until one is free.",
)
@click.option("--interactive", is_flag=True, help="Work with the agent: TASK may be a folder of yours, and the agent asks you for help.")
@click.option("--say", metavar="SENTENCE", help="What is to be done in the folder; asked for otherwise.")
@click.option(
    "--allow", multiple=True, metavar="NAME", help="A file or folder in it that the agent may change, or all; else it only reads."
)
@log_directory_option
@task_path_option
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a run, as it ends, and nothing else, on standard output.")
def run(
    task_ids: Sequence[str],
    spec_file: Path | None,
    times: int,
    parallel: int | None,
    interactive: bool,
    say: str | None,
    allow: Sequence[str],
    log_directory: Path,
    task_paths: Sequence[Path],
    as_lines: bool,
    **options: Any,
) -> int:
    """Run an agent on tasks, and grade what it leaves.

    The first interrupt (Ctrl-C, SIGTERM or SIGHUP) ends all runs, and each is graded as it stands; the second stops at once. The exit
    status is 3 when a run ended by a failure that was not the agent's, such as a provider's, 130 after an interrupt, and 0 otherwise.
    """
    fields = spec_fields(options, read_spec(spec_file) if spec_file else {})
    task_ids = task_ids or [str(fields[name]) for name in ("task",) if name in fields]
    if not interactive:
        if say is not None or allow:
            raise UsageError("--say and --allow are for a session; add --interactive")
        if not task_ids:
            raise click.MissingParameter(ctx=click.get_current_context(), param_hint="TASK...", param_type="argument")
        folder = fields.pop("task_folder", None)
        paths = [*task_paths, *([Path(folder)] if folder else [])]
        tasks = [find_task(task_id, paths) for task_id in dict.fromkeys(task_ids)]
    elif times > 1:
        raise UsageError("an interactive session is one run; leave --runs out")
    else:
        check_models(check_spec({**fields, "task": ""}, "the spec"))  # so that a wrong model is reported before anything is asked or copied
        tasks = [begin(task_ids, say, allow, prepare_log_directory(log_directory), task_paths).task]
        if session_of(tasks[0]).folder is not None or tasks[0].spec.metric.name == UNGRADED:
            fields |= {"score_steps": False, "baseline": "none"}
    source = str(spec_file or "the command line")
    specs = [make_spec(task, {**fields, "gpus": fields.get("gpus", ()) if task.spec.gpu else ()}, source) for task in tasks]
    console = command_console(stderr=as_lines)
    ready = check_runs(specs, log_directory, console)
    on_result, ask = JsonLines() if as_lines else None, ask_person if interactive else None
    evaluation, directories = carry_out(ready, console, times=times, parallel=parallel, on_result=on_result, ask=ask)
    if not as_lines:
        print_results(console, directories, evaluation)
    if interactive and directories:
        end(directories[0], tasks[0])
    return status(directories, evaluation)


def check_runs(specs: Sequence[RunSpec], log_directory: Path, console: Console, continues: RunDirectory | None = None) -> list[ReadyRun]:
    """Check runs as `engine.run.check_runs` does, and print its notices."""

    def notify(notice: str) -> None:
        console.print(Text(notice, style="bold red" if notice == run_engine.UNSANDBOXED else "yellow"), soft_wrap=True)

    # Downloads show their own progress on standard error, before the display of the runs begins.
    return run_engine.check_runs(specs, log_directory, continues=continues, console=Console(stderr=True), notify=notify)


def carry_out(
    runs: Sequence[ReadyRun],
    console: Console,
    *,
    times: int = 1,
    parallel: int | None = None,
    on_result: Callable[[RunDirectory], None] | None = None,
    ask: AskPerson | None = None,
) -> tuple[Evaluation, list[RunDirectory]]:
    """Carry out runs with a progress display.

    Args:
        runs: the runs that are ready.
        console: where progress is shown.
        times: how often each is carried out.
        parallel: how many runs go on at once; None for as many as the machine can take.
        on_result: called with each run as soon as it is over.
        ask: asks the person who watches an agent's question; None if nobody watches.

    Returns:
        The evaluation, and the runs that are over, ordered by task.
    """
    over: dict[tuple[int, int], RunDirectory] = {}
    order = [run.task.id for run in runs]
    # A person has one terminal: no progress is shown beside the dialogue, and the runs take place one after another.
    person = any(getattr(run.make_agent(), "interactive", False) for run in runs)
    # A table that moves and lines that stay cannot share a terminal.
    moving = not person and ask is None and (on_result is None or not sys.stdout.isatty())
    progress = ProgressDisplay(console, times * len(runs), moving=moving)

    def finished(run: ReadyRun, number: int, result: Result) -> None:
        progress.done(run, number, result)
        directory = RunDirectory(run.log_directory / result.run)
        over[order.index(run.task.id), number] = directory
        if on_result:
            on_result(directory)

    listener = quiet if person else progress.listen
    hooks = RunHooks(listener=listener, finished=finished, stopping=progress.stopping, ask_person=ask)
    with progress:
        evaluation = evaluate(runs, hooks, times=times, parallel=1 if person else parallel)
    if evaluation.not_started:
        console.print(f"{plural(evaluation.not_started, 'run')} not started.", style="yellow")
    for failure in evaluation.failures:
        console.print(Text(f"A run could not be carried out: {' '.join(str(failure).split()) or type(failure).__name__}", style="red"))
    return evaluation, [over[place] for place in sorted(over)]


def quiet(run: ReadyRun, number: int) -> Listener:
    """Return a silent listener, for a run that a person does, who sees everything already."""
    return SilentListener()


def print_results(console: Console, directories: Sequence[RunDirectory], evaluation: Evaluation) -> None:
    """Print one run's numbers, or several runs as a list; then write the page of these runs and print its path."""
    if not directories:
        return
    places = [("Inspect log", log) for log in evaluation.logs]
    if len(directories) == 1:
        show(console, directories[0], [("log", directories[0].path), *places])
    else:
        show_all(console, directories, [("logs", directories[0].path.parent), *places])
    print_own_page(console, directories)


def status(directories: Sequence[RunDirectory], evaluation: Evaluation) -> int:
    """Return the exit status: 130 after an interrupt, 3 if a run failed through no fault of the agent, else 0."""
    results = [directory.result for directory in directories]
    if evaluation.stopped or any(result is not None and result.outcome.ended == "cancelled" for result in results):
        return INTERRUPTED
    return FAILED if evaluation.failures or any(result is None or result.outcome.ended == "infrastructure" for result in results) else 0
