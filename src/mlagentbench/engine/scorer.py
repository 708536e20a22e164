"""Report a run's result as Inspect scores.

Success and improvement are scores of their own beside the task's metric, since Inspect reduces scores over epochs before any metric sees
them: the mean of success over epochs is the success rate.
"""

from __future__ import annotations

import math

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from mlagentbench.records import Result

RESULT = "mlagentbench:result"
"""The key of the result in the sample's store."""


@scorer(metrics={"success": [mean(), stderr()], "improvement": [mean()], "score": [mean()]}, name="mlagentbench")
def result_scorer() -> Scorer:
    """Return a scorer that reports the result that the run has stored."""

    async def score(state: TaskState, target: Target) -> Score | None:
        stored = state.store.get(RESULT)
        if stored is None:
            return None
        return as_score(Result.model_validate(stored))

    return score


def as_score(result: Result) -> Score:
    """Return a result as an Inspect score; a missing score or improvement is NaN."""
    value = result.score.value if result.score else math.nan
    improvement = result.improvement if result.improvement is not None else math.nan
    return Score(
        value={"success": float(result.success), "improvement": improvement, "score": value},
        answer=result.final_answer,
        explanation=f"{result.outcome.verdict}; ended by {result.outcome.ended}"
        + (f": {result.outcome.reason}" if result.outcome.reason else ""),
        metadata={"outcome": result.outcome.model_dump(mode="json"), "baseline": result.baseline.value if result.baseline else None},
    )
