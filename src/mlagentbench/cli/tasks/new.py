"""The command `mlab tasks new`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from mlagentbench.task import new


@click.command("new")
@click.argument("task_id", metavar="ID")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="here",
    help="Where the task's folder is made.",
)
@click.option("--title", help="A line that says what the task is about.")
def new_task(task_id: str, directory: Path, title: str | None) -> None:
    """Create a small but complete task, for you to change.

    ID is lower-case words joined by -; the folder has the same name, with underscores.
    """
    task = new.new_task(task_id, directory, title)
    path = shlex.quote(str(directory))
    folder = directory / task.folder.name
    click.echo(f"{folder} holds the task {task.id}. It is complete: change it piece by piece, and check it after each.")
    click.echo()
    for part, what in PARTS.items():
        click.echo(f"  {part:<12}  {what}")
    click.echo()
    click.echo(f"mlab tasks check {task.id} --task-path {path}")
    click.echo(f"mlab run {task.id} --task-path {path} --variant mini --agent baseline")


PARTS = {
    "task.toml": "its facts: metric, submission, limits",
    "problem.md": "the description that the agent gets",
    "starter/": "the files that the agent gets",
    "prepare.py": "its data, split into what the agent sees and what it does not",
    "grade.py": "how a submission is scored",
    "proof.py": "the submissions and scripts that it is checked with",
}
