"""The commands `mlab cache list` and `mlab cache clear`."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click
from rich.text import Text

from mlagentbench.cli.lazy import LazyGroup
from mlagentbench.cli.options import cache_option, task_path_option
from mlagentbench.data.cache import cache_directory, read_record
from mlagentbench.data.inventory import CacheEntry, entries, remove
from mlagentbench.data.prepare import RECORD, PreparedRecord, place_of
from mlagentbench.errors import UsageError
from mlagentbench.records import Variant
from mlagentbench.report.console import Item, Listing, command_console
from mlagentbench.report.formatting import plural, size
from mlagentbench.task.catalogue import Task, find_readable_tasks


@click.group("cache", cls=LazyGroup)
def cache_group() -> None:
    """List and clear what was prepared and downloaded."""


@cache_group.command("list")
@cache_option
@task_path_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_cache(cache: Path | None, task_paths: Sequence[Path], as_json: bool) -> None:
    """List prepared data and downloads, with their sizes."""
    cache = cache or cache_directory()
    tasks, _ = find_readable_tasks(task_paths)
    found = [(entry, _state(entry, tasks, cache)) for entry in entries(cache)]
    if as_json:
        click.echo(json.dumps([_facts(entry, state) for entry, state in found], indent=1))
        return
    console = command_console()
    if found:
        rows = [Item(where, (task, data, size(count), state)) for task, data, count, state, where in _rows(found, cache)]
        console.print(Listing("where", ("task", "data", "size>", ""), rows), crop=False)
        console.print()
    console.print(Text(f"{size(sum(entry.size for entry, _ in found))} in {cache}"), soft_wrap=True)


def _rows(found: Iterable[tuple[CacheEntry, str]], cache: Path) -> Iterator[tuple[str, str, int, str, str]]:
    """Yield rows of task, data, bytes, state and path: one for each entry, but one for all downloads of a task from one host."""

    def host(pair: tuple[CacheEntry, str]) -> tuple[object, ...]:
        entry, state = pair
        return (entry.task, urlsplit(entry.name).hostname, state) if entry.kind == "download" else (entry.path,)

    for _, group in itertools.groupby(found, host):
        (entry, state), *more = group
        where = entry.name if entry.kind == "download" else str(entry.path.relative_to(cache))
        count = entry.size + sum(other.size for other, _ in more)
        yield entry.task or "-", entry.variant or "download", count, state, where + (f" and {len(more):,} more" if more else "")


@cache_group.command("clear")
@click.argument("task_ids", metavar="[TASK]...", nargs=-1)
@click.option("--variant", type=click.Choice(["mini", "full"]), help="Only this data.")
@click.option("--downloads", is_flag=True, help="The downloads too. Their checksums stay, by which the next ones are known.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@cache_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of what was removed.")
def clear_cache(task_ids: Sequence[str], variant: Variant | None, downloads: bool, yes: bool, cache: Path | None, as_json: bool) -> None:
    """Remove prepared data, of some tasks or of all. Runs in progress lose their data.

    Data that is being prepared or downloaded at this moment stays.
    """
    cache = cache or cache_directory()
    there = list(entries(cache))
    unknown = set(task_ids) - {entry.task for entry in there}
    if unknown:
        known = sorted({entry.task for entry in there if entry.task})
        raise UsageError(f"nothing of {' and '.join(sorted(unknown))} is in {cache}; there is: {', '.join(known) or 'nothing'}")
    chosen = [entry for entry in there if _chosen(entry, task_ids, variant, downloads)]
    if chosen and not yes:
        _confirm(chosen, cache)
    removed = []
    for entry in chosen:
        if remove(entry, cache):
            removed.append(entry)
        else:
            what = f"the {entry.variant} data of {entry.task} is being prepared" if entry.variant else f"{entry.name} is being downloaded"
            click.echo(f"{what}; it is left as it is", err=True)
    if as_json:
        click.echo(json.dumps([_facts(entry, "removed") for entry in removed], indent=1))
    else:
        click.echo(f"{size(sum(entry.size for entry in removed))} removed" if removed else "nothing to remove")


def _chosen(entry: CacheEntry, task_ids: Sequence[str], variant: Variant | None, downloads: bool) -> bool:
    if task_ids and entry.task not in task_ids:
        return False
    if entry.kind == "download":
        return downloads
    return variant is None or entry.variant == variant


def _confirm(chosen: Sequence[CacheEntry], cache: Path) -> None:
    """Ask the person at the terminal whether to remove entries.

    Raises:
        UsageError: standard input is no terminal.
        click.Abort: the answer is no.
    """
    data = sum(entry.kind != "download" for entry in chosen)
    what = " and ".join(plural(count, noun) for count, noun in ((data, "prepared data set"), (len(chosen) - data, "download")) if count)
    question = f"Remove {what} ({size(sum(entry.size for entry in chosen))}) from {cache}?"
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Say --yes")
    click.confirm(question, abort=True, err=True)


def _state(entry: CacheEntry, tasks: Mapping[str, Task], cache: Path) -> str:
    """Return the state of an entry in a few words; empty if it is ready for use."""
    if entry.kind == "unfinished":
        return "in progress" if entry.in_use(cache) else "left over"
    if entry.kind == "download":
        return "in progress" if entry.in_use(cache) else "unfinished" if any(entry.path.rglob(".*.part")) else ""
    task = tasks.get(entry.task or "")
    if task is None:
        return "of no known task"
    record = read_record(entry.path / RECORD, PreparedRecord)
    return "" if record and place_of(task, record.variant, cache, record.mini_seed) == entry.path else "out of date"


def _facts(entry: CacheEntry, state: str) -> dict[str, object]:
    return {
        "kind": entry.kind,
        "task": entry.task,
        "variant": entry.variant,
        "bytes": entry.size,
        "state": state or "ready",
        "source": entry.name if entry.kind == "download" else None,
        "place": str(entry.path),
    }
