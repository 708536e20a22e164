"""What is counted of one run.

Covered: how it ended, what its last and its best submission were worth, and what it took. A run in progress, one that was killed and one
whose files are torn are counted as far as they can be read. Not covered: several runs together (`cells.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from mlagentbench.errors import RunNotFound
from mlagentbench.records import BaselineSource, Flag, Role, Step
from mlagentbench.results.load import Run
from mlagentbench.tasks.spec import Metric
from mlagentbench.tasks.success import THRESHOLD, clears_noise, exceeds, is_success

THRESHOLDS = (0.05, THRESHOLD, 0.15, 0.20, 0.30)
"""The relative improvements for which success is counted; the paper's is 10%."""

EDITS = ("Edit Script (AI)", "Edit Script Segment (AI)", "Write File", "Append File")
"""The actions that write what a file holds. A copy and an undo write nothing new."""

UNFINISHED = "unfinished"
"""How a run without a result has ended: it is in progress, or was killed."""
DAMAGED = "damaged_result"
"""How a run has ended whose result cannot be read."""


class Best(NamedTuple):
    """The best submission that a run ever had."""

    step: int
    """The first step after which it stood."""
    score: float
    improvement: float | None
    """Relative to the baseline; None without one, and over a baseline of 0."""


class Counts(NamedTuple):
    """What is counted of one run: scores in the metric's unit, improvements as fractions, times in seconds, cost in US dollars."""

    ended: str
    """As `Outcome.ended`; `unfinished` for a run without a result, `damaged_result` for one whose result cannot be read."""
    verdict: str
    """As `Outcome.verdict`; `ungraded` for a run without a result."""
    flags: tuple[Flag, ...]
    reason: str | None
    """What went wrong, in one line, where something did."""
    final_answer: bool
    """Whether the agent gave one."""

    baseline: float | None
    baseline_source: BaselineSource | None
    score: float | None
    """At the last step; None without a valid submission."""
    improvement: float | None
    """At the last step, relative to the baseline (arXiv 2310.03302, section 3); positive for better."""
    best: Best | None
    """None where no step's submission was valid, or where not each step was graded (`every_step`)."""
    every_step: bool
    """Whether each step's submission was graded, so that the best one is known."""

    last_success: Mapping[float, bool]
    """By threshold (`THRESHOLDS`): the paper's rule at the last step, which is the paper's success at 0.1."""
    best_success: Mapping[float, bool] | None
    """The same at the best step; None where not each step was graded."""
    last_clears_noise: bool | None
    """The noise-calibrated rule (`tasks.success.clears_noise`) at the last step: False without a valid submission, None where the
    baseline has no spread."""
    best_clears_noise: bool | None
    """The same at the best step; None too where not each step was graded."""

    steps: int
    """Those that count against the limit of steps: an agent's own bookkeeping does not."""
    seconds: float
    """From the first question to the last observation: `model_seconds`, `script_seconds` and `framework_seconds` together."""
    model_seconds: float
    waited_seconds: float
    """The part of `model_seconds` spent waiting for rate limits and before retries."""
    script_seconds: float
    framework_seconds: float
    grading_seconds: float
    """Beyond `seconds`."""

    tokens: int
    """Prompt and completion, all roles together."""
    tokens_by_role: Mapping[Role, int]
    """Empty for a run without a result."""
    cost: float | None
    """None where any part of it is unknown."""

    edits: int
    """Edit actions (`EDITS`) that succeeded."""
    executions: int
    """Steps that ran a script or a command in Python."""
    failed_executions: int
    """Those of them whose script exited with another status than 0 or was stopped by a limit."""
    debugging_streak: int
    """The longest chain of consecutive executions that failed; whatever is done between them, such as edits, does not end it."""
    failed_actions: int
    """Steps whose action was refused, failed, or was stopped by a limit."""
    malformed: int
    """Replies that held no action, those that ended the run included."""

    @property
    def success(self) -> bool:
        """The paper's: more than 10% better than the baseline at the last step."""
        return self.last_success[THRESHOLD]


