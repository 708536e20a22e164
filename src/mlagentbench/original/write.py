"""Write imported logs as runs of a log directory, and grade those that can be graded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mlagentbench.data.cache import cache_directory
from mlagentbench.data.prepare import RECORD, place_of
from mlagentbench.engine.export import log_path, write_eval_log
from mlagentbench.errors import MLAgentBenchError, RunNotFound, TaskError, UsageError
from mlagentbench.grading.cache import task_digest
from mlagentbench.original.convert import Converted, convert
from mlagentbench.original.earlier_imports import EarlierImports
from mlagentbench.original.files import LogFolders, files_below, find_logs, path_text
from mlagentbench.original.run_info import is_known
from mlagentbench.records import Outcome, Result, Variant
from mlagentbench.results.load import Run, load
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.rundir.provenance import seal
from mlagentbench.runner.preflight import task_of
from mlagentbench.runner.regrade import regrade
from mlagentbench.util import interrupts
from mlagentbench.util.lock import acquire
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore

VARIANT: Variant = "full"
"""The data variant of the original's runs."""
LONGEST_REASON = 300
"""The most characters of the line that says why a log was not imported."""


class ImportedRun(NamedTuple):
    """The outcome of importing a log."""

    logs: Path
    run: Run | None
    """The run; None if the log could not be imported."""
    state: str
    """`new`; `there already`; `renewed` if the log had changed; or `failed`."""
    reason: str = ""
    """Why it failed, in one line."""

    @property
    def actions(self) -> int:
        """The number of steps without those that are bookkeeping."""
        return sum(step.counted for step in self.run.steps) if self.run else 0

    @property
    def files(self) -> int:
        """The number of final files; 0 if the log has none."""
        entries = self.run.files(len(self.run.steps)) if self.run else None
        return sum(entry.kind == "file" for entry in (entries or {}).values())


def import_logs(
    folder: Path,
    log_directory: Path,
    *,
    grade: bool = True,
    on_imported: Callable[[int, int, ImportedRun], None] = lambda number, total, run: None,
) -> list[ImportedRun]:
    """Import every log of the original at a folder or below it. Imports that are up to date are not changed.

    A log that cannot be imported, or a folder that cannot be searched, is reported as `failed`, and the others are still imported.

    Args:
        folder: the folder of a run, or a folder above several.
        log_directory: the log directory to write the runs to.
        grade: grade final files that contain a submission, if the task's full data is prepared here; nothing is downloaded.
        on_imported: called after each log with its number from 1, the number of logs, and the outcome.

    Raises:
        RunNotFound: there are no logs.
        UsageError: the log directory cannot be written, or another process is importing into it.
    """
    found = find_logs(folder)
    log_directory = prepare_log_directory(log_directory)
    done = []
    with (log_directory / "import.lock").open("a") as file:
        if not acquire(file, timeout=0):
            raise UsageError(f"another process imports into {log_directory}; wait for it, or choose another log directory with --log-dir")
        _put_back(log_directory)
        known = EarlierImports(log_directory)
        for number, logs in enumerate(found.logs, 1):
            imported = _import_or_fail(logs, log_directory, known, grade=grade)
            on_imported(number, len(found.logs), imported)
            done.append(imported)
    return done + [_failed(path, f"cannot be looked through for logs: {reason}") for path, reason in found.unread]


