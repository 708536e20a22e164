"""Measure how much one run did: its steps, how much of its files it changed, and how much it tried out."""

from __future__ import annotations

from typing import NamedTuple

from mlagentbench.errors import MLAgentBenchError
from mlagentbench.results.counts import executed
from mlagentbench.results.load import Run
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore


class Effort(NamedTuple):
    """What one run did."""

    steps: int
    """The steps that count against the limit of steps."""
    changed_lines: int | None
    """The lines added or removed, from the start to the end, in the files that the agent's actions changed; None without snapshots."""
    experiments: int
    """The executions of a script of which the files had been changed since the execution before, the first execution included."""
    restarts: int
    """The changes that were taken back: by an undo, or by a copy over a file that had been changed."""


def effort(run: Run) -> Effort:
    """Return what a run did."""
    written: dict[str, None] = {}
    experiments = restarts = 0
    changed = True
    for step in run.steps:
        details = step.details
        path = details.get("changed") or details.get("undone")
        if isinstance(path, str) and step.status == "ok":
            restarts += "undone" in details or (step.action.name == "Copy File" and path in written)
            written[path], changed = None, True
        if executed(step) and changed:
            experiments, changed = experiments + 1, False
    return Effort(sum(step.counted for step in run.steps), _changed_lines(run, set(written)), experiments, restarts)


def _changed_lines(run: Run, written: set[str]) -> int | None:
    first, last = run.directory.manifest(0), run.directory.manifest(run.last_step)
    try:
        changes = SnapshotStore(run.directory.objects).diff(Manifest.load(first), Manifest.load(last)) if first.exists() else None
    except (OSError, MLAgentBenchError):
        return None
    if changes is None:
        return None
    lines = [line for change in changes if change.path in written for line in (change.text or "").splitlines()[2:]]
    return sum(line.startswith(("+", "-")) for line in lines)
