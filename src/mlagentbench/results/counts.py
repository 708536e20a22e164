"""Count one run: how it ended, the scores of its last and its best submission, and its time, tokens and cost.

Runs in progress, killed runs and runs with damaged files are counted as far as they can be read. Several runs are counted together in
`cells.py`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from typing import NamedTuple

from mlagentbench.audit.record import FailureMode, LogLosses
from mlagentbench.errors import RunNotFound
from mlagentbench.records import Baseline, BaselineSource, Flag, Role, Step, Usage
from mlagentbench.results.load import Run
from mlagentbench.task.spec import Metric
from mlagentbench.task.success import THRESHOLD, clears_noise, exceeds, is_success

THRESHOLDS = (0.05, THRESHOLD, 0.15, 0.20, 0.30)
"""The relative improvements that success is counted at; the paper's is 10%."""

EDITS = ("Edit Script (AI)", "Edit Script Segment (AI)", "Write File", "Append File")
"""The actions that write new content to a file. A copy and an undo write nothing new."""

UNFINISHED = "unfinished"
"""`Counts.ended` of a run without a result: it is in progress, or was killed."""
DAMAGED = "damaged_result"
"""`Counts.ended` of a run whose result cannot be read."""
NOT_COUNTED = ("infrastructure", "cancelled", UNFINISHED, DAMAGED)
"""How runs end that say nothing about the agent."""
CHEATED: Flag = "cheated"
"""The flag that makes a submission worth nothing, whatever its score."""
NO_BASELINE = "no_baseline"
"""The value of `Counts.apart` for a valid submission that was compared with nothing (`--baseline none`), and for the other runs of its
cell: to count only those without a valid submission would make a rate of failures alone."""


class Best(NamedTuple):
    """The best submission that a run had after any step, chosen on the hidden test: an optimistic number, since luck chooses too."""

    step: int
    """The first step after which the submission was there."""
    score: float
    improvement: float | None
    """Relative to the baseline; None without one, and over a baseline of 0."""
    gain_error: float | None = None
    """As `Counts.gain_error`."""
    judged: bool | None = None
    """Whether it is a success by the task's own rule (`Score.success`); None where there is none."""


class Progress(NamedTuple):
    """What a run had spent and reached after one of its steps."""

    steps: int
    """The steps that count against the limit of steps."""
    tokens: int | None
    """None if any part of it is unknown, as of the next."""
    dollars: float | None
    """None if any part of it is unknown."""
    hours: float
    score: float | None
    """The score of the submission as it then stood; None without a valid one."""
    success: bool
    """Whether it is a success."""
    success_within_baseline: tuple[bool, bool]
    """As `Counts.success_within_baseline`."""
    improvement: float | None
    """None without a valid submission, and over a baseline of 0."""
    move: float
    """As `Counts.move`."""


NOTHING_YET = Progress(0, 0, 0.0, 0.0, None, False, (False, False), None, 0.0)
"""Before the first step."""


