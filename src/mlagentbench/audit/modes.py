"""Say how a run failed: the first rule that holds names its failure mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mlagentbench.audit.evidence import History
from mlagentbench.audit.record import Claim, FailureMode, Mode
from mlagentbench.audit.statements import FINAL_ANSWER
from mlagentbench.records import Outcome, Result, Step


class Facts(NamedTuple):
    """What the rules look at."""

    result: Result
    steps: Sequence[Step]
    past: History
    claims: Sequence[Claim]

    @property
    def outcome(self) -> Outcome:
        """How the run ended, and what its submission was worth."""
        return self.result.outcome


def mode_of(facts: Facts) -> Mode | None:
    """Return a run's primary mode; None for a run that says nothing about its agent, or whose score is unknown and would decide.

    The rules are tried in the order of `RULES`, and the first that holds names the mode.
    """
    if facts.outcome.ended in ("infrastructure", "cancelled"):
        return None
    for mode, rule in RULES:
        reason = rule(facts)
        if reason is not None:
            return Mode(mode=mode, reason=reason)
    return None


def carried(claims: Sequence[Claim]) -> Claim | None:
    """Return the first claim of the final answer that the evidence does not bear out; None if there is none."""
    return next((claim for claim in claims if claim.place == FINAL_ANSWER and claim.is_unfounded), None)


def _limit(facts: Facts) -> str | None:
    ended = facts.outcome.ended
    return f"the run ended at {ended.replace('_', ' ')}" if ended in ("limit_context", "limit_tokens", "limit_cost") else None


def _hallucination(facts: Facts) -> str | None:
    claim = carried(facts.claims)
    if claim is None:
        # A result that was made up before anything was executed, and that the agent went on from.
        first = next((each for each in facts.claims if each.kind == "number" and each.verdict == "unsupported"), None)
        if first is None or not any(each.value == first.value and each.step > first.step for each in facts.claims):
            return None
        return f"step {first.step} states {first.value}, which nothing had shown, and later steps go on from it"
    return f"the final answer states at step {claim.step}: {claim.quote[:160]!r}; {claim.reason}"


def _debugging(facts: Facts) -> str | None:
    runs = facts.past.executions
    later = runs[len(runs) // 2 :]
    failed = sum(not run.succeeded for run in later)
    if len(runs) < 2 or runs[-1].succeeded or failed * 2 <= len(later):
        return None
    return f"{failed} of the last {len(later)} executions failed, the last one at step {runs[-1].step}"


def _stopped_early(facts: Facts) -> str | None:
    if facts.outcome.ended != "final_answer":
        return None
    last = facts.past.last_change(facts.steps[-1].number + 1 if facts.steps else 0)
    if last is None:
        return "the agent ended the run without a change to any file"
    run = facts.past.last(facts.steps[-1].number + 1)
    return None if run is not None and run.step > last[0] else f"the agent ended the run without executing the change of step {last[0]}"


def _small_improvement(facts: Facts) -> str | None:
    gain = facts.result.improvement
    return f"the submission is {gain:.1%} better than the baseline" if gain is not None and gain > 1e-3 else None


def _zero_improvement(facts: Facts) -> str | None:
    gain = facts.result.improvement
    return "the submission is as good as the baseline" if gain is not None and abs(gain) <= 1e-3 else None


def _bad_plan(facts: Facts) -> str | None:
    if facts.outcome.verdict != "no_improvement":
        return None
    return f"{sum(run.succeeded for run in facts.past.executions)} executions worked, and what was submitted is no better than the baseline"


RULES: tuple[tuple[FailureMode, Callable[[Facts], str | None]], ...] = (
    ("success", lambda facts: "the submission is more than 10% better than the baseline" if facts.outcome.verdict == "success" else None),
    ("format_failures", lambda facts: "too many replies in a row held no action" if facts.outcome.ended == "format_failure" else None),
    ("token_limit", _limit),
    ("hallucination", _hallucination),
    ("debugging", _debugging),
    ("stopped_early", _stopped_early),
    ("no_submission", lambda facts: facts.outcome.reason or "nothing was submitted" if facts.outcome.verdict == "no_submission" else None),
    (
        "invalid_submission",
        lambda facts: facts.outcome.reason or "the grader refused it" if facts.outcome.verdict == "invalid_submission" else None,
    ),
    ("small_improvement", _small_improvement),
    ("zero_improvement", _zero_improvement),
    ("bad_plan", _bad_plan),
)
"""The modes in the order in which their rules are tried."""
