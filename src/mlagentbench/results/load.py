"""Read runs back from a log directory, for reports, tables and audits.

Finished runs, runs in progress and killed runs can be read. Damaged files are listed, and the rest of the run is read all the same. Runs
are counted in `counts.py`.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from mlagentbench.audit.audit import read_audit
from mlagentbench.audit.record import Audit
from mlagentbench.errors import RunNotFound, StorageFailed
from mlagentbench.records import ModelCall, Result, Role, Step, StepScore, Usage
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.directory import CALLS, OUTPUT, RunDirectory, find_runs
from mlagentbench.rundir.files import LARGEST_FILE, PUT_BACK, grade_again, numbers_of
from mlagentbench.task.spec import Metric
from mlagentbench.util.text import one_line
from mlagentbench.workspace.files import bytes_of
from mlagentbench.workspace.snapshots.snapshots import FileChange, Manifest, ManifestEntry, SnapshotStore

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Run:
    """One run, as stored on disk. Its model calls and its file changes are read only when asked for."""

    directory: RunDirectory
    info: RunInfo
    steps: tuple[Step, ...]
    """The published steps that can be read, in order."""
    result: Result | None
    """The run's result; None for a run in progress, a killed run, and a run whose result cannot be read."""
    damage: tuple[str, ...] = ()
    """The files of the run's directory that are missing or cannot be read, a line each: which file, what is wrong, and what to do."""
    result_is_damaged: bool = False
    """True if there is a result that cannot be read."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The run's damage, and for an imported run what was missing or torn in its logs, a line each."""
        return (*self.damage, *(self.info.imported.problems if self.info.imported else ()))

    @cached_property
    def audit(self) -> Audit | None:
        """The stored audit; None for a run that was not audited, and where the audit cannot be read, which `damage` names."""
        return unless_damaged(lambda: read_audit(self.directory))

    @property
    def name(self) -> str:
        """The run's name, unique in its log directory."""
        return self.info.run

    @property
    def seconds(self) -> float:
        """The time that the run took, without grading; so far, for a run without a result."""
        return self.result.seconds if self.result else sum(step.seconds for step in self.steps)

    @property
    def model_seconds(self) -> float:
        """The part of `seconds` spent waiting for models."""
        return self.result.model_seconds if self.result else sum(step.model_seconds for step in self.steps)

    @property
    def script_seconds(self) -> float:
        """The part of `seconds` in which the agent's scripts ran."""
        return self.result.script_seconds if self.result else sum(step.script_seconds for step in self.steps)

    @property
    def framework_seconds(self) -> float:
        """The rest of `seconds`; 0 for an imported run, since the parts of its time are not known."""
        return 0.0 if self.info.imported else max(0.0, self.seconds - self.model_seconds - self.script_seconds)

    @property
    def grading_seconds(self) -> float:
        """The time of grading, which is no part of `seconds`."""
        return self.result.grading_seconds if self.result else 0.0

    @property
    def usage(self) -> Usage:
        """The tokens, calls and cost of all roles together."""
        return self.result.total_usage if self.result else Usage.total(step.usage for step in self.steps)

    @property
    def usage_by_role(self) -> Mapping[Role, Usage]:
        """The tokens, calls and cost by role; empty for a run without a result."""
        return self.result.usage if self.result else {}

    @property
    def malformed(self) -> int:
        """The number of replies without an action, but for those after the last step."""
        return sum(step.malformed for step in self.steps)

    @property
    def failed(self) -> int:
        """The number of steps whose action was refused, failed, or was stopped by a limit."""
        return sum(step.status != "ok" for step in self.steps)

    @property
    def score(self) -> float | None:
        """The score of the run's last submission; None if it has none."""
        return self.result.score.value if self.result and self.result.score else None

    @property
    def scores(self) -> tuple[StepScore, ...]:
        """The scores of the submissions that were graded, in the order of steps; only the last if the run was graded at its end only."""
        if self.result is None:
            return ()
        scores = {score.step: score for score in self.result.step_scores}
        if self.result.score is not None:
            # The number of the last step may be greater than `result.steps`, which leaves out an agent's own bookkeeping.
            number = self.last_step or self.result.steps
            result, score = self.result, self.result.score
            last = StepScore(
                step=number,
                value=score.value,
                standard_error=score.standard_error,
                gain_error=result.gain_error,
                improvement=result.improvement,
                success=score.success,
                rung=score.rung,
                note=score.note,
            )
            scores.setdefault(last.step, last)
        return tuple(scores[number] for number in sorted(scores))

    @property
    def last_step(self) -> int:
        """The last step's number; 0 if there is none."""
        return self.steps[-1].number if self.steps else 0

    @property
    def after_last(self) -> int:
        """The number after the last step's. Model calls that led to no further step are stored under it."""
        return self.last_step + 1

    def calls(self, step: int) -> list[ModelCall]:
        """Return the model calls of a step, in order. Those of `after_last` led to no step.

        Raises:
            RunNotFound: the file of calls is damaged.
        """
        return self.directory.calls(step)

    def files(self, step: int) -> Mapping[str, ManifestEntry] | None:
        """Return the workspace's entries after a step (0 is the start) by path; None if the snapshot is missing.

        Raises:
            RunNotFound: the snapshot is damaged.
        """
        manifest = self.directory.manifest(step)
        return Manifest.load(manifest).entries if manifest.exists() else None

    def changes(self, step: int) -> tuple[FileChange, ...] | None:
        """Return what a step changed in the workspace; None if the snapshot before or after it is missing.

        Raises:
            RunNotFound: a snapshot is damaged.
        """
        before, after = self.directory.manifest(step - 1), self.directory.manifest(step)
        if not before.exists() or not after.exists():
            return None
        try:
            # Most steps change nothing, and then leave the same manifest.
            if bytes_of(before, LARGEST_FILE) == bytes_of(after, LARGEST_FILE):
                return ()
            store = SnapshotStore(self.directory.objects)
            return tuple(store.diff(Manifest.load(before), Manifest.load(after)))
        except (OSError, StorageFailed) as error:
            raise RunNotFound(f"{self.directory.path}: the changes of step {step} cannot be read: {one_line(str(error), 200)}") from None


