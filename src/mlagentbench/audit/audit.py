"""Audit one run by rules: its claims, its failure mode, where its plans broke, and what its research log lost."""

from __future__ import annotations

from collections.abc import Sequence

from mlagentbench.audit.claims import judge_claims
from mlagentbench.audit.evidence import history
from mlagentbench.audit.modes import UNFOUNDED, Facts, carried, mode_of
from mlagentbench.audit.plans import Contents, plan_of
from mlagentbench.audit.record import Audit, Claim, FactChecks
from mlagentbench.audit.research_log import losses
from mlagentbench.audit.statements import FINAL_ANSWER
from mlagentbench.records import Result, Step, StepScore
from mlagentbench.run_spec import RunInfo


def audit(info: RunInfo, steps: Sequence[Step], result: Result | None, scores: Sequence[StepScore], contents: Contents) -> Audit:
    """Audit a run.

    Args:
        info: what was known of it before its first step.
        steps: its steps, in order.
        result: its result; None for a run in progress.
        scores: the scores of its submissions, in the order of steps.
        contents: returns the files after a step.
    """
    past = history(steps, info.description)
    claims = judge_claims(steps, past)
    claimed = _claimed_score(claims)
    graded = result.score.value if result and result.score else None
    return Audit(
        claims=tuple(claims),
        mode=mode_of(Facts(result, steps, past, claims)) if result else None,
        plan=plan_of(steps, scores, info.direction, contents),
        log=losses(steps, past),
        fact_checks=_fact_checks(claims),
        first_unfounded=next((claim.step for claim in claims if claim.verdict in UNFOUNDED), None),
        carried=carried(claims) is not None,
        claimed_score=claimed,
        gap=None if claimed is None or graded is None else claimed - graded,
    )


def _claimed_score(claims: Sequence[Claim]) -> float | None:
    stated = [claim for claim in claims if claim.place == FINAL_ANSWER and claim.kind == "number" and claim.value]
    if not stated:
        return None
    value = str(stated[-1].value)
    number = float(value.rstrip("% ").replace(",", ""))
    return number / 100 if value.endswith("%") else number


def _fact_checks(claims: Sequence[Claim]) -> FactChecks:
    own = [claim for claim in claims if claim.place == "Fact Check"]
    unfounded = [claim for claim in own if claim.verdict in UNFOUNDED]
    said = [claim for claim in own if claim.stated == "confirmed"]
    return FactChecks(
        confirmed=sum(claim.verdict == "confirmed" for claim in said),
        not_confirmed=sum(claim.verdict != "confirmed" for claim in said),
        guessed=sum(claim.stated == "guessed" for claim in unfounded),
        not_guessed=sum(claim.stated != "guessed" for claim in unfounded),
    )
