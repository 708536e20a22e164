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


HEADING = 3
"""How many lines above a result a line may stand that says what it is of."""


class ShownText:
    """A text that the agent saw: the output of a script, or a file. What its numbers are of is found out when it is asked for.

    Args:
        step: the step that showed it; 0 for the task's description.
        text: the text.
        script: the script that printed it; None for a file.
    """

    def __init__(self, step: int, text: str, script: str | None) -> None:
        self.step = step
        self.script = script
        self.lines = [line[:_LONGEST] for line in text.splitlines()]
        self._numbers = {index: found for index, line in enumerate(self.lines) if (found := numbers(line))}
        self._labels: dict[int, list[ResultLabel]] = {}

    @cached_property
    def readings(self) -> list[Reading]:
        """The numbers of the text, in order."""
        return [Reading(self, index, number, place) for index, found in self._numbers.items() for place, number in enumerate(found)]

    def labels(self, index: int) -> list[ResultLabel]:
        """Return what the numbers of a line, by its index, are of."""
        if index not in self._labels:
            found = self._numbers.get(index, [])
            self._labels[index] = [label(self.lines[index], found, place) for place in range(len(found))]
        return self._labels[index]


class Reading:
    """A number that the agent saw."""

    __slots__ = ("_index", "_place", "_shown", "number")

    def __init__(self, shown: ShownText, index: int, number: WrittenNumber, place: int) -> None:
        self._shown = shown
        self._index = index
        self._place = place
        self.number = number

    @property
    def step(self) -> int:
        """The step that showed it."""
        return self._shown.step

    @property
    def script(self) -> str | None:
        """The script that printed it; None for one that stood in a file."""
        return self._shown.script

    @property
    def line(self) -> int:
        """The number of its line, from 1."""
        return self._index + 1

    @property
    def text(self) -> str:
        """Its line."""
        return self._shown.lines[self._index]

    @property
    def label(self) -> ResultLabel:
        """The metric and split that the number belongs to, as its line says."""
        return self._shown.labels(self._index)[self._place]

    @property
    def heading(self) -> str:
        """The nearest line above, within three lines, that has no result, such as the name of a model whose scores follow."""
        for index in range(self._index, max(-1, self._index - HEADING - 1), -1):
            if not any(named.metric for named in self._shown.labels(index)):
                return self._shown.lines[index]
        return ""


@dataclass(frozen=True)
class ScriptRun:
    """A script that ran."""

    step: int
    script: str
    succeeded: bool
    output: ShownText

    @property
    def readings(self) -> Sequence[Reading]:
        """The numbers that it printed, in order."""
        return self.output.readings


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
    files = list(ShownText(0, description, None).readings)
    for step in steps:
        for path in written(step):
            changes.setdefault(path, []).append(step.number)
        script = executed(step)
        if script is not None:
            executions.append(ScriptRun(step.number, script, step.status == "ok", ShownText(step.number, step.observation, script)))
        elif step.action.name in _READING:
            files += ShownText(step.number, step.observation, None).readings
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


def quoted(reading: Reading) -> Evidence:
    """Return a reading as the evidence of a claim."""
    return Evidence(step=reading.step, line=reading.line, text=reading.text.strip())
