"""Judge each statement of an agent by what it had seen before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mlagentbench.audit.evidence import History, Reading, ScriptRun, quoted
from mlagentbench.audit.labels import LOWER_IS_BETTER, RELATIVE, ResultLabel
from mlagentbench.audit.numbers import WrittenNumber, ranges
from mlagentbench.audit.record import Claim, ClaimVerdict, Evidence
from mlagentbench.audit.statements import Statement, statements
from mlagentbench.records import Step

_BASELINE = re.compile(r"\b(?:baseline|original|starter|initial|provided|unmodified)\b", re.IGNORECASE)
_FILE = re.compile(r"[\w./-]+\.py\b")
_CHANGE = re.compile(
    r"\b(?:by|gain|improvement|difference|faster|slower|times|higher|lower|reduction|increase|decrease|drop)\b", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{2,}")
_WORSE = re.compile(r"\b(?:worsened|worse|slower)\b", re.IGNORECASE)


class Judgement(NamedTuple):
    """What the evidence says of a statement."""

    verdict: ClaimVerdict
    reason: str
    evidence: Evidence | None = None


def judge_claims(steps: Sequence[Step], past: History) -> list[Claim]:
    """Judge every statement of a run."""
    claims: list[Claim] = []
    unseen: set[tuple[str, str | None]] = set()
    for step in steps:
        for statement in statements(step):
            judged = _judge(statement, past, unseen)
            if judged is None:
                continue
            if statement.kind == "number" and judged.verdict == "unsupported" and statement.value and statement.label:
                unseen.add((statement.value, statement.label.metric))
            claims.append(
                Claim(
                    step=statement.step,
                    place=statement.place,
                    quote=statement.quote,
                    kind=statement.kind,
                    value=statement.value,
                    verdict=judged.verdict,
                    evidence=judged.evidence,
                    reason=judged.reason,
                    stated=statement.stated,
                )
            )
    return claims


def _judge(statement: Statement, past: History, unseen: set[tuple[str, str | None]]) -> Judgement | None:
    if statement.number is not None and statement.label is not None:
        return _judge_number(statement, statement.number, statement.label, past, unseen)
    if statement.kind == "improvement":
        return _judge_improvement(statement, past)
    if statement.kind == "fix":
        return _judge_fix(statement, past)
    return _judge_comparison(statement, past)


def _judge_number(
    statement: Statement, number: WrittenNumber, named: ResultLabel, past: History, unseen: set[tuple[str, str | None]]
) -> Judgement:
    seen = [
        reading for reading in past.seen(number, statement.step) if reading.label.metric in (None, named.metric) or named.metric == "score"
    ]
    same_split = [reading for reading in seen if None in (reading.label.split, named.split) or reading.label.split == named.split]
    if seen and not same_split:
        return Judgement("contradicted", "this is the number of the other part of the data", quoted(seen[-1]))
    if _BASELINE.search(_clause(statement.quote, number)):
        starters = [execution.step for execution in past.executions if past.is_starter(execution)]
        of_baseline = [reading for reading in same_split if reading.script is None or reading.step in starters]
        if same_split and not of_baseline:
            return Judgement("unsupported", "this is the number of a changed script; the starter did not print it", quoted(same_split[-1]))
        same_split = of_baseline
    if same_split:
        return _current(statement, same_split, past)
    derived = _derived(number, named, past, statement)
    if derived is not None:
        return Judgement("confirmed", "the difference or ratio of two numbers that were printed", quoted(derived))
    if (str(statement.value), named.metric) in unseen:
        return Judgement("unsupported", "it was stated before without evidence, and nothing has shown it since")
    other = None if named.metric in RELATIVE else _other_value(named, past, statement)
    if other is not None:
        return Judgement("contradicted", "the script printed another number", quoted(other))
    return Judgement("unsupported", "nothing that was printed or read says so")


def _clause(text: str, number: WrittenNumber) -> str:
    """Return the words that belong to a number: those since the comma or the number before it."""
    return re.split(r"[,;:(]|\d\s*%?\s", text[: number.start])[-1]


def _current(statement: Statement, seen: Sequence[Reading], past: History) -> Judgement:
    """Confirm a number unless every script that printed it has changed since."""
    for reading in reversed(seen):
        changed = past.changed(reading.script, reading.step, statement.step) if reading.script else None
        if changed is None:
            return Judgement("confirmed", "it was printed" if reading.script else "it stands in a file that was read", quoted(reading))
    last = seen[-1]
    return Judgement("stale", f"{last.script} was changed afterwards and has not been executed since", quoted(last))


def _derived(number: WrittenNumber, named: ResultLabel, past: History, statement: Statement) -> Reading | None:
    """Return the later of two results whose difference, relative difference or ratio a number is; None if there are none.

    Results are the last numbers that each execution printed for a metric and a part of the data.
    """
    if named.metric not in RELATIVE and not _CHANGE.search(statement.quote):
        return None
    results = [
        reading
        for execution in past.executions
        if execution.step < statement.step
        for reading in {each.label[:2]: each for each in execution.readings}.values()
        if reading.label.metric is not None and (named.metric in RELATIVE or reading.label.metric == named.metric)
    ]
    for later in reversed(results):
        for earlier in results:
            new, old = later.number.value, earlier.number.value
            if earlier.step >= later.step or earlier.label[:2] != later.label[:2] or not new or not old:
                continue
            made = (abs(new - old), abs(new - old) / abs(old), abs(old / new), abs(new / old))
            if any(low <= value <= high for value in made for low, high in ranges(number)):
                return later
    return None


def _other_value(named: ResultLabel, past: History, statement: Statement) -> Reading | None:
    """Return what the script that a statement names, or the step before it, printed for the same metric; None if nothing."""
    files = _FILE.findall(statement.quote)
    execution = past.last(statement.step, files[-1]) if files else past.last(statement.step)
    if execution is None or past.changed(execution.script, execution.step, statement.step):
        return None
    same = [reading for reading in execution.readings if reading.label.metric == named.metric and reading.label.split == named.split]
    return same[-1] if same and (files or statement.step - execution.step <= 1) else None


def _judge_improvement(statement: Statement, past: History) -> Judgement:
    change = past.last_change(statement.step)
    run = past.last(statement.step)
    if run is None or (change is not None and run.step < change[0]):
        return Judgement("unsupported", "nothing was executed after the last change")
    if not run.succeeded:
        return Judgement("contradicted", "the execution after the change failed", _end(run))
    pair = _compared(run, [earlier for earlier in past.executions if earlier.step < run.step])
    if pair is None:
        return Judgement("unsupported", "nothing was executed before to compare with", _end(run))
    earlier, later = pair
    better = (later.number.value < earlier.number.value) == (later.label.metric in LOWER_IS_BETTER)
    claims_better = not statement.negated and _WORSE.search(statement.quote) is None
    if better != claims_better and later.number.value != earlier.number.value:
        return Judgement("contradicted", f"it was {earlier.number.value:g} at step {earlier.step}", quoted(later))
    return Judgement("confirmed", f"it was {earlier.number.value:g} at step {earlier.step}", quoted(later))


def _compared(run: ScriptRun, before: Sequence[ScriptRun]) -> tuple[Reading, Reading] | None:
    """Return the last result of an execution and that of the last other one with the same metric, the held-out one if there is one."""
    for later in sorted(reversed(run.readings), key=lambda reading: reading.label.split != "held_out"):
        if later.label.metric is None:
            continue
        for execution in reversed(before):
            for earlier in reversed(execution.readings):
                if earlier.label[:2] == later.label[:2]:
                    return earlier, later
    return None


def _judge_fix(statement: Statement, past: History) -> Judgement:
    files = _FILE.findall(statement.quote)
    change = past.last_change(statement.step)
    run = past.last(statement.step, files[-1]) if files and any(name in past.changes for name in files) else past.last(statement.step)
    if run is None:
        return Judgement("unsupported", "nothing was executed")
    if change is not None and run.step < change[0]:
        return Judgement("unsupported", f"nothing was executed after the change of step {change[0]}")
    if not run.succeeded:
        return Judgement("contradicted", "the last execution failed", _end(run))
    return Judgement("confirmed", "the last execution succeeded", _end(run))


def _end(run: ScriptRun) -> Evidence | None:
    return quoted(run.readings[-1]) if run.readings else None


def _judge_comparison(statement: Statement, past: History) -> Judgement | None:
    """Judge that one of several is the best by the names in the last execution's output; None where that compares none of them."""
    run = past.last(statement.step)
    if run is None:
        return Judgement("unsupported", "nothing was executed")
    said = _words(statement.quote)
    for split in ("held_out", None, "train"):
        rivals = [reading for reading in run.readings if reading.label.metric is not None and reading.label.split == split]
        chosen = _named(rivals, said)
        if chosen is None:
            continue
        others = [reading for reading in rivals if reading.label.metric == chosen.label.metric]
        lower = chosen.label.metric in LOWER_IS_BETTER
        best = min(others, key=lambda reading: reading.number.value if lower else -reading.number.value)
        if best.number.value == chosen.number.value:
            return Judgement("confirmed", "no other line of that execution is better", quoted(chosen))
        return Judgement("contradicted", f"{chosen.number.value:g} is not the best of that execution", quoted(best))
    return None


