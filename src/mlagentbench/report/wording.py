"""Describe in words how a run went, for the terminal and the page. Every function is a pure function of records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from mlagentbench.audit.record import Audit, Claim, ClaimVerdict, FailureMode, SignKind
from mlagentbench.records import Baseline, BaselineSource, Direction, Flag, GradeStatus, Price, Result, Score, StepStatus, Termination
from mlagentbench.report.formatting import estimate, number, percent, plural, quantity
from mlagentbench.run_spec import RunInfo
from mlagentbench.task.success import THRESHOLD

MANY_TIMES = 1.995
"""From this ratio on, a change of time is shown as "2 times", below it in percent."""

BEST_STEP = "best step, chosen on the hidden test (optimistic)"
"""What numbers at the best step are called wherever they are shown: of many submissions, the best is so by luck, too."""

VERDICTS: Mapping[GradeStatus, str] = {
    "success": "success",
    "no_improvement": "no success",
    "invalid_submission": "invalid submission",
    "no_submission": "no submission",
    "ungraded": "not graded",
}

ENDED: Mapping[Termination, str] = {
    "final_answer": "ended by its final answer",
    "limit_steps": "ended at the limit of steps",
    "limit_time": "ended at the limit of time",
    "limit_tokens": "ended at the limit of tokens",
    "limit_cost": "ended at the limit of cost",
    "limit_storage": "ended at the limit of what it stored",
    "limit_context": "ended when its prompt no longer fitted the model",
    "format_failure": "ended after too many replies in a row that held no action",
    "agent_error": "ended by an error in the agent's own code",
    "infrastructure": "ended by a failure that was not the agent's, and is not counted against it",
    "cancelled": "cancelled, and not counted against the agent",
}

STATUSES: Mapping[StepStatus, str] = {
    "ok": "done",
    "error": "failed",
    "limit_time": "stopped: time limit",
    "limit_memory": "stopped: memory limit",
    "limit_output": "stopped: output limit",
    "limit_disk": "stopped: disk limit",
    "limit_processes": "stopped: process limit",
}


class FlagWords(NamedTuple):
    """A flag's title and its meaning."""

    title: str
    meaning: str


FLAGS: Mapping[Flag, FlagWords] = {
    "cheated": FlagWords(
        "cheated", "The audit found that the score was not earned by the task's means. Do not count this run as a success."
    ),
    "unsandboxed": FlagWords(
        "no sandbox",
        "The agent's scripts ran without isolation: they could read and change anything on their machine, the answers included.",
    ),
    "weak_isolation": FlagWords(
        "weak isolation",
        "The agent's scripts were confined by Landlock, which hides less than bubblewrap or Docker do: docs/sandbox.md says what.",
    ),
    "within_noise": FlagWords(
        "within the noise", "The gain is no larger than what another run of the starter, or other test rows, may give: it may be chance."
    ),
    "scripted_model": FlagWords(
        "scripted model",
        "The model's replies were written beforehand: this run says nothing about any model. The scripts it ran and the score are real.",
    ),
    "experience": FlagWords(
        "given experience",
        "The agent was given files of earlier work beside the task: do not compare this run with runs that had none.",
    ),
    "examples": FlagWords(
        "given examples",
        "The agent's prompt held solved examples: do not compare this run with runs that had none.",
    ),
    "documents": FlagWords(
        "given documents",
        "The agent could search a folder of documents: do not compare this run with runs that could not.",
    ),
    "near_zero_baseline": FlagWords(
        "baseline near zero",
        "Relative to a baseline this close to zero any change looks huge: read the scores themselves, not the percentage.",
    ),
    "paper_baseline": FlagWords(
        "the paper's baseline",
        "The baseline is the paper's constant, not measured on this machine or on this variant of the data: compare with care.",
    ),
    "answers_visible": FlagWords(
        "answers beside the agent",
        "The task's answers, or the code that computes its score, lie where the agent's scripts can read them: look at what they read.",
    ),
    "imported": FlagWords(
        "imported",
        "Another program carried this run out, and its logs were read in: its prompts, its actions and its machine were not those of the"
        " runs made here. How its time was shared between models and scripts is not known.",
    ),
}

SOURCES: Mapping[BaselineSource, str] = {
    "side_by_side": "measured side by side with the submission",
    "measured": "measured on this machine",
    "predictor": "a naive prediction, in the place of a starter that does not run",
    "paper": "the paper's constant, not measured here",
}


def direction_words(direction: Direction) -> str:
    """Return `higher is better` or `lower is better`."""
    return "higher is better" if direction == "maximize" else "lower is better"


def is_time(unit: str) -> bool:
    """Return whether a unit is one of time, so that less is faster."""
    return unit == "s" or unit.startswith("s/")


def threshold_value(baseline: float, direction: Direction) -> float:
    """Return the score that a success must be better than."""
    margin = THRESHOLD * abs(baseline)
    return baseline + margin if direction == "maximize" else baseline - margin


def change(value: float, baseline: float, unit: str, direction: Direction) -> str:
    """Compare a score with the baseline's: `363 times faster`, `18.2 % less time`, `26.5 % better`, `3 times slower`, `no change`."""
    if value == baseline:
        return "no change"
    better = (value > baseline) == (direction == "maximize")
    if is_time(unit) and direction == "minimize" and value > 0 and baseline > 0:
        ratio = baseline / value if better else value / baseline
        if ratio >= MANY_TIMES:
            return f"{_times(ratio)} times {'faster' if better else 'slower'}"
        return f"{_share(value, baseline)} {'less' if better else 'more'} time"
    if baseline == 0:
        return f"{'better' if better else 'worse'} than a baseline of 0"
    if value > 0 and value / baseline >= 10:
        return f"{_times(value / baseline)} times the baseline, {'better' if better else 'worse'}"
    return f"{_share(value, baseline)} {'better' if better else 'worse'}"


