"""Graded as every ladder is."""

from __future__ import annotations

from mlagentbench.tasks.ladder.grade import grade

__all__ = ["grade"]
