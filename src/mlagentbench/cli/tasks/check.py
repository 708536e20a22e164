"""The command `mlab tasks check`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from mlagentbench.checks.check import CheckSettings, check
from mlagentbench.checks.findings import LEAKS, Check
from mlagentbench.cli.options import mini_seed_option, sandbox_option, task_path_option, variant_option
from mlagentbench.errors import UsageError
from mlagentbench.grading.fork_server import fork_server
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import Variant
from mlagentbench.report.catalogue import CheckedTask, catalogue_page
from mlagentbench.report.console import Item, Listing, command_console
from mlagentbench.report.formatting import duration, number, percent, plural, visible
from mlagentbench.sandbox import isolation
from mlagentbench.task.catalogue import Task, find_task, find_tasks
from mlagentbench.util import interrupts
from mlagentbench.util.machine import cores

FAULTY = 1
"""The exit status if a task fails."""
STYLES = {"ok": "green", "failed": "bold red", "skipped": "yellow"}


@click.command("check")
@click.argument("task_ids", metavar="[TASK]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Check all tasks.")
@variant_option("mini")
@mini_seed_option
@click.option("--parallel", type=click.IntRange(1), help="How many scripts and gradings go on at once; by default one a core.")
@sandbox_option
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Write the page of the catalogue to this file.")
@task_path_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of all findings.")
def check_tasks(
    task_ids: Sequence[str],
    every: bool,
    variant: Variant,
    mini_seed: int | None,
    parallel: int | None,
    sandbox: SandboxChoice,
    markdown: Path | None,
    task_paths: Sequence[Path],
    as_json: bool,
) -> int:
    """Check that tasks keep their promises.

    The check of a task: its data depends only on the seed; its starter does what the task states; its grader accepts right answers, scores
    them above wrong ones, and refuses invalid submissions; a solution succeeds, and an ineffective change does not; and nothing that the
    agent can read gives the answers away. The exit status is 1 if a task fails.
    """
    if every == bool(task_ids):
        raise UsageError("name the tasks to check, or give --all")
    tasks = list(find_tasks(task_paths).values()) if every else [find_task(task_id, task_paths) for task_id in dict.fromkeys(task_ids)]
    if other := [task.id for task in tasks if task.notices]:
        why = "it has another benchmark's layout, which has no proof.py to check it with"
        raise UsageError(f"{other[0]} cannot be checked: {why}; make it a task as in docs/adding-a-task.md, or leave it out")
    if markdown is not None and not markdown.parent.is_dir():
        raise UsageError(f"there is no folder {markdown.parent} to write {markdown.name} into")
    isolation.choose(sandbox)
    console = command_console(stderr=as_json)
    settings = CheckSettings(variant, mini_seed, sandbox)
    checks = interrupts.run(_check_all(tasks, console, settings, parallel or cores()))
    if as_json:
        click.echo(json.dumps([{**found.model_dump(mode="json"), "verdict": found.verdict} for found in checks], indent=1, allow_nan=False))
    else:
        console.print(_listing(tasks, checks), crop=False)
        _explain(console, checks)
    if markdown is not None:
        markdown.write_text(catalogue_page(map(CheckedTask, tasks, checks)), encoding="utf-8")
    return FAULTY if any(found.verdict == "failed" for found in checks) else 0


async def _check_all(tasks: Sequence[Task], console: Console, settings: CheckSettings, parallel: int) -> list[Check]:
    """Check tasks concurrently; first those that take longest: tasks that time code, then those that run it, and those with packages."""
    slot, places = asyncio.Semaphore(parallel), asyncio.Semaphore(parallel + 1)
    async with fork_server() as forks:
        work = partial(replace, settings, slot=slot, timed=asyncio.Lock(), threads=max(1, cores() // parallel), forks=forks)
        with console.status("") as status:
            display = _CheckDisplay(console, status, len(tasks))

            async def one(task: Task) -> Check:
                async with places:
                    found = await check(task, work(on_status=partial(display.doing, task)))
                display.done(task, found)
                return found

            jobs = {}
            try:
                for task in sorted(
                    tasks, key=lambda task: (("code", "checkpoint", "file").index(task.spec.submission.mode), not task.spec.extras)
                ):
                    jobs[task.id] = asyncio.create_task(one(task))
                return [await jobs[task.id] for task in tasks]
            finally:
                for job in jobs.values():
                    job.cancel()
                await asyncio.gather(*jobs.values(), return_exceptions=True)


class _CheckDisplay:
    """A status line with the checks in progress, and a line for each task that is done."""

    def __init__(self, console: Console, status: Status, count: int) -> None:
        self._console = console
        self._status = status
        self._count = count
        self._done = 0
        self._doing: dict[str, str] = {}

    def doing(self, task: Task, doing: str) -> None:
        """Show what the check of a task is doing now."""
        self._doing[task.id] = doing
        self._show()

    def done(self, task: Task, found: Check) -> None:
        """Note that the check of a task is done, and print its verdict if there are several tasks."""
        self._done += 1
        self._doing.pop(task.id, None)
        if self._count > 1:
            names = ", ".join(finding.name for finding in found.failed)
            line = Text.assemble((f"{found.verdict:<7} ", STYLES[found.verdict]), task.id, (f"  {duration(found.seconds)}", "dim"))
            self._console.print(line.append(f"  {names}", "red") if names else line)
        self._show()

    def _show(self) -> None:
        doing = ", ".join(f"{task} ({what})" for task, what in self._doing.items())
        self._status.update(Text(f"{self._done} of {plural(self._count, 'task')} done; {doing}" if doing else "starting"))


def _listing(tasks: Sequence[Task], checks: Sequence[Check]) -> Listing:
    items = []
    for task, found in zip(tasks, checks, strict=True):
        numbers = found.numbers
        state = task.spec.starter.state
        starter = _score(sum(numbers.starter) / len(numbers.starter)) if numbers.starter else state if state != "runs" else "-"
        seconds = f"{sum(numbers.starter_seconds) / len(numbers.starter_seconds):.1f}" if numbers.starter_seconds else "-"
        cells = (
            starter,
            seconds,
            _score(numbers.oracle),
            _score(numbers.constant),
            _score(numbers.shuffled),
            _gain(numbers.solution, numbers.solution_improvement),
            _gain(numbers.ineffective, numbers.ineffective_improvement),
            f"{numbers.refused}/{numbers.invalid}",
            _leaks(found),
            found.verdict,
        )
        items.append(Item(task.id, cells, STYLES[found.verdict] if found.verdict != "ok" else ""))
    headings = ("starter>", "seconds>", "oracle>", "constant>", "shuffled>", "solution>", "ineffective>", "invalid>", "leaks", "verdict")
    return Listing("task", headings, items)


def _score(value: float | None) -> str:
    return "-" if value is None else number(value)


def _gain(value: float | None, improvement: float | None) -> str:
    return _score(value) if improvement is None else percent(improvement)


def _leaks(found: Check) -> str:
    of = [finding for finding in found.findings if finding.name in LEAKS]
    if any(finding.status == "failed" for finding in of):
        return "found"
    return "none" if any(finding.status == "ok" for finding in of) else "-"


def _explain(console: Console, checks: Sequence[Check]) -> None:
    """Print each failed finding, and those of skipped tasks, on a line each; then a summary."""
    for found in checks:
        for finding in found.findings:
            if finding.status == "failed" or (found.verdict == "skipped" and finding.status == "skipped"):
                text = Text.assemble((f"{found.task}: {finding.name}: ", STYLES[finding.status]), visible(finding.detail))
                console.print(text, soft_wrap=True)
    bad = sum(found.verdict == "failed" for found in checks)
    away = sum(found.verdict == "skipped" for found in checks)
    words = [f"{plural(bad, 'task')} failed"] if bad else []
    words += [f"{plural(away, 'task')} skipped"] if away else []
    console.print(Text(f"{plural(len(checks), 'task')} checked; {' and '.join(words) or 'all hold'}.", "red" if bad else ""))
