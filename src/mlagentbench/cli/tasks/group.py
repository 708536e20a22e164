"""The commands `mlab tasks list` and `mlab tasks show`, and the group of the other `mlab tasks` commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from mlagentbench.cli.lazy import LazyCommand, LazyGroup
from mlagentbench.cli.main import FAILED
from mlagentbench.cli.options import task_path_option
from mlagentbench.report.console import command_console, unbroken
from mlagentbench.report.formatting import visible
from mlagentbench.task.catalogue import Task, find_readable_tasks, find_task

PAPERS = ("canonical", "classic Kaggle", "Kaggle challenge", "recent research", "code improvement")
"""The categories of the paper's Table 1, in its order."""
ARROWS = {"maximize": "↑", "minimize": "↓"}


COMMANDS = {
    "Commands": {
        "new": LazyCommand("mlagentbench.cli.tasks.new:new_task", "Create a small but complete task, for you to change."),
        "check": LazyCommand("mlagentbench.cli.tasks.check:check_tasks", "Check that tasks keep their promises."),
    }
}
"""The commands that need more than the catalogue, imported when they are called."""


@click.group(cls=LazyGroup, lazy=COMMANDS)
def tasks() -> None:
    """List, describe, check and create tasks."""


@tasks.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@task_path_option
def list_tasks(as_json: bool, task_paths: Sequence[Path]) -> int:
    """List all tasks.

    A task that cannot be read is named at the end with the reason, and the exit status is 3.
    """
    found, problems = find_readable_tasks(task_paths)
    if as_json:
        click.echo(json.dumps([_facts(task) for task in found.values()], indent=1))
    else:
        command_console().print(_table(found))
    for problem in problems:
        command_console(stderr=True).print(Text(visible(problem), style="red"), soft_wrap=True)
    return FAILED if problems else 0


def _table(found: Mapping[str, Task]) -> Table:
    """Return the table of tasks, by category."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("task", no_wrap=True, min_width=max(map(len, found)) + 2)
    table.add_column("metric", max_width=28)
    table.add_column("what")
    for category in _categories(found.values()):
        table.add_row(Text(category, style="bold"))
        for task in found.values():
            spec = task.spec
            if spec.category == category:
                table.add_row(f"  {spec.id}", f"{ARROWS[spec.metric.direction]} {spec.metric.name}", spec.title)
    return table


def _categories(found: Iterable[Task]) -> list[str]:
    """Return the categories of tasks: the paper's in its order, then the others by name."""
    return sorted({task.spec.category for task in found}, key=lambda name: (PAPERS.index(name) if name in PAPERS else len(PAPERS), name))


@tasks.command("show")
@click.argument("task_id", metavar="TASK")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@task_path_option
def show_task(task_id: str, as_json: bool, task_paths: Sequence[Path]) -> None:
    """Show one task: its facts, and the description that an agent gets."""
    task = find_task(task_id, task_paths)
    if as_json:
        click.echo(json.dumps({**_facts(task), "problem": task.problem, "spec": task.spec.model_dump(mode="json")}, indent=1))
        return
    spec = task.spec
    table = Table.grid(padding=(0, 3))
    table.add_column(style="dim")
    table.add_row("task", f"{spec.id}: {spec.title}")
    table.add_row("category", f"{spec.category}, {spec.modality}, published {spec.published}")
    table.add_row("metric", f"{spec.metric.name}, {spec.metric.direction}d" + (f", in {spec.metric.unit}" if spec.metric.unit else ""))
    table.add_row("submission", f"{', '.join(spec.submission.required)} (of the files {', '.join(spec.submission.files)})")
    table.add_row("limits", f"{spec.limits.steps} steps, {spec.limits.time / 3600:g} h, {spec.limits.script_time / 60:g} min a script")
    table.add_row("starter", ", ".join(sorted(path.name for path in task.starter.iterdir() if path.name != "__pycache__")))
    if spec.paper and spec.paper.baseline is not None:
        table.add_row("the paper", f"baseline {spec.paper.baseline:g} {spec.metric.unit}")
    for notice in task.notices:
        table.add_row("note", Text(notice, style="yellow"))
    console = command_console()
    console.print(table)
    unbroken(console, ("folder     ", str(task.folder)))
    console.print()
    console.print(Markdown(task.problem))


def _facts(task: Task) -> dict[str, object]:
    spec = task.spec
    return {
        "id": spec.id,
        "title": spec.title,
        "category": spec.category,
        "modality": spec.modality,
        "published": spec.published.isoformat(),
        "metric": spec.metric.name,
        "direction": spec.metric.direction,
        "unit": spec.metric.unit,
        "extras": list(spec.extras),
        "notices": list(task.notices),
        "folder": str(task.folder),
    }