class Counts(NamedTuple):
    """The counts of one run: scores in the metric's unit, improvements as fractions, times in seconds, cost in US dollars."""

    ended: str
    """As `Outcome.ended`; `unfinished` for a run without a result, `damaged_result` for one whose result cannot be read."""
    verdict: str
    """As `Outcome.verdict`; `ungraded` for a run without a result."""
    flags: tuple[Flag, ...]
    reason: str | None
    """What went wrong, in one line; None if nothing did."""
    final_answer: bool
    """Whether the agent gave one."""

    baseline: float | None
    baseline_source: BaselineSource | None
    score: float | None
    """The score at the last step; None without a valid submission."""
    standard_error: float | None
    """The score's standard error over the test rows; None where it has none, such as a time."""
    gain_error: float | None
    """The standard error of the gain over the baseline, over the test rows."""
    improvement: float | None
    """The improvement at the last step, relative to the baseline (arXiv 2310.03302, section 3); positive for better."""
    gain: float | None
    """How much better the score is than the baseline, in the metric's unit; negative for worse."""
    baseline_values: tuple[float, ...]
    """The measurements of a baseline that other runs share; empty for one that was measured beside the submission, or only once."""
    best: Best | None
    """The best submission, chosen on the hidden test (optimistic); None if none was valid, or not every step was graded (`every_step`)."""
    rung: int | None
    """The stages of the task that the last submission has reached; None for a task without stages."""
    best_rung: int | None
    """The most stages that a submission of the run has reached; None also if not every step was graded."""
    rungs: int | None
    """How many dependent changes the task consists of; None for another kind of task."""
    broke_at: int | None
    """The change that no graded submission got past (`RunInfo.broke_at`); None if one got past all, or for another kind of task."""
    every_step: bool
    """Whether every step's submission was graded, so that the best one is known."""

    last_success: Mapping[float, bool]
    """Success at the last step by threshold (`THRESHOLDS`); at 0.1 it is the paper's success."""
    success_within_baseline: tuple[bool, bool]
    """The paper's success at the last step, had the shared baseline (`baseline_values`) come out at the harder or at the easier bound of
    its own 95% interval, which is Student's."""
    move: float
    """What the improvement at the last step moves by with the mean of the shared baseline: S / B^2 for a score S and a baseline B."""
    progress: tuple[Progress, ...] | None
    """What was spent and reached after each step; None if not every step was graded."""
    best_success: Mapping[float, bool] | None
    """Success at the best step by threshold; None if not every step was graded."""
    last_clears_noise: bool | None
    """Success at the last step by the noise-calibrated rule (`tasks.success.clears_noise`); False without a valid submission, None if the
    baseline has no spread or the submission was not graded."""
    best_clears_noise: bool | None
    """Success at the best step by the noise-calibrated rule; None also if not every step was graded."""

    steps: int
    """The steps that count against the limit of steps; an agent's own bookkeeping does not."""
    seconds: float
    """The time of all steps: `model_seconds`, `script_seconds` and `framework_seconds` together (for an imported run, the last is 0)."""
    model_seconds: float
    waited_seconds: float
    """The part of `model_seconds` spent waiting for rate limits and before retries."""
    script_seconds: float
    framework_seconds: float
    grading_seconds: float
    """The time of grading, which is no part of `seconds`."""

    tokens: int | None
    """Prompt and completion tokens of all roles together; None if a provider did not report them."""
    tokens_by_role: Mapping[Role, int | None]
    """Tokens by role; empty for a run without a result."""
    cost: float | None
    """None if any part of it is unknown."""

    edits: int
    """The number of edit actions (`EDITS`) that succeeded."""
    executions: int
    """The number of steps that ran a script or a command in Python."""
    failed_executions: int
    """The executions that failed: the script exited with a status other than 0, or was stopped by a limit."""
    debugging_streak: int
    """The largest number of consecutive executions that failed; other actions between them, such as edits, do not end the streak."""
    failed_actions: int
    """The number of steps whose action was refused, failed, or was stopped by a limit."""
    mode: FailureMode | None
    """How the run came out, by its audit; None if it has no mode, or was not audited."""
    unfounded_answer: bool | None
    """Whether the final answer states what the evidence does not bear out; None if the run was not audited."""
    log: LogLosses | None
    """What the summaries and retrievals of its research log lost; None without any, and if the run was not audited."""
    malformed: int
    """The number of replies without an action, including those that ended the run."""
    judged: bool = False
    """Whether the task's own rule says what a success is (`Score.success`), so that no baseline is needed."""

    uncompared: bool = False
    """Whether another run of its cell has a valid submission that was compared with nothing, so that the cell can have no rate."""

    @property
    def success(self) -> bool:
        """The paper's success: more than 10% better than the baseline at the last step."""
        return self.last_success[THRESHOLD]

    @property
    def valid(self) -> bool:
        """Whether the last submission was valid: it has a score, which was not obtained by cheating."""
        return self.score is not None and CHEATED not in self.flags

    @property
    def apart(self) -> str | None:
        """Why the run does not count: how it ended, `ungraded` or `no_baseline`; None if it counts."""
        if self.ended in NOT_COUNTED:
            return self.ended
        if self.verdict == "ungraded":
            return self.verdict
        missing = self.score is not None and self.baseline is None and not self.judged
        return NO_BASELINE if self.uncompared or missing else None

    @property
    def counted(self) -> bool:
        """Whether the run says something about the agent."""
        return self.apart is None


