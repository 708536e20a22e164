"""Submissions and scripts by which the task proves its grader, as those of all ladders."""

from __future__ import annotations

from mlagentbench.task.proofs import Files
from mlagentbench.tasks.ladder.proof import gold, junk, naive, steps
from mlagentbench.tasks.ladder_5.prepare import RUNGS

__all__ = ["gold", "good", "junk", "lazy", "naive"]


def good() -> Files:
    """Return a script that solves every step."""
    return steps(RUNGS)


def lazy() -> Files:
    """Return a script that solves every step but the last."""
    return steps(RUNGS, undone=(RUNGS,))
