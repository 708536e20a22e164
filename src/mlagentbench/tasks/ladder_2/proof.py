"""Submissions and scripts by which the task proves its grader, as those of all ladders."""

from __future__ import annotations

from mlagentbench.task.proofs import Files
from mlagentbench.tasks.ladder.proof import invalid, naive, oracle, steps
from mlagentbench.tasks.ladder_2.prepare import RUNGS

__all__ = ["ineffective", "invalid", "naive", "oracle", "solution"]


def solution() -> Files:
    """Return a script that solves every step."""
    return steps(RUNGS)


def ineffective() -> Files:
    """Return a script that solves every step but the last."""
    return steps(RUNGS, undone=(RUNGS,))
