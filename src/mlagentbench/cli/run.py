"""`mlab run`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from mlagentbench import interrupts
from mlagentbench.agents.base import make_agent
from mlagentbench.cli.interactive import ask_person, begin, end
from mlagentbench.cli.main import FAILED, INTERRUPTED
from mlagentbench.cli.options import (
    Duration,
    GroupedCommand,
    Indices,
    KeyValue,
    Size,
    agent_options,
    agent_shortcuts,
    given_once,
    log_directory_option,
    task_path_option,
)
from mlagentbench.cli.page import print_own_page
from mlagentbench.cli.progress import Progress
from mlagentbench.cli.summary import JsonLines, show, show_all
from mlagentbench.data.extras import require_extras
from mlagentbench.data.prepare import prepare
from mlagentbench.engine.evaluate import Evaluation, Watch, evaluate
from mlagentbench.engine.prices import check_prices, read_prices
from mlagentbench.engine.providers import check_model
from mlagentbench.environment import Listener, Silent
from mlagentbench.errors import UsageError
from mlagentbench.records import BaselineChoice, Result
from mlagentbench.report.layout import command_console
from mlagentbench.report.text import plural
from mlagentbench.run.conduct import Person, RunPlan, compared_with, measures_first
from mlagentbench.run.experience import look
from mlagentbench.run.session import session_of
from mlagentbench.sandbox import isolation
from mlagentbench.sandbox.view.environment import gpu_nodes
from mlagentbench.store.run_directory import RunDirectory, prepare_log_directory
from mlagentbench.tasks.catalogue import find_task
from mlagentbench.tasks.spec import UNGRADED, Variant
from mlagentbench.workspace.snapshots import SMALLEST_MB, KeepLast

UNSANDBOXED = "No sandbox: the agent's scripts can read and change anything on this machine. Results are flagged."

GROUPS = {
    "The agent": "--agent",
    "Runs": "--runs",
    "Limits of a run": "--steps",
    "Limits of each script (by default the task's own)": "--script-time",
    "Where scripts run": "--sandbox",
    "With a person": "--interactive",
    "Files and output": "--log-dir",
    "Snapshots": "--keep-versions",
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
@agent_shortcuts
@click.option(
    "--experience",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Notes, examples or logs of other runs, for any agent to read in the folder experience.",
)
@click.option("--model", help="Any model of Inspect, such as openai/gpt-4o, or scripted/<file>.")
@click.option(
    "-M",
    "--model-option",
    "model_pairs",
    multiple=True,
    type=KeyValue(),
    metavar="KEY=VALUE",
    help="An option of that model, as its provider in Inspect names it, such as device=cuda:1.",
)
@click.option("--fast-model", help="The model that reads long texts; by default the main one.")
@click.option("--editor-model", help="The model that edits scripts; by default the main one.")
@click.option("--runs", default=1, show_default=True, type=click.IntRange(1), help="How often each task is done.")
@click.option(
    "--parallel",
    type=click.IntRange(1),
    help="How many runs go on at once; by default one a core, and no more than fit into the memory with all that their scripts may take.",
)
@click.option(
    "--variant", type=click.Choice(["mini", "full"]), default="full", show_default=True, help="The data: real, or small and generated."
)
@click.option("--score-steps/--no-score-steps", default=True, show_default=True, help="Score the submission after every step, too.")
@click.option(
    "--baseline",
    type=click.Choice(["auto", "paper", "none"]),
    default="auto",
    show_default=True,
    help="What scores are compared with: the starter's own as measured here, or else the paper's, or else (and on mini) the starter's,"
    " measured now; only the paper's; nothing.",
)
@click.option("--steps", type=click.IntRange(1), help="Steps; by default the task's own limit.")
@click.option("--time", "seconds", type=Duration(), help="Time in all, such as 90s, 30m or 5h; by default the task's own limit.")
@click.option("--working-time", type=Duration(), help="Time without the waiting for rate limits and before retries.")
@click.option("--tokens", type=click.IntRange(1), help="Tokens.")
@click.option("--cost", type=click.FloatRange(0, min_open=True), help="US dollars; the price of each model must be known.")
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="What models cost, before the list prices that are kept here (docs/models.md).",
)
@click.option(
    "--storage", type=Size(), help="What its snapshots take on disk, such as 20g; 64g by default, less on a disk with little room."
)
@click.option("--files", type=click.IntRange(1), help="Files, folders and links in the workspace after any step; 200,000 by default.")
@click.option("--script-time", type=Duration(), help="Time, such as 10m; the limit of the run holds too.")
@click.option("--memory", type=Size(), help="Memory, such as 900m or 4g; a bare number is megabytes.")
@click.option("--processes", type=click.IntRange(1), help="Processes and threads at once.")
@click.option("--file-size", type=Size(), help="The size of any file that it writes, such as 4g.")
@click.option("--workspace-size", type=Size(), help="The size of the workspace, such as 16g.")
@click.option("--workspace-files", type=click.IntRange(1), help="Files, folders and links in the workspace; 100,000 by default.")
@click.option("--output", type=click.IntRange(1), metavar="KB", help="How much of its output is kept, head and tail; 256 by default.")
@click.option(
    "--sandbox",
    type=click.Choice(isolation.CHOICES),
    default="auto",
    show_default=True,
    help="What isolates them; auto takes the strongest there is.",
)
@click.option("--python", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Their interpreter.")
@click.option(
    "--gpus",
    "--gpu",
    "gpus",
    multiple=True,
    type=Indices(),
    help="GPUs by their indices, such as 0,1. Each run of a task that wants one has one to itself, and waits until one is free.",
)
@click.option("--keep-versions", type=click.IntRange(1), metavar="K", help="Keep only the last K versions of large files in snapshots.")
@click.option("--keep-over", type=Size(), default="100m", show_default=True, help="From which size on a file is large; at least 16m.")
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
    agent: str,
    agent_pairs: Sequence[tuple[str, JsonValue]],
    experience: Path | None,
    model: str | None,
    model_pairs: Sequence[tuple[str, JsonValue]],
    fast_model: str | None,
    editor_model: str | None,
    runs: int,
    parallel: int | None,
    variant: Variant,
    score_steps: bool,
    steps: int | None,
    seconds: float | None,
    working_time: float | None,
    tokens: int | None,
    cost: float | None,
    prices_file: Path | None,
    storage: int | None,
    files: int | None,
    script_time: float | None,
    memory: int | None,
    processes: int | None,
    file_size: int | None,
    workspace_size: int | None,
    workspace_files: int | None,
    output: int | None,
    sandbox: isolation.Choice,
    python: Path | None,
    gpus: Sequence[Sequence[str]],
    baseline: BaselineChoice,
    keep_versions: int | None,
    keep_over: int,
    interactive: bool,
    say: str | None,
    allow: Sequence[str],
    log_directory: Path,
    task_paths: Sequence[Path],
    as_lines: bool,
    **shortcuts: JsonValue,
) -> int:
    """Run an agent on tasks, and grade what it leaves.

    The first interrupt (Ctrl-C, SIGTERM or SIGHUP) ends all runs, and each is graded as it stands; the second stops at once. The exit
    status is 3 when a run ended by a failure that was not the agent's, such as a provider's, 130 after an interrupt, and 0 otherwise.
    """
    if not interactive:
        if say is not None or allow:
            raise UsageError("--say and --allow are for a session; add --interactive")
        if not task_ids:
            raise click.MissingParameter(ctx=click.get_current_context(), param_hint="TASK...", param_type="argument")
    elif runs > 1:
        raise UsageError("an interactive session is one run; leave --runs out")
    options = agent_options(agent_pairs, shortcuts)
    if getattr(make_agent(agent, options), "needs_model", True) and model is None:
        raise UsageError(f"the agent {agent!r} needs a model; name one with --model, such as --model openai/gpt-4o")
    model_options = given_once("model", model_pairs)
    if model_options and model is None:
        raise UsageError("-M is for a model; name one with --model")
    if interactive:
        if model:
            check_model(model, model_options)  # before anything is asked or copied
        tasks = [begin(task_ids, say, allow, prepare_log_directory(log_directory), task_paths).task]
        if session_of(tasks[0]).folder is not None or tasks[0].spec.metric.name == UNGRADED:
            score_steps, baseline = False, "none"
    else:
        tasks = [find_task(task_id, task_paths) for task_id in dict.fromkeys(task_ids)]
    script_limits = {
        "seconds": script_time,
        "memory_mb": memory,
        "processes": processes,
        "file_mb": file_size,
        "workspace_mb": workspace_size,
        "workspace_files": workspace_files,
        "output_kb": output,
    }
    if keep_over < SMALLEST_MB:
        raise UsageError(f"files under {SMALLEST_MB} MB are always kept; give --keep-over {SMALLEST_MB}m or more")
    prices = read_prices(prices_file) if prices_file else {}
    cards = _distinct([gpu for some in gpus for gpu in some])
    plans = []
    for task in tasks:
        plan = RunPlan(
            task=task,
            agent=agent,
            agent_options=options,
            model_options=model_options,
            prices=prices,
            log_directory=prepare_log_directory(log_directory),
            variant=variant,
            sandbox=sandbox,
            python=python or Path(sys.executable),
            gpus=cards if task.spec.gpu else (),
            score_steps=score_steps,
            baseline=baseline,
            keep=KeepLast(keep_versions, keep_over) if keep_versions else None,
            experience=experience,
        )
        if experience is not None:
            look(experience, task, plan.log_directory)
        own = plan.run_limits
        limits = replace(own, steps=steps or own.steps, time=seconds or own.time, working_time=working_time, tokens=tokens, cost=cost)
        limits = replace(limits, storage_mb=storage or own.storage_mb, files=files or own.files)
        given = {name: value for name, value in script_limits.items() if value is not None}
        plans.append(replace(plan, limits=limits, box_limits=replace(plan.script_limits, **given)))  # type: ignore[arg-type]
    console = command_console(stderr=as_lines)
    evaluation, directories = carry_out(
        plans,
        console,
        model=model,
        fast_model=fast_model,
        editor_model=editor_model,
        runs=runs,
        parallel=parallel,
        tell=JsonLines() if as_lines else None,
        ask=ask_person if interactive else None,
    )
    if not as_lines:
        print_results(console, directories, evaluation)
    if interactive and directories:
        end(directories[0], tasks[0])
    return status(directories, evaluation)


def _distinct(gpus: Sequence[str]) -> tuple[str, ...]:
    twice = [gpu for gpu, count in Counter(gpus).items() if count > 1]
    if twice:
        raise UsageError(f"the GPU {twice[0]} is named twice; no two runs share one")
    return tuple(gpus)


def carry_out(
    plans: Sequence[RunPlan],
    console: Console,
    *,
    model: str | None,
    fast_model: str | None = None,
    editor_model: str | None = None,
    runs: int = 1,
    parallel: int | None = None,
    tell: Callable[[RunDirectory], None] | None = None,
    ask: Person | None = None,
) -> tuple[Evaluation, list[RunDirectory]]:
    """Carry out plans under a progress display.

    Args:
        plans: what to do, each plan `runs` times.
        console: where progress is shown.
        model: the agent's.
        fast_model: the one that reads long texts.
        editor_model: the one that edits scripts.
        runs: how often.
        parallel: how many runs go on at once; None for what the machine carries.
        tell: is given each run as soon as it is over.
        ask: puts an agent's question to the person who watches; None where nobody does.

    Returns:
        What came of it, and the runs that are over, those of each plan together.

    Raises:
        SandboxUnavailable: the sandbox or a GPU asked for cannot be had here; nothing was run.
        ModelUnavailable: a model cannot be used; nothing was run.
        UsageError: there is a limit of cost, and a model of which no price is known; nothing was run.
        TaskError: packages that a task needs are missing, or its data cannot be prepared; nothing was run.
    """
    for plan in plans:
        check_prices(plan.run_limits, [name for name in dict.fromkeys((model, fast_model, editor_model)) if name], plan.prices)
    if isolation.choose(plans[0].sandbox).isolation == "none":
        console.print(UNSANDBOXED, style="bold red")
    else:
        gpu_nodes(tuple(dict.fromkeys(gpu for plan in plans for gpu in plan.gpus)))
    for task in {plan.task.id: plan.task for plan in plans}.values():
        for notice in task.notices:
            console.print(Text(f"{task.id}: {notice}", style="yellow"), soft_wrap=True)
    for name in {model, fast_model, editor_model} - {None}:
        check_model(str(name), plans[0].model_options if name == model else {})
    # Before the display of runs begins, since what is fetched has one of its own; and before hours of fetching, what needs only a look.
    for plan in plans:
        require_extras(plan.task, plan.python)
    for plan in plans:
        prepare(plan.task, plan.variant, console=Console(stderr=True))
    for plan in plans:
        if measures_first(plan):
            # Now, and not beside the first runs: nothing disturbs it, an interrupt ends it, and a starter that fails is told at once.
            console.print(f"{plan.task.id}: measuring its starter first (--baseline none leaves that out)")
            interrupts.run(compared_with(plan))
    over: dict[tuple[int, int], RunDirectory] = {}
    # A person has one terminal: it shows no progress beside the talk, and is asked for one run after another.
    person = any(getattr(make_agent(plan.agent, plan.agent_options), "interactive", False) for plan in plans)
    # A table that moves and lines that stay cannot share a terminal.
    progress = Progress(console, runs * len(plans), moving=not person and ask is None and (tell is None or not sys.stdout.isatty()))

    def done(plan: RunPlan, number: int, result: Result) -> None:
        progress.done(plan, number, result)
        directory = RunDirectory(plan.log_directory / result.run)
        over[plans.index(plan), number] = directory
        if tell:
            tell(directory)

    with progress:
        watch = Watch(quiet if person else progress.listen, done, progress.stopping, ask)
        at_once = 1 if person else parallel
        evaluation = evaluate(plans, watch, model=model, fast_model=fast_model, editor_model=editor_model, runs=runs, parallel=at_once)
    if evaluation.not_started:
        console.print(f"{plural(evaluation.not_started, 'run')} not started.", style="yellow")
    for failure in evaluation.failures:
        console.print(Text(f"A run could not be carried out: {' '.join(str(failure).split()) or type(failure).__name__}", style="red"))
    return evaluation, [over[place] for place in sorted(over)]


def quiet(plan: RunPlan, number: int) -> Listener:
    """The listener of a run that a person does, who sees it all."""
    return Silent()


def print_results(console: Console, directories: Sequence[RunDirectory], evaluation: Evaluation) -> None:
    """Print one run's numbers, or several runs as a list, and then where the page of these runs is, which takes a while to be made."""
    if not directories:
        return
    places = [("Inspect log", log) for log in evaluation.logs]
    if len(directories) == 1:
        show(console, directories[0], [("log", directories[0].path), *places])
    else:
        show_all(console, directories, [("logs", directories[0].path.parent), *places])
    print_own_page(console, directories)


def status(directories: Sequence[RunDirectory], evaluation: Evaluation) -> int:
    """The exit status that tells how runs ended."""
    results = [directory.result for directory in directories]
    if evaluation.stopped or any(result is not None and result.outcome.ended == "cancelled" for result in results):
        return INTERRUPTED
    return FAILED if evaluation.failures or any(result is None or result.outcome.ended == "infrastructure" for result in results) else 0
