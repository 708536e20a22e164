"""Writing what was read as runs of a log directory, graded where they can be."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mlagentbench.data.cache import cache_directory
from mlagentbench.data.prepare import RECORD, place_of
from mlagentbench.engine.export import log_path, write_eval_log
from mlagentbench.errors import MLAgentBenchError, RunNotFound, UsageError
from mlagentbench.original.convert import Converted, convert
from mlagentbench.original.facts import is_known
from mlagentbench.original.files import Logs, find_logs
from mlagentbench.records import Outcome, Result
from mlagentbench.results.load import Run, load
from mlagentbench.run.regrade import regrade
from mlagentbench.store.run_directory import RunDirectory, prepare_log_directory
from mlagentbench.tasks.catalogue import load_task
from mlagentbench.tasks.spec import Variant
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots import Manifest, SnapshotStore

VARIANT: Variant = "full"
"""The data of the original's runs."""


class ImportedRun(NamedTuple):
    """A log, and what became of it."""

    logs: Path
    run: Run | None
    """None for a log that could not be read as a run."""
    eval_log: Path | None
    state: str
    """`new`; `there already`; `renewed` where the log had changed; `failed`."""
    reason: str = ""
    """Why it failed, in a line."""

    @property
    def actions(self) -> int:
        """Steps that the agent chose, its log's bookkeeping aside."""
        return sum(step.counted for step in self.run.steps) if self.run else 0

    @property
    def files(self) -> int:
        """Files at its end; 0 where none were kept."""
        entries = self.run.files(len(self.run.steps)) if self.run else None
        return sum(entry.kind == "file" for entry in (entries or {}).values())


def import_logs(
    folder: Path,
    log_directory: Path,
    *,
    grade: bool = True,
    tell: Callable[[int, int, ImportedRun], None] = lambda number, total, run: None,
) -> list[ImportedRun]:
    """Import every log of the original at a folder or below it. What is there already is left as it is.

    Args:
        folder: one run's, or one above several.
        log_directory: where runs are kept.
        grade: grade final files that hold a submission, where the task's full data is prepared here; nothing is fetched.
        tell: is told each as it is done, with its number from 1 and how many there are.

    Raises:
        RunNotFound: there are none.
        UsageError: the log directory cannot be written.
        StorageFailed: the disk is full.
    """
    found = find_logs(folder)
    place = prepare_log_directory(log_directory)
    done = []
    for number, logs in enumerate(found, 1):
        try:
            imported = _import(logs, place, grade=grade)
        except UsageError as error:
            imported = ImportedRun(logs.root, None, None, "failed", str(error))
        tell(number, len(found), imported)
        done.append(imported)
    return done


def _import(logs: Logs, log_directory: Path, *, grade: bool) -> ImportedRun:
    if not any(names for folder in (logs.env, logs.agent) for _, _, names in os.walk(folder)):
        raise RunNotFound(f"{logs.root} holds no file of a run")
    converted = convert(logs)
    state = _make_room(log_directory / converted.info.run, converted)
    if state != "there already":
        directory = RunDirectory.create(log_directory, converted.info)
        with directory.lock():
            reason = _write(directory, converted) or (None if grade else "it was imported with --no-grade")
            directory.write_result(_result(converted, reason))
        if reason is None:
            _grade(directory, converted)
    run = load(log_directory / converted.info.run)[0]
    path = log_path(run)
    if state != "there already" or not path.exists():
        write_eval_log(run)
    return ImportedRun(logs.root, run, path, state)


def _make_room(path: Path, converted: Converted) -> str:
    """See what is there of a run already, and take away what is of an older state of its log, or of an import that did not end.

    Raises:
        UsageError: it is no import, or another process works on it.
    """
    if not path.exists():
        return "new"
    before = RunDirectory(path)
    if (path / "run.json").exists():
        known = before.info.imported
        if known is None:
            raise UsageError(f"{path} is a run that was made here; import into another log directory")
        if before.result is not None and known.digest == (converted.info.imported and converted.info.imported.digest):
            return "there already"
    with before.lock():
        for run in load(path) if (path / "run.json").exists() else []:
            log_path(run).unlink(missing_ok=True)
        shutil.rmtree(path)
    return "renewed"


def _write(directory: RunDirectory, converted: Converted) -> str | None:
    """Write steps, calls and workspaces.

    Returns:
        Why it cannot be graded; None where it can.
    """
    store = SnapshotStore(directory.objects)
    for step in (None, *converted.steps):
        number = step.number if step else 0
        for call in converted.calls.get(number, ()):
            directory.append_call(number, call)
        if number in converted.workspaces:
            store.take(Workspace(converted.workspaces[number])).save(directory.manifest(number))
        if step:
            directory.publish_step(step)
    last = len(converted.steps)
    for call in converted.calls.get(last + 1, ()):
        directory.append_call(last + 1, call)
    final = directory.manifest(last)
    if not final.exists():
        return "its log holds no final files"
    manifest = Manifest.load(final)
    store.restore(manifest, directory.workspace)
    return _ungradable(converted, manifest)


def _ungradable(converted: Converted, final: Manifest) -> str | None:
    """Why final files cannot be graded here, in words; None where they can."""
    name = converted.info.task
    if not is_known(name):
        return f"there is no task {name} here, and so no grader"
    task = load_task(Path(converted.info.task_folder))
    lacking = [path for path in task.spec.submission.required if path not in final.entries]
    if lacking:
        return f"its final files hold no submission: {', '.join(lacking)} is missing"
    if task.preparer and not (place_of(task, VARIANT, cache_directory()) / RECORD).exists():
        return f"the real data of {name} is not prepared here: mlab prepare {name} --variant full, then mlab grade"
    return None


def _grade(directory: RunDirectory, converted: Converted) -> None:
    try:
        asyncio.run(regrade(directory))
    except MLAgentBenchError as error:
        directory.write_result(_result(converted, str(error)))


def _result(converted: Converted, reason: str | None) -> Result:
    """How the run came out, ungraded."""
    ended, steps = converted.ending, converted.steps
    # A limit and an answer say themselves how the run ended; what else ended it needs words.
    told = ended.reason if ended.ended not in ("final_answer", "limit_steps", "limit_time") else None
    return Result(
        run=converted.info.run,
        outcome=Outcome(
            ended=ended.ended,
            verdict="ungraded",
            flags=("unsandboxed", "imported"),
            reason="; ".join(text for text in (told, reason) if text) or None,
        ),
        final_answer=converted.final_answer,
        steps=sum(step.counted for step in steps),
        seconds=converted.seconds,
        usage=converted.usage,
    )