def _import_or_fail(logs: LogFolders, log_directory: Path, known: EarlierImports, *, grade: bool) -> ImportedRun:
    """Import a log. Any exception becomes a `failed` outcome, since untrusted files may contain anything."""
    try:
        return _import(logs, log_directory, known, grade=grade)
    except MLAgentBenchError as error:
        return _failed(logs.root, str(error))
    except OSError as error:
        return _failed(logs.root, f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    except Exception as error:
        return _failed(logs.root, f"it cannot be read as a run: {type(error).__name__}: {error}")


def _failed(path: Path, reason: str) -> ImportedRun:
    line = " ".join(reason.split())
    return ImportedRun(path, None, "failed", line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…")


def _import(logs: LogFolders, log_directory: Path, known: EarlierImports, *, grade: bool) -> ImportedRun:
    if not any(True for folder in (logs.env, logs.agent) for _ in files_below(folder)):
        raise RunNotFound(f"{path_text(logs.root)} holds no file of a run")
    converted = convert(logs)
    path = log_directory / converted.info.run
    before = known.find(converted)
    if before and known.is_current(before, converted):
        run = load(before)[0]
        if not log_path(run).exists():
            write_eval_log(run)
        return ImportedRun(logs.root, run, "there already")
    with _replacing([each for each in {before, path} if each and each.exists()], path) as replaced:
        _write_run(log_directory, converted, grade)
        _seal(RunDirectory(path))
        run = load(path)[0]
        write_eval_log(run)
    known.add(path)
    return ImportedRun(logs.root, run, "renewed" if replaced else "new")


def _write_run(log_directory: Path, converted: Converted, grade: bool) -> None:
    directory = RunDirectory.create(log_directory, converted.info)
    with directory.lock():
        reason = _write(directory, converted) or (None if grade else "it was imported with --no-grade")
        directory.write_result(_result(converted, reason))
    if reason is None:
        _grade(directory, converted)


def _seal(directory: RunDirectory) -> None:
    """Begin the chain of an imported run, which vouches for it from its import on."""
    digest = None
    with suppress(TaskError):
        digest = task_digest(task_of(directory.info.spec))
    seal(directory, digest)


ASIDE = ".replaced-"
"""The prefix of the folders that hold earlier imports while new ones are written."""


def _put_back(log_directory: Path) -> None:
    """Restore the earlier imports that a killed import had moved aside, unless the new ones are complete."""
    for aside in log_directory.glob(f"{ASIDE}*"):
        for path in aside.iterdir():
            run = log_directory / path.name
            if not (run / "result.json").exists():
                shutil.rmtree(run, ignore_errors=True)
                path.rename(run)
        shutil.rmtree(aside)


@contextmanager
def _replacing(earlier: Sequence[Path], new: Path) -> Iterator[bool]:
    """Move earlier imports of a log aside; delete them when the new one is complete, and restore them if it fails.

    Yields:
        Whether there are any.

    Raises:
        UsageError: one of them is not an import, or another process is working on it.
    """
    with ExitStack() as stack:
        for path in earlier:
            if (path / "run.json").exists() and RunDirectory(path).info.imported is None:
                raise UsageError(f"{path} is a run that was made here; import into another log directory")
            stack.enter_context(RunDirectory(path).lock())
        eval_logs = [log_path(run) for path in earlier if (path / "run.json").exists() for run in load(path)]
        aside = Path(stack.enter_context(TemporaryDirectory(prefix=ASIDE, dir=new.parent, ignore_cleanup_errors=True)))
        for path in earlier:
            path.rename(aside / path.name)
        try:
            yield bool(earlier)
        except BaseException:
            if new.exists():
                shutil.rmtree(new)
            for path in earlier:
                (aside / path.name).rename(path)
            raise
        for eval_log in eval_logs:
            if eval_log != log_path(load(new)[0]):
                eval_log.unlink(missing_ok=True)


def _write(directory: RunDirectory, converted: Converted) -> str | None:
    """Write the steps, calls and snapshots of a run.

    Returns:
        Why it cannot be graded; None if it can.
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
    """Return why the final files cannot be graded here; None if they can."""
    name = converted.info.spec.task
    if not is_known(name):
        return f"there is no task {name} here, and so no grader"
    task = task_of(converted.info.spec)
    other = converted.info.imported and converted.info.imported.not_graded
    lacking = [path for path in task.spec.submission.required if path not in final.entries]
    if lacking:
        return f"its final files hold no submission: {', '.join(lacking)} is missing"
    if other:
        return other
    if task.preparer and not (place_of(task, VARIANT, cache_directory()) / RECORD).exists():
        return f"the real data of {name} is not prepared here: mlab prepare {name} --variant full, then mlab grade"
    return None


def _grade(directory: RunDirectory, converted: Converted) -> None:
    try:
        interrupts.run(regrade(directory))
    except MLAgentBenchError as error:
        directory.write_result(_result(converted, str(error)))


def _result(converted: Converted, reason: str | None) -> Result:
    """Return the ungraded result of a run."""
    ended, steps = converted.ending, converted.steps
    # `ended` explains an answer or a limit by itself; any other end needs a reason.
    why = ended.reason if ended.ended not in ("final_answer", "limit_steps", "limit_time") else None
    return Result(
        run=converted.info.run,
        outcome=Outcome(
            ended=ended.ended,
            verdict="ungraded",
            flags=("unsandboxed", "imported"),
            reason="; ".join(text for text in (why, reason) if text) or None,
        ),
        final_answer=converted.final_answer,
        steps=sum(step.counted for step in steps),
        seconds=converted.seconds,
        usage=converted.usage,
    )
