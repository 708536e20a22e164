"""Count where plans of several steps break: edits without execution, repetitions, undoing, and the step after which nothing improved."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlagentbench.audit.evidence import executed, written
from mlagentbench.audit.record import Plan
from mlagentbench.records import Direction, Result, Step, StepScore
from mlagentbench.run_spec import RunInfo

Contents = Callable[[int], "frozenset[tuple[str, str]] | None"]
"""The files after a step, as paths with a hash of their content; None if they are not known."""


def plan_of(info: RunInfo, steps: Sequence[Step], result: Result | None, contents: Contents) -> Plan:
    """Count where the plan of a run broke."""
    counted = [step for step in steps if step.counted]
    edits = [step for step in counted if any(written(step))]
    return Plan(
        longest_edits=_longest_edits(counted),
        repeated=_repeated(counted),
        undone=sum(_undoes(step, contents) for step in edits),
        edits=len(edits),
        executions=sum(executed(step) is not None for step in counted),
        failed_executions=sum(executed(step) is not None and step.status != "ok" for step in counted),
        last_improved=_last_improved(result.step_scores if result else (), info.direction),
        broke_at=info.broke_at(result) if result else None,
    )


def _longest_edits(steps: Sequence[Step]) -> int:
    """Return the length of the longest chain of edits without an execution in between."""
    longest = chain = 0
    for step in steps:
        if executed(step) is not None:
            chain = 0
        elif any(written(step)):
            chain += 1
            longest = max(longest, chain)
    return longest


def _repeated(steps: Sequence[Step]) -> int:
    """Return how many steps repeat an earlier one, with the same arguments and the same observation, though no file changed in between."""
    repeated = 0
    since: set[tuple[str, str, str]] = set()
    for step in steps:
        key = (step.action.name, str(sorted(step.action.arguments.items())), step.observation)
        repeated += key in since
        if any(written(step)):
            since.clear()
        since.add(key)
    return repeated


def _undoes(step: Step, contents: Contents) -> bool:
    """Return whether a step put the files back as they were at an earlier step but the one before it."""
    if "undone" in step.details or step.action.name == "Undo Edit Script":
        return True
    now, before = contents(step.number), contents(step.number - 1)
    return now is not None and now != before and any(contents(earlier) == now for earlier in range(step.number - 1))


def _last_improved(scores: Sequence[StepScore], direction: Direction) -> int | None:
    """Return the last step whose submission was better than all before it; None if none has a score."""
    best: float | None = None
    last = None
    for score in scores:
        if score.value is not None and (best is None or (score.value > best if direction == "maximize" else score.value < best)):
            best, last = score.value, score.step
    return last
