"""Submissions and scripts by which every climb on a table proves its grader."""

from __future__ import annotations

from collections.abc import Mapping

from mlagentbench import Files, Invalid, Prepared
from mlagentbench.tasks.climb_table.changes import CHANGES, NEEDED, changed
from mlagentbench.tasks.climb_table.grade import table

TABLE = table(len(CHANGES))
oracle, naive = TABLE.oracle, TABLE.naive


def solution(*, rungs: int) -> Files:
    """Return the starter with all changes."""
    return changed(NEEDED[rungs])


def ineffective(*, rungs: int) -> Files:
    """Return the starter with all changes but the first."""
    return changed(NEEDED[rungs][1:])


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that the grader must refuse."""
    return {**TABLE.invalid(data), "free": TABLE.refused(data, "'0'", price=0)}
