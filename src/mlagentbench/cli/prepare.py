"""The command `mlab prepare`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from mlagentbench.cli.main import USAGE
from mlagentbench.cli.options import cache_option, mini_seed_option, task_path_option
from mlagentbench.data.cache import cache_directory
from mlagentbench.data.prepare import Preparation, prepare
from mlagentbench.errors import TaskError, UsageError
from mlagentbench.records import Variant
from mlagentbench.report.formatting import duration, size
from mlagentbench.task.catalogue import Task, find_task, find_tasks


@click.command("prepare")
@click.argument("task_ids", metavar="TASK...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All tasks; say with --variant which data.")
@click.option("--variant", type=click.Choice(["mini", "full"]), help="The data: real, or small and generated.  [default: full]")
@mini_seed_option
@click.option("--force", is_flag=True, help="Make it anew though it is there. Downloads that are there are used again.")
@cache_option
@task_path_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def prepare_tasks(
    task_ids: Sequence[str],
    everything: bool,
    variant: Variant | None,
    mini_seed: int | None,
    force: bool,
    cache: Path | None,
    task_paths: Sequence[Path],
    as_json: bool,
) -> int:
    """Prepare the data of tasks before a run.

    Before real data is fetched, its size, its licence and the terms to accept are shown. An interrupted download continues the next time.
    The exit status is 2 if a task could not be prepared.
    """
    if everything == bool(task_ids):
        raise UsageError("name the tasks to prepare, or say --all (mlab tasks list)")
    if everything and variant is None:
        raise UsageError("say which data of all tasks: --variant mini, or --variant full (hundreds of gigabytes)")
    tasks = list(find_tasks(task_paths).values()) if everything else [find_task(each, task_paths) for each in dict.fromkeys(task_ids)]
    variant = variant or "full"
    console = Console(stderr=True)
    found: list[dict[str, object]] = []
    failures = 0
    for task in tasks:
        started = time.monotonic()
        try:
            preparation = prepare(task, variant, cache, console=console, force=force, mini_seed=mini_seed)
        except TaskError as error:
            if len(tasks) == 1:
                raise
            failures += 1
            console.print(Text(str(error) if task.id in str(error) else f"{task.id}: {error}", style="red"), soft_wrap=True)
            found.append({"task": task.id, "variant": variant, "error": str(error)})
            continue
        seconds = time.monotonic() - started
        found.append(_facts(task, variant, preparation, seconds))
        if not as_json:
            click.echo(_line(task, variant, preparation, seconds, max(len(each.id) for each in tasks)))
    if as_json:
        click.echo(json.dumps(found, indent=1))
    elif cache is not None and cache != cache_directory():
        console.print(f"Runs find it with MLAB_CACHE={cache}", style="dim", soft_wrap=True)
    return USAGE if failures else 0


def _line(task: Task, variant: Variant, preparation: Preparation, seconds: float, width: int) -> str:
    if preparation.record is None:
        return f"{task.id:<{width}} {variant:<4}  no data to prepare"
    took = duration(seconds) if preparation.made else "was there"
    return f"{task.id:<{width}} {variant:<4} {size(preparation.record.public_size):>10} {took:>12}  {preparation.place}"


def _facts(task: Task, variant: Variant, preparation: Preparation, seconds: float) -> dict[str, object]:
    record = preparation.record
    return {
        "task": task.id,
        "variant": variant,
        "made": preparation.made,
        "public_bytes": record.public_size if record else 0,
        "public_files": len(record.public) if record else 0,
        "seconds": round(seconds, 3),
        "place": str(preparation.place) if preparation.place else None,
    }
