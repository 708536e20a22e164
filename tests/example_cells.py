"""Cells and columns of runs made by hand, for tests of what is computed from them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from mlagentbench.results.cells import Cell
from mlagentbench.results.conditions import Conditions
from mlagentbench.results.counts import THRESHOLDS, Counts
from mlagentbench.task.success import THRESHOLD

NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(Counts._fields),
    **dict.fromkeys(("seconds", "model_seconds", "waited_seconds", "script_seconds", "framework_seconds", "grading_seconds"), 0.0),
    **dict.fromkeys(("steps", "tokens", "edits", "executions", "failed_executions", "debugging_streak", "failed_actions", "malformed"), 0),
    **{"flags": (), "final_answer": True, "every_step": False, "tokens_by_role": {}, "baseline_values": (), "move": 0.0},
}


def counted(ended: str, verdict: str, improvement: float | None = None, *, best_success: bool | None = None, **fields: Any) -> Counts:
    """The counts of a run; one whose submission was valid has a score and a baseline of 1."""
    valid = 1.0 if verdict in ("success", "no_improvement") else None
    best = None if best_success is None else {**dict.fromkeys(THRESHOLDS, False), THRESHOLD: best_success}
    last = {**dict.fromkeys(THRESHOLDS, False), THRESHOLD: verdict == "success"}
    facts = {"improvement": improvement, "gain": improvement, "score": valid, "baseline": valid, "last_success": last, **fields}
    facts = {"best_success": best, "success_within_baseline": (verdict == "success",) * 2, **facts}
    return Counts(**{**NOTHING, "ended": ended, "verdict": verdict, **facts})


def won(improvement: float | None = 0.5, **fields: Any) -> Counts:
    return counted("final_answer", "success", improvement, **fields)


def lost(improvement: float | None = None, **fields: Any) -> Counts:
    return counted("limit_steps", "invalid_submission" if improvement is None else "no_improvement", improvement, **fields)


def broken(ended: str = "infrastructure", **fields: Any) -> Counts:
    return counted(ended, "ungraded", **fields)


def cell(task: str, model: str, *runs: Counts, category: str = "", published: datetime.date | None = None, **conditions: str) -> Cell:
    facts = {"variant": "full", "agent": "research", "isolation": "bubblewrap", "hardware": "one machine", **conditions}
    return Cell(Conditions(task=task, model=model, **facts), runs, category, published)


def column(
    model: str = "vendor/model", category: str = "", published: datetime.date | None = None, **tasks: Sequence[Counts]
) -> dict[str, Cell]:
    """A column's cells by task."""
    return {task: cell(task, model, *runs, category=category, published=published) for task, runs in tasks.items()}
