"""Grade this ladder with the grader of all ladders."""

from __future__ import annotations

from mlagentbench.tasks.ladder.grade import grade

__all__ = ["grade"]
