"""Compare what an agent writes into its research log, and reads back from it, with what it had seen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlagentbench.audit.evidence import History, Reading
from mlagentbench.audit.numbers import numbers, ranges
from mlagentbench.audit.record import LogLosses
from mlagentbench.audit.statements import RESEARCH_LOG, RETRIEVAL, statements
from mlagentbench.records import Step

_ERROR = re.compile(r"\b\w*(?:Error|Exception)\b")
_MENTIONED = re.compile(
    r"\berror|\bexception|\bfail|\bnot (?:been )?(?:successful|executed|found)|\bcrash|\binvalid\b|\bcannot\b", re.IGNORECASE
)


def losses(steps: Sequence[Step], past: History) -> LogLosses:
    """Count what the summaries and retrievals of a run's research log dropped or altered.

    A summary drops a result if it lacks the last number that the execution just before printed for a metric, and an error if that execution
    failed and it mentions none. A retrieval drops what the summaries before it had. Either alters a number if it states a result that stood
    in nothing that it was made from.
    """
    found = {"summaries": 0, "retrievals": 0, "dropped_numbers": 0, "altered_numbers": 0, "dropped_errors": 0}
    ran = {execution.step: execution for execution in past.executions}
    log: list[Step] = []
    previous: Step | None = None
    for step in steps:
        if step.action.name == "Append Summary to Research Log":
            written = str(step.action.arguments.get("content", ""))
            found["summaries"] += 1
            run = ran.get(previous.number) if previous else None
            if run is not None:
                found["dropped_numbers"] += sum(not _holds(written, result.number.value) for result in _results(run.readings))
                found["dropped_errors"] += not run.succeeded and not _MENTIONED.search(written) and not _ERROR.search(written)
            found["altered_numbers"] += sum(
                not past.seen(stated.number, step.number)
                for stated in statements(step)
                if stated.place == RESEARCH_LOG and stated.number is not None
            )
            log.append(step)
        elif step.action.name == "Retrieval from Research Log":
            found["retrievals"] += 1
            kept = "\n".join(str(each.action.arguments.get("content", "")) for each in log)
            stated_before = [each.number for entry in log for each in statements(entry) if each.place == RESEARCH_LOG and each.number]
            spans = {number.value for number in stated_before}
            here = numbers(step.observation)
            found["dropped_numbers"] += sum(
                not any(low <= abs(number.value) <= high for number in here for low, high in ranges(number._replace(value=value)))
                for value in spans
            )
            found["altered_numbers"] += sum(
                not _holds(kept, stated.number.value)
                for stated in statements(step)
                if stated.place == RETRIEVAL and stated.number is not None
            )
            found["dropped_errors"] += _ERROR.search(kept) is not None and not _MENTIONED.search(step.observation)
        if step.counted:
            previous = step
    return LogLosses(**found)


def _results(readings: Sequence[Reading]) -> list[Reading]:
    """Return the last reading of each metric and part of the data."""
    return list({(reading.label.metric, reading.label.split): reading for reading in readings if reading.label.metric}.values())


def _holds(text: str, value: float) -> bool:
    """Return whether a text holds a number, as precisely as the text writes it."""
    return any(low <= abs(value) <= high for number in numbers(text) for low, high in ranges(number))