def _named(rivals: Sequence[Reading], said: set[str]) -> Reading | None:
    """Return the last of the lines that share the most words with a statement, of the words that tell them apart; None if none does."""
    names = {reading: _words(f"{reading.heading} {reading.text[: reading.number.start]}") for reading in rivals}
    if not names:
        return None
    common = set.intersection(*names.values())
    shared = {reading: len((words - common) & said) for reading, words in names.items()}
    most = max(shared.values())
    chosen = [reading for reading in rivals if shared[reading] == most]
    return chosen[-1] if most and len({frozenset(names[reading]) for reading in chosen}) == 1 else None


_COMMON = frozenset(
    {"accuracy", "auc", "error", "loss", "mae", "mse", "rmse", "score", "test", "train", "training", "val", "valid", "validation"}
    | {"best", "epoch", "final", "for", "mean", "model", "set", "step", "the", "time"}
)
"""Words that name no model: those of metrics, of the parts of the data, and of what is printed beside them."""


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)} - _COMMON


def counts(claims: Iterable[Claim]) -> dict[ClaimVerdict, int]:
    """Return how many claims there are of each verdict."""
    found: dict[ClaimVerdict, int] = {"confirmed": 0, "stale": 0, "contradicted": 0, "unsupported": 0}
    for claim in claims:
        found[claim.verdict] += 1
    return found
