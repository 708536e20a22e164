"""Runs read back from a log directory: what reports, tables and audits start from.

Covered: finished runs, runs in progress, runs that were killed, and files that are torn, which are named while the rest is kept. Not
covered: what is counted of runs (`counts.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import RunNotFound, StorageFailed
from mlagentbench.records import ModelCall, Result, Role, Step, StepScore, Usage
from mlagentbench.run_spec import RunInfo
from mlagentbench.store.run_directory import RunDirectory, find_runs
from mlagentbench.workspace.snapshots import Entry, FileChange, Manifest, SnapshotStore


@dataclass(frozen=True, eq=False)
class Run:
    """One run as it lies on disk. Its model calls and its changes of files are read when they are asked for."""

    directory: RunDirectory
    info: RunInfo
    steps: tuple[Step, ...]
    """The published steps that can be read, in order."""
    result: Result | None
    """How it came out; None for a run in progress, one that was killed, and one whose result cannot be read."""
    problems: tuple[str, ...] = ()
    """What could not be read, a line each."""

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
        """What models were asked for a step, in order. Those of the step `after_last` led to none.

        Raises:
            RunNotFound: the file of calls is damaged.
        """
        try:
            return self.directory.calls(step)
        except (ValueError, OSError) as error:
            raise RunNotFound(f"{self.directory.path}: the model calls of step {step} cannot be read: {_line(error)}") from None

    def files(self, step: int) -> Mapping[str, Entry] | None:
        """The workspace after a step (0 is the start), by path; None where its snapshot is missing.

        Raises:
            RunNotFound: the snapshot is damaged.
        """
        manifest = self.directory.manifest(step)
        return Manifest.load(manifest).entries if manifest.exists() else None

    def lost(self, step: int) -> list[str]:
        """The large files of a step whose contents were let go, sorted; empty where its snapshot is missing."""
        manifest = self.directory.manifest(step)
        return SnapshotStore(self.directory.objects).lost(Manifest.load(manifest)) if manifest.exists() else []

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
            if before.read_bytes() == after.read_bytes():
                return ()
            store = SnapshotStore(self.directory.objects)
            return tuple(store.diff(Manifest.load(before), Manifest.load(after)))
        except (ValueError, OSError, StorageFailed) as error:
            raise RunNotFound(f"{self.directory.path}: the snapshot of step {step} cannot be read: {_line(error)}") from None


class Loaded(NamedTuple):
    """The runs that were read, and what of them cannot be."""

    runs: list[Run]
    unreadable: list[str]
    """A line for each directory whose `run.json` cannot be read."""
    path: Path
    """Where they lie: a log directory, or one run's directory."""


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
            runs.append(_load(directory))
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


def _load(directory: RunDirectory) -> Run:
    info = directory.info
    problems: list[str] = []
    try:
        result = directory.result
    except RunNotFound as error:
        result = None
        problems.append(str(error))
    steps, torn = _steps(directory)
    told = info.imported.problems if info.imported else ()
    return Run(directory, info, steps, result, (*problems, *torn, *told))


def _steps(directory: RunDirectory) -> tuple[tuple[Step, ...], list[str]]:
    try:
        return tuple(directory.steps()), []
    except RunNotFound:
        # One file is damaged: keep the others.
        steps: list[Step] = []
        torn: list[str] = []
        for path in sorted(directory.steps_folder.glob("[0-9]*.json")):
            try:
                steps.append(Step.model_validate_json(path.read_bytes()))
            except ValueError as error:
                torn.append(f"{path} cannot be read: {_line(error)}")
        return tuple(steps), torn


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
