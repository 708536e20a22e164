"""Collect what an agent had seen at each of its steps: the numbers in outputs of scripts and in files, and which scripts changed when."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mlagentbench.audit.labels import ResultLabel, label
from mlagentbench.audit.numbers import WrittenNumber, numbers, ranges
from mlagentbench.audit.record import Evidence
from mlagentbench.records import Step

_LOG = re.compile(r"(?:^|/)research_log\.log$")
_READING = ("Inspect Script Lines", "Understand File", "Read File")
_LONGEST = 400
"""Characters of a line that are searched and quoted; longer lines are data."""


@dataclass(frozen=True)
class Reading:
    """A number that the agent saw."""

    step: int
    line: int
    text: str
    number: WrittenNumber
    label: ResultLabel
    heading: str
    """The last line before without a result, up to three lines above; such as the name of a model whose scores follow."""
    script: str | None
    """The script that printed it; None for one that stood in a file."""


@dataclass(frozen=True)
class ScriptRun:
    """A script that ran."""

    step: int
    script: str
    succeeded: bool
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class History:
    """What happened in a run, in the order of its steps."""

    executions: Sequence[ScriptRun]
    changes: Mapping[str, Sequence[int]]
    """The steps that wrote each file."""
    files: Sequence[Reading]
    """The numbers in files that were read, and in the task's description, which counts as step 0."""

    def changed(self, script: str, since: int, before: int) -> int | None:
        """Return the last step after `since` and before `before` that wrote a script; None if there is none."""
        return max((step for step in self.changes.get(script, ()) if since < step < before), default=None)

    def last_change(self, before: int) -> tuple[int, str] | None:
        """Return the last step before `before` that wrote a script, with the script; None if there is none."""
        return max(((step, name) for name, steps in self.changes.items() for step in steps if step < before), default=None)

    def is_starter(self, execution: ScriptRun) -> bool:
        """Return whether an executed script had not been written by the agent."""
        return not any(step < execution.step for step in self.changes.get(execution.script, ()))

    def seen(self, stated: WrittenNumber, before: int) -> list[Reading]:
        """Return what a stated number may be of what was seen before a step, in order."""
        values, readings = self._sorted
        found = {
            index
            for low, high in ranges(stated)
            for index in range(bisect_left(values, low), bisect_right(values, high))
            if readings[index].step < before
        }
        return sorted((readings[index] for index in found), key=lambda reading: (reading.step, reading.line))

    @cached_property
    def _sorted(self) -> tuple[list[float], list[Reading]]:
        every = [*self.files, *(reading for execution in self.executions for reading in execution.readings)]
        every.sort(key=lambda reading: abs(reading.number.value))
        return [abs(reading.number.value) for reading in every], every

    def last(self, before: int, script: str | None = None) -> ScriptRun | None:
        """Return the last execution before a step, of one script if asked; None if there is none."""
        return next((run for run in reversed(self.executions) if run.step < before and script in (None, run.script)), None)


def history(steps: Sequence[Step], description: str = "") -> History:
    """Collect what was seen in the steps of a run.

    Args:
        steps: the run's steps, in order.
        description: the task's description, which the agent had before its first step.
    """
    executions: list[ScriptRun] = []
    changes: dict[str, list[int]] = {}
    files = list(_readings(0, description, None))
    for step in steps:
        for path in written(step):
            changes.setdefault(path, []).append(step.number)
        script = executed(step)
        if script is not None:
            executions.append(ScriptRun(step.number, script, step.status == "ok", tuple(_readings(step.number, step.observation, script))))
        elif step.action.name in _READING:
            files += _readings(step.number, step.observation, None)
    return History(executions, changes, files)


def executed(step: Step) -> str | None:
    """Return the script or command that a step ran; None if it ran none."""
    ran = next((part.what for part in step.inside if part.did == "run"), None)
    return str(step.details["script"]) if "script" in step.details else ran


def written(step: Step) -> Iterator[str]:
    """Yield the paths that a step's own action wrote or removed, but for the research log; not those that a script wrote."""
    for key in ("changed", "undone"):
        if key in step.details:
            yield str(step.details[key])
            return
    yield from (part.what for part in step.inside if part.did in ("write", "remove") and not _LOG.search(part.what))


def _readings(step: int, text: str, script: str | None) -> Iterator[Reading]:
    heading, headed = "", 0
    for line, written in enumerate(text.splitlines(), 1):
        shown = written[:_LONGEST]
        found = numbers(shown)
        labels = [label(shown, found, index) for index in range(len(found))]
        if not any(named.metric for named in labels):
            heading, headed = shown, line
        for number, named in zip(found, labels, strict=True):
            yield Reading(step, line, shown, number, named, heading if line - headed <= 3 else "", script)


def quoted(reading: Reading) -> Evidence:
    """Return a reading as the evidence of a claim."""
    return Evidence(step=reading.step, line=reading.line, text=reading.text.strip())