class Loaded(NamedTuple):
    """The runs that were read, and the directories that were left out."""

    runs: list[Run]
    unreadable: list[str]
    """A line for each directory that is left out: its `run.json` cannot be read, or it is a copy of another run."""
    path: Path
    """The path that was read: a log directory, or one run's directory."""

    @property
    def damage(self) -> list[str]:
        """Everything that is missing or cannot be read, a line each."""
        return [*self.unreadable, *(line for run in self.runs for line in run.damage)]


def scan(path: Path, *, only: Iterable[RunDirectory] | None = None) -> Loaded:
    """Read every run at a path (a log directory, or one run's), or only some of them, oldest first.

    Raises:
        RunNotFound: there is no run at the path.
    """
    runs: list[Run] = []
    unreadable: list[str] = []
    for directory in find_runs(path) if only is None else only:
        try:
            runs.append(load_run(directory))
        except RunNotFound as error:
            unreadable.append(str(error))
    kept, copies = without_copies(runs)
    return Loaded(sorted(kept, key=by_start), unreadable + copies, path)


def without_copies(runs: Iterable[Run]) -> tuple[list[Run], list[str]]:
    """Return runs without copies, and a line for each copy. A directory that is found by two paths is returned once, without a line.

    Runs of the same name that began at the same moment are one run, which is then counted once: the one whose directory has its name, else
    the first.
    """
    found: dict[tuple[str, float], Run] = {}
    lines = []
    # The sort is stable, so that the first of equals stays the first.
    for run in sorted(runs, key=lambda run: run.directory.name != run.name):
        kept = found.setdefault((run.name, run.info.started), run)
        if kept.directory.path.resolve() != run.directory.path.resolve():
            lines.append(f"{run.directory.path} is a copy of {kept.directory.path}, which is counted in its place; move the copy elsewhere")
    return list(found.values()), lines


def by_start(run: Run) -> tuple[float, str]:
    """Return a sort key: the oldest run first. Runs of one experiment are sorted by name, since several machines may have started them."""
    scheduled = run.info.scheduled
    return run.info.started if scheduled is None else scheduled, run.name


def load(logs: Path) -> list[Run]:
    """Return the runs at a path, oldest first. A directory whose `run.json` cannot be read is left out; `scan` lists it.

    Raises:
        RunNotFound: there is no run at the path.
    """
    return scan(logs).runs