def counts(run: Run) -> Counts:
    """Return the counts of a run."""
    result = run.result
    outcome = result.outcome if result else None
    baseline = result.baseline if result else None
    every_step = result is not None and (bool(result.step_scores) or not run.steps)
    best = best_step(run) if every_step else None
    ran = [step for step in run.steps if executed(step)]
    last_score = result.score if result else None
    judged = last_score.success if last_score else None
    last = _worth(run, run.score, result.improvement if result else None, result.gain_error if result else None, judged)
    found = (best.score, best.improvement, best.gain_error, best.judged) if best else (None, None, None, None)
    at_best = _worth(run, *found) if every_step else None
    metric = Metric(name=run.info.metric, direction=run.info.direction, unit=run.info.unit)
    cheated = outcome is not None and CHEATED in outcome.flags
    return Counts(
        ended=outcome.ended if outcome else DAMAGED if run.result_is_damaged else UNFINISHED,
        verdict=("invalid_submission" if cheated and run.score is not None else outcome.verdict) if outcome else "ungraded",
        flags=outcome.flags if outcome else (),
        reason=outcome.reason if outcome else None,
        final_answer=(result is not None and result.final_answer is not None) or any("final_answer" in step.details for step in run.steps),
        baseline=baseline.value if baseline else None,
        baseline_source=baseline.source if baseline else None,
        score=run.score,
        standard_error=last_score.standard_error if last_score else None,
        gain_error=result.gain_error if result else None,
        improvement=result.improvement if result else None,
        gain=metric.gain(run.score, baseline.value) if baseline and run.score is not None else None,
        baseline_values=_shared(baseline),
        best=best,
        rung=result.score.rung if result and result.score else None,
        best_rung=max((score.rung for score in run.scores if score.rung is not None), default=None) if every_step else None,
        rungs=run.info.rungs,
        broke_at=run.info.broke_at(result) if result else None,
        every_step=every_step,
        last_success=last.success,
        success_within_baseline=last.success_within_baseline,
        move=last.move,
        progress=_progress(run) if every_step else None,
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
        mode=run.audit.mode.mode if run.audit and run.audit.mode else None,
        unfounded_answer=run.audit.carried if run.audit else None,
        log=run.audit.log if run.audit and run.audit.log.used else None,
        edits=sum(step.action.name in EDITS and step.status == "ok" for step in run.steps),
        executions=len(ran),
        failed_executions=sum(step.status != "ok" for step in ran),
        debugging_streak=debugging_streak(ran),
        failed_actions=run.failed,
        malformed=run.malformed + _last_malformed(run),
        judged=judged is not None,
    )


def executed(step: Step) -> bool:
    """Return whether a script ran in a step. A script that was refused, such as one that does not exist, did not run."""
    return "exit_code" in step.details or step.script_seconds > 0 or any(inner.did == "run" for inner in step.inside)


def debugging_streak(executions: Iterable[Step]) -> int:
    """Return the largest number of consecutive executions that failed."""
    chains = groupby(executions, key=lambda step: step.status != "ok")
    return max((len(list(chain)) for failed, chain in chains if failed), default=0)


def best_step(run: Run) -> Best | None:
    """Return the best of a run's graded submissions; the first of equals, None if none is valid.

    Submissions are compared by improvement if each has one, since the baseline may have been timed beside each of them, when scores cannot
    be compared. Otherwise they are compared by score, in the metric's direction.
    """
    sign = 1 if run.info.direction == "maximize" else -1
    scored = [
        Best(score.step, score.value, score.improvement, score.gain_error, score.success) for score in run.scores if score.value is not None
    ]
    improvements = [best.improvement for best in scored if best.improvement is not None]
    if len(improvements) == len(scored):
        return max(scored, key=lambda best: best.improvement or 0.0, default=None)
    return max(scored, key=lambda best: sign * best.score, default=None)