def counts(run: Run) -> Counts:
    """Count a run."""
    result = run.result
    outcome = result.outcome if result else None
    baseline = result.baseline if result else None
    every_step = result is not None and (bool(result.step_scores) or not run.steps)
    best = best_step(run) if every_step else None
    ran = [step for step in run.steps if executed(step)]
    last = _worth(run, run.score, result.improvement if result else None)
    at_best = _worth(run, best.score if best else None, best.improvement if best else None) if every_step else None
    return Counts(
        ended=outcome.ended if outcome else DAMAGED if run.result_is_damaged else UNFINISHED,
        verdict=outcome.verdict if outcome else "ungraded",
        flags=outcome.flags if outcome else (),
        reason=outcome.reason if outcome else None,
        final_answer=(result is not None and result.final_answer is not None) or any("final_answer" in step.details for step in run.steps),
        baseline=baseline.value if baseline else None,
        baseline_source=baseline.source if baseline else None,
        score=run.score,
        improvement=result.improvement if result else None,
        best=best,
        every_step=every_step,
        last_success=last.success,
        best_success=at_best.success if at_best else None,
        last_clears_noise=last.clears_noise,
        best_clears_noise=at_best.clears_noise if at_best else None,
        steps=result.steps if result else sum(step.counted for step in run.steps),
        seconds=run.seconds,
        model_seconds=run.model_seconds,
        waited_seconds=result.waited_seconds if result else sum(step.waited_seconds for step in run.steps),
        script_seconds=run.script_seconds,
        framework_seconds=run.framework_seconds,
        grading_seconds=run.grading_seconds,
        tokens=run.usage.tokens,
        tokens_by_role={role: usage.tokens for role, usage in run.usage_by_role.items()},
        cost=run.usage.cost,
        edits=sum(step.action.name in EDITS and step.status == "ok" for step in run.steps),
        executions=len(ran),
        failed_executions=sum(step.status != "ok" for step in ran),
        debugging_streak=debugging_streak(ran),
        failed_actions=run.failed,
        malformed=run.malformed + _last_malformed(run),
    )


def executed(step: Step) -> bool:
    """Whether a script ran in a step. One that was refused, such as a script that is not there, did not."""
    return "exit_code" in step.details or step.script_seconds > 0 or any(inner.did == "run" for inner in step.inside)


def debugging_streak(executions: Iterable[Step]) -> int:
    """The longest chain of consecutive executions that failed.

    Args:
        executions: the steps in which a script ran, in order.
    """
    chains = groupby(executions, key=lambda step: step.status != "ok")
    return max((len(list(chain)) for failed, chain in chains if failed), default=0)


def best_step(run: Run) -> Best | None:
    """The best of a run's graded submissions in the metric's direction; the first of equals, None where none is valid.

    By improvement where each has one: of tasks whose baseline is timed beside each submission only the ratio compares. Else by score.
    """
    sign = 1 if run.info.direction == "maximize" else -1
    scored = [Best(score.step, score.value, score.improvement) for score in run.scores if score.value is not None]
    improvements = [best.improvement for best in scored if best.improvement is not None]
    if len(improvements) == len(scored):
        return max(scored, key=lambda best: best.improvement or 0.0, default=None)
    return max(scored, key=lambda best: sign * best.score, default=None)


class _Worth(NamedTuple):
    """What a submission is worth by each rule."""

    success: Mapping[float, bool]
    clears_noise: bool | None


NOTHING = _Worth(dict.fromkeys(THRESHOLDS, False), False)
"""What no valid submission is worth."""


def _worth(run: Run, score: float | None, improvement: float | None) -> _Worth:
    """What a submission is worth, by its score and its improvement; without a score, nothing."""
    baseline = run.result.baseline if run.result else None
    if score is None:
        return NOTHING if run.result and run.result.outcome.verdict != "ungraded" else NOTHING._replace(clears_noise=None)
    if baseline is None:
        return NOTHING._replace(clears_noise=None)
    metric = Metric(name=run.info.metric, direction=run.info.direction, unit=run.info.unit)
    if improvement is None or improvement == metric.improvement(score, baseline.value):
        success = {threshold: is_success(metric, score, baseline.value, threshold) for threshold in THRESHOLDS}
        return _Worth(success, clears_noise(metric, score, baseline))
    # An earlier step of a timed task: its baseline was timed beside it, and only the last step's is kept, whose spread stands for both.
    clears = None if baseline.spread is None else improvement * abs(baseline.value) > baseline.spread
    return _Worth({threshold: exceeds(improvement, threshold) for threshold in THRESHOLDS}, clears)


def _last_malformed(run: Run) -> int:
    """Replies without an action after the last step: they led to none."""
    try:
        calls = run.calls(max((step.number for step in run.steps), default=0) + 1)
    except RunNotFound:
        return 0
    return sum(call.rejected is not None for call in calls)