def scores(info: RunInfo, score: Score, baseline: float | None) -> str:
    """Return a score beside the baseline's: `3.03 ms against 1.10 s`, `accuracy 0.634 ± 0.012 against 0.501`."""
    name = "" if info.unit else f"{info.metric} "
    against = f" against {quantity(baseline, info.unit)}" if baseline is not None else ""
    return f"{name}{estimate(score.value, score.standard_error, info.unit)}{against}"


def headline(info: RunInfo, result: Result | None, *, damaged: bool = False) -> str:
    """Return a run's verdict in one line, for example `success: 3.03 ms against 1.10 s: 363 times faster`.

    Args:
        info: the run's `run.json`.
        result: its result; None where there is none, or where it cannot be read.
        damaged: whether there is a result that cannot be read.
    """
    if damaged:
        return "its result cannot be read"
    if result is None:
        return "no result yet: the run is in progress, or was stopped before it ended"
    verdict = VERDICTS[result.outcome.verdict]
    if result.score is None:
        return f"{verdict}: {result.outcome.reason}" if result.outcome.reason else verdict
    baseline = result.baseline.value if result.baseline else None
    line = f"{verdict}: {scores(info, result.score, baseline)}"
    if result.score.success is not None:
        return f"{line}: {result.score.note}" if result.score.note else line
    if baseline is None:
        return f"{line}, with no baseline to compare"
    line += f": {change(result.score.value, baseline, info.unit, info.direction)}"
    if result.outcome.verdict == "no_improvement" and result.improvement is not None and result.improvement > 0:
        line += f" (a success needs more than {THRESHOLD * 100:g} %)"
    return line


def baseline_words(baseline: Baseline, unit: str) -> str:
    """Return where a baseline comes from and its spread: `measured side by side with the submission, 3 times, ± 20 ms`."""
    words = SOURCES[baseline.source]
    if baseline.source in ("paper", "predictor"):
        return words
    if baseline.spread is None:
        return f"{words}, once: its spread is unknown"
    return f"{words}, {plural(len(baseline.values), 'time')}, ± {quantity(baseline.spread, unit, 2)}"


def outcome_words(result: Result | None) -> str:
    """Return what ended a run, to complete a sentence: `ended at the limit of steps`."""
    if result is None:
        return "not ended"
    return ENDED[result.outcome.ended]


def ended_briefly(ended: str) -> str:
    """Return what ended a run in two or three words: `step limit`, `final answer`."""
    return re.sub(r"^limit (\w+?)s?$", r"\1 limit", ended.replace("_", " "))


def price_words(prices: Iterable[Price]) -> str:
    """Return the prices by which a cost was computed: `at OpenAI's list prices (…) of 2026-03-21`; empty where they are not known."""
    sources = dict.fromkeys(price.source + (f" of {price.date}" if price.date else "") for price in prices)
    return f"at {' and '.join(sources)}" if sources else ""


def _times(ratio: float) -> str:
    shown = number(ratio)
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def _share(value: float, baseline: float) -> str:
    return percent(abs(value - baseline) / abs(baseline)).lstrip("+")


def mode_words(info: RunInfo, found: Audit) -> str:
    """Say why a run has its mode, and of a task of dependent changes, which one its plan broke at; empty if neither is known."""
    broke = found.plan.broke_at
    reasons = [found.mode.reason] if found.mode else []
    return "; ".join([*reasons, *([f"the plan broke at change {broke} of {info.rungs}"] if broke is not None else [])])


def verdict_counts(claims: Sequence[Claim]) -> str:
    """Return how many claims have which verdict, such as `2 confirmed, 1 stale`; for a single claim, its verdict."""
    judged = Counter(claim.verdict for claim in claims)
    return claims[0].verdict if len(claims) == 1 else ", ".join(f"{judged[each]} {each}" for each in get_args(ClaimVerdict) if judged[each])


LOST: Mapping[str, str] = {
    "dropped_numbers": "a result dropped",
    "dropped_errors": "an error dropped",
    "altered_numbers": "a number altered",
    "anything": "any of these",
}
"""What a research log may have lost, by the keys of `results.audited.LOSSES`."""
MODES: Mapping[FailureMode, str] = {
    "success": "success",
    "format_failures": "format failures",
    "token_limit": "token limit",
    "hallucination": "hallucination",
    "debugging": "debugging",
    "stopped_early": "stopped early",
    "no_submission": "no submission",
    "invalid_submission": "wrong format",
    "small_improvement": "small improvement",
    "zero_improvement": "no change",
    "bad_plan": "bad plan",
}
SIGNS: Mapping[SignKind, str] = {
    "answers": "looked for answers",
    "outside": "looked outside",
    "denied": "access denied",
    "network": "network",
    "timer": "timer replaced",
    "metric": "metric replaced",
    "data_edited": "data edited",
    "copied_data": "data copied into the submission",
    "no_data_read": "submitted without reading data",
    "printed_result": "printed a written result",
    "written_by_hand": "written by hand",
    "fake_observation": "made-up observation",
}