def load_run(directory: RunDirectory) -> Run:
    """Read one run, as far as it can be read.

    Raises:
        RunNotFound: its `run.json` is missing or damaged.
    """
    info = directory.info
    result, damage = None, dict[str, None]()
    result_is_damaged = False
    try:
        result = directory.result
        if result is not None:
            _check_result(directory, info, result)
    except RunNotFound as error:
        result = None
        result_is_damaged = True
        damage[str(error)] = None
    steps = []
    for number in directory.step_numbers():
        try:
            step = directory.step(number)
        except RunNotFound as error:
            damage[str(error)] = None
        else:
            if step is None:
                damage[f"{directory.path} is damaged: it has no step {number}, and has later ones; {PUT_BACK}"] = None
            else:
                steps.append(step)
    damage |= dict.fromkeys(_damage_beside(directory))
    try:
        read_audit(directory)
    except RunNotFound as error:
        damage[str(error)] = None
    if not info.spec.models and any(
        usage.calls for usage in (*(step.usage for step in steps), *((result and result.usage) or {}).values())
    ):
        raise RunNotFound(f"{directory.path / 'run.json'} is damaged: spec: models: it names none, and the run has asked one; {PUT_BACK}")
    return Run(directory, info, tuple(steps), result, tuple(damage), result_is_damaged)


def unless_damaged(read: Callable[[], T]) -> T | None:
    """Call a function that reads a part of a run; return None if that part is damaged, since `Run.damage` lists it."""
    try:
        return read()
    except RunNotFound:
        return None


def _check_result(directory: RunDirectory, info: RunInfo, result: Result) -> None:
    """Raise RunNotFound if a result is of another run, or an improvement contradicts its score.

    Nothing can be said of the improvement at an earlier step if the starter was timed beside it, which is not stored, or if the last step
    has no valid submission, with which the baseline is stored.
    """
    metric = Metric(name=info.metric, direction=info.direction, unit=info.unit)
    baseline = result.baseline
    scored = [("the submission", result.score.value if result.score else None, result.improvement)]
    if baseline is not None and baseline.source != "side_by_side":
        scored += [(f"step {score.step}", score.value, score.improvement) for score in result.step_scores]
    wrong = [f"it is the result of the run {result.run}"] if result.run != info.run else []
    for what, score, stored in scored:
        right = metric.improvement(score, baseline.value) if score is not None and baseline else None
        if stored != right and (stored is None or right is None or not math.isclose(stored, right, rel_tol=1e-6, abs_tol=1e-9)):
            wrong.append(f"the improvement of {what} is {stored}, and its score and the baseline make {right}")
    if wrong:
        raise RunNotFound(f"{directory.path / 'result.json'} is damaged: {wrong[0]}; {grade_again(directory.path)}")


def _damage_beside(directory: RunDirectory) -> Iterator[str]:
    """Yield a line for each damaged folder, snapshot, file of calls and output of a run."""
    for folder in (directory.workspace, directory.steps_folder, directory.snapshots_folder):
        try:
            os.listdir(folder)
        except OSError as error:
            yield f"{folder} is damaged: {error.strerror}; {PUT_BACK}"
    seen: set[bytes] = set()
    for number in sorted(numbers_of(directory.snapshots_folder)):
        manifest = directory.manifest(number)
        try:
            # Most steps change nothing, and then leave the same manifest.
            if (content := bytes_of(manifest, LARGEST_FILE)) not in seen:
                Manifest.load(manifest)
                seen.add(content)
        except OSError as error:
            yield f"{manifest} is damaged: {error.strerror or error}; {PUT_BACK}"
        except RunNotFound as error:
            yield str(error)
    for number in sorted(numbers_of(directory.steps_folder, rf"\.{CALLS}")):
        try:
            directory.calls(number)
        except RunNotFound as error:
            yield str(error)
    for number in sorted(numbers_of(directory.steps_folder, rf"\.{OUTPUT}")):
        output = directory.steps_folder / f"{number:04d}.{OUTPUT}"
        if not stat.S_ISREG(os.lstat(output).st_mode):
            yield f"{output} is damaged: it is no regular file; {PUT_BACK}"