class _Worth(NamedTuple):
    """A submission's success by each rule: by threshold, and noise-calibrated; and what a shared baseline moves."""

    success: Mapping[float, bool]
    clears_noise: bool | None
    success_within_baseline: tuple[bool, bool] = (False, False)
    move: float = 0.0


NOTHING = _Worth(dict.fromkeys(THRESHOLDS, False), False)
"""The successes of a run without a valid submission."""


def _worth(run: Run, score: float | None, improvement: float | None, gain_error: float | None, judged: bool | None) -> _Worth:
    """Return a submission's success by each rule, given its score (None for no valid submission), improvement and the gain's error.

    A task's own rule, by which a submission was `judged`, stands for all of them.
    """
    baseline = run.result.baseline if run.result else None
    if run.result and CHEATED in run.result.outcome.flags:
        return NOTHING
    if score is None:
        return NOTHING if run.result and run.result.outcome.verdict != "ungraded" else NOTHING._replace(clears_noise=None)
    if judged is not None:
        return _Worth(dict.fromkeys(THRESHOLDS, judged), None, (judged,) * 2)
    if baseline is None:
        return NOTHING._replace(clears_noise=None)
    metric = Metric(name=run.info.metric, direction=run.info.direction, unit=run.info.unit)
    if improvement is None or improvement == metric.improvement(score, baseline.value):
        success = {threshold: is_success(metric, score, baseline.value, threshold) for threshold in THRESHOLDS}
        found = _Worth(success, clears_noise(metric, score, baseline, gain_error), (success[THRESHOLD],) * 2)
        if not _shared(baseline):
            return found
        bounds = sorted(is_success(metric, score, bound) for bound in _bounds(baseline.values))
        return found._replace(success_within_baseline=(bounds[0], bounds[-1]), move=score / baseline.value**2 if baseline.value else 0.0)
    # This is an earlier step of a timed task. The baseline timed beside it is not stored, so the spread of the last step's stands in.
    clears = None if baseline.spread is None else exceeds(improvement) and improvement * abs(baseline.value) > baseline.spread
    success = {threshold: exceeds(improvement, threshold) for threshold in THRESHOLDS}
    return _Worth(success, clears, (success[THRESHOLD],) * 2)


def _shared(baseline: Baseline | None) -> tuple[float, ...]:
    """Return the measurements of a baseline that other runs share; empty if it has none, or a single one, of which no spread is known."""
    return baseline.values if baseline and baseline.source == "measured" and len(baseline.values) > 1 else ()


@cache
def _bounds(values: tuple[float, ...]) -> tuple[float, float]:
    """Return Student's 95% interval of the mean of some values."""
    from scipy.special import stdtrit  # imported here because it takes longer than most reports do

    middle = statistics.mean(values)
    margin = float(stdtrit(len(values) - 1, 0.975)) * statistics.stdev(values) / math.sqrt(len(values))
    return middle - margin, middle + margin


def _progress(run: Run) -> tuple[Progress, ...]:
    """Return what a run had spent and reached after each of its steps."""
    scores = {score.step: score for score in run.scores}
    steps, used, dollars, seconds = 0, Usage(), 0.0 if run.usage.cost is not None else None, 0.0
    found = []
    for step in run.steps:
        steps, used, seconds = steps + step.counted, Usage.total((used, step.usage)), seconds + step.seconds
        # A step without a call of a model costs nothing.
        priced = step.usage.cost if step.usage.calls else 0.0
        dollars = None if dollars is None or priced is None else dollars + priced
        score = scores.get(step.number)
        value, improvement = (score.value, score.improvement) if score else (None, None)
        worth = _worth(run, value, improvement, *((score.gain_error, score.success) if score else (None, None)))
        reached = (value, worth.success[THRESHOLD], worth.success_within_baseline, improvement, worth.move)
        found.append(Progress(steps, used.tokens, dollars, seconds / 3600, *reached))
    return tuple(found)


def _last_malformed(run: Run) -> int:
    """Return the number of replies without an action after the last step, which led to no further step."""
    try:
        calls = run.calls(max((step.number for step in run.steps), default=0) + 1)
    except RunNotFound:
        return 0
    return sum(call.rejected is not None for call in calls)
