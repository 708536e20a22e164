"""Runs read back from a log directory: what reports, tables and audits start from.

Covered: finished runs, runs in progress, runs that were killed, and files that are torn, which are named while the rest is kept. Not
covered: what is counted of runs (`counts.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from mlagentbench.errors import RunNotFound, StorageFailed
from mlagentbench.records import ModelCall, Result, Role, Step, StepScore, Usage
from mlagentbench.run_spec import RunInfo
from mlagentbench.store.files import PUT_BACK
from mlagentbench.store.run_directory import OUTPUT, RunDirectory, find_runs
from mlagentbench.workspace.files import bytes_of
from mlagentbench.workspace.snapshots import Entry, FileChange, Manifest, SnapshotStore

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Run:
    """One run as it lies on disk. Its model calls and its changes of files are read when they are asked for."""

    directory: RunDirectory
    info: RunInfo
    steps: tuple[Step, ...]
    """The published steps that can be read, in order."""
    result: Result | None
    """How it came out; None for a run in progress, one that was killed, and one whose result cannot be read."""
    damage: tuple[str, ...] = ()
    """The files of its directory that are missing or cannot be read, a line each: which, what is wrong, and what to do."""
    result_is_damaged: bool = False
    """Whether there is a result that cannot be read."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Its damage, and for an imported run what was missing or torn of its logs, a line each."""
        return (*self.damage, *(self.info.imported.problems if self.info.imported else ()))

    @property
    def name(self) -> str:
        """Its name, unique in its log directory."""
        return self.info.run

    @property
    def seconds(self) -> float:
        """How long it took, from its first question to its last observation; so far, for a run without a result."""
        return self.result.seconds if self.result else sum(step.seconds for step in self.steps)

    @property
    def model_seconds(self) -> float:
        """The part of `seconds` that went by waiting for models."""
        return self.result.model_seconds if self.result else sum(step.model_seconds for step in self.steps)

    @property
    def script_seconds(self) -> float:
        """The part of `seconds` in which the agent's scripts ran."""
        return self.result.script_seconds if self.result else sum(step.script_seconds for step in self.steps)

    @property
    def framework_seconds(self) -> float:
        """The rest of `seconds`; 0 for an imported run, of which nobody knows how its time was shared."""
        return 0.0 if self.info.imported else max(0.0, self.seconds - self.model_seconds - self.script_seconds)

    @property
    def grading_seconds(self) -> float:
        """What grading took, beyond `seconds`."""
        return self.result.grading_seconds if self.result else 0.0

    @property
    def usage(self) -> Usage:
        """Tokens, calls and cost of all roles together."""
        return self.result.total_usage if self.result else Usage.total(step.usage for step in self.steps)

    @property
    def usage_by_role(self) -> Mapping[Role, Usage]:
        """The same by role; empty for a run without a result."""
        return self.result.usage if self.result else {}

    @property
    def malformed(self) -> int:
        """Replies that held no action, those before the last step."""
        return sum(step.malformed for step in self.steps)

    @property
    def failed(self) -> int:
        """Steps whose action was refused, failed, or was stopped by a limit."""
        return sum(step.status != "ok" for step in self.steps)

    @property
    def score(self) -> float | None:
        """The score of the submission that the run left."""
        return self.result.score.value if self.result and self.result.score else None

    @property
    def scores(self) -> tuple[StepScore, ...]:
        """The submission after each step that was graded, in order. A run graded at its end only has that one."""
        if self.result is None:
            return ()
        scores = {score.step: score for score in self.result.step_scores}
        if self.result.score is not None:
            # Not `result.steps`, which leaves out an agent's own bookkeeping.
            number = self.steps[-1].number if self.steps else self.result.steps
            last = StepScore(step=number, value=self.result.score.value, improvement=self.result.improvement)
            scores.setdefault(last.step, last)
        return tuple(scores[number] for number in sorted(scores))

    @property
    def after_last(self) -> int:
        """The number that the next step would have: questions to models that led to no step any more are kept under it."""
        return (self.steps[-1].number if self.steps else 0) + 1

    def calls(self, step: int) -> list[ModelCall]:
        """Return what models were asked for a step, in order. Those of the step `after_last` led to none.

        Raises:
            RunNotFound: the file of calls is damaged.
        """
        return self.directory.calls(step)

    def files(self, step: int) -> Mapping[str, Entry] | None:
        """The workspace after a step (0 is the start), by path; None where its snapshot is missing.

        Raises:
            RunNotFound: the snapshot is damaged.
        """
        manifest = self.directory.manifest(step)
        return Manifest.load(manifest).entries if manifest.exists() else None

    def lost(self, step: int) -> list[str]:
        """The large files of a step whose contents were let go, sorted; empty where its snapshot is missing or damaged."""
        try:
            return SnapshotStore(self.directory.objects).lost(Manifest.load(self.directory.manifest(step)))
        except RunNotFound:
            return []

    def changes(self, step: int) -> tuple[FileChange, ...] | None:
        """What a step changed in the workspace; None where the snapshot before or after it is missing.

        Raises:
            RunNotFound: a snapshot is damaged.
        """
        before, after = self.directory.manifest(step - 1), self.directory.manifest(step)
        if not before.exists() or not after.exists():
            return None
        try:
            # Most steps change nothing, and then leave the same manifest.
            if bytes_of(before) == bytes_of(after):
                return ()
            store = SnapshotStore(self.directory.objects)
            return tuple(store.diff(Manifest.load(before), Manifest.load(after)))
        except (OSError, StorageFailed) as error:
            raise RunNotFound(f"{self.directory.path}: the changes of step {step} cannot be told: {_line(error)}") from None


class Loaded(NamedTuple):
    """The runs that were read, and what of them cannot be."""

    runs: list[Run]
    unreadable: list[str]
    """A line for each directory whose `run.json` cannot be read."""
    path: Path
    """Where they lie: a log directory, or one run's directory."""

    @property
    def damage(self) -> list[str]:
        """All that is missing or cannot be read, a line each."""
        return [*self.unreadable, *(line for run in self.runs for line in run.damage)]


def scan(path: Path, *, only: Iterable[RunDirectory] | None = None) -> Loaded:
    """Read every run at a path: a log directory, or one run's directory. Oldest first.

    Args:
        path: where they lie.
        only: the runs to read; None for all that are there.

    Raises:
        RunNotFound: there is none at all.
    """
    runs: list[Run] = []
    unreadable: list[str] = []
    for directory in find_runs(path) if only is None else only:
        try:
            runs.append(load_run(directory))
        except RunNotFound as error:
            unreadable.append(str(error))
    runs.sort(key=lambda run: (run.info.started, run.name))
    return Loaded(runs, unreadable, path)


def load(logs: Path) -> list[Run]:
    """The runs at a path, oldest first. A directory whose `run.json` cannot be read is left out; `scan` names it.

    Raises:
        RunNotFound: there is none at all.
    """
    return scan(logs).runs


def load_run(directory: RunDirectory) -> Run:
    """Read one run, all that can be read of it.

    Raises:
        RunNotFound: its `run.json` is missing or damaged.
    """
    info = directory.info
    result, damage = None, dict[str, None]()
    result_is_damaged = False
    try:
        result = directory.result
    except RunNotFound as error:
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
    damage |= dict.fromkeys(_damage_beside(directory, steps[-1].number if steps else 0))
    return Run(directory, info, tuple(steps), result, tuple(damage), result_is_damaged)


def unless_damaged(read: Callable[[], T]) -> T | None:
    """Return what is read of a run; None where it is damaged, which `Run.damage` tells."""
    try:
        return read()
    except RunNotFound:
        return None


def _damage_beside(directory: RunDirectory, last: int) -> Iterator[str]:
    """Tell the damage to what lies beside the steps up to the last: snapshots, calls, output and the workspace."""
    for folder in (directory.workspace, directory.steps_folder, directory.path / "snapshots"):
        if not folder.is_dir():
            yield f"{folder} is damaged: it is no folder; {PUT_BACK}"
    seen: set[bytes] = set()
    for number in range(last + 2):
        manifest = directory.manifest(number)
        try:
            # Most steps change nothing, and then leave the same manifest.
            if os.path.lexists(manifest) and (content := bytes_of(manifest)) not in seen:
                Manifest.load(manifest)
                seen.add(content)
        except OSError as error:
            yield f"{manifest} is damaged: {error.strerror or error}; {PUT_BACK}"
        except RunNotFound as error:
            yield str(error)
        try:
            directory.calls(number)
        except RunNotFound as error:
            yield str(error)
        output = directory.steps_folder / f"{number:04d}.{OUTPUT}"
        if os.path.lexists(output) and not output.is_file():
            yield f"{output} is damaged: it is no regular file; {PUT_BACK}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
