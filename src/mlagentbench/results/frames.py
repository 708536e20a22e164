"""Make polars frames of runs and steps, for your own analysis.

Column names and types are always the same, whatever the runs; no run and no step is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from mlagentbench.audit.record import Audit
from mlagentbench.records import Step
from mlagentbench.results.cells import together
from mlagentbench.results.conditions import agent_words, hardware_words
from mlagentbench.results.counts import THRESHOLDS, Counts, executed
from mlagentbench.results.load import Run

TIME = pl.Datetime("us", "UTC")

RUNS: Mapping[str, Any] = {
    "run": pl.String,
    "task": pl.String,
    "category": pl.String,
    "published": pl.Date,
    "variant": pl.String,
    "mini_seed": pl.Int64,
    "agent": pl.String,
    "agent_with_options": pl.String,
    "model": pl.String,
    "fast_model": pl.String,
    "editor_model": pl.String,
    "isolation": pl.String,
    "hardware": pl.String,
    "parent": pl.String,
    "started": TIME,
    "metric": pl.String,
    "unit": pl.String,
    "direction": pl.String,
    "ended": pl.String,
    "verdict": pl.String,
    "counted": pl.Boolean,
    "judged": pl.Boolean,
    "flags": pl.String,
    "reason": pl.String,
    "final_answer": pl.Boolean,
    "baseline": pl.Float64,
    "baseline_source": pl.String,
    "score": pl.Float64,
    "standard_error": pl.Float64,
    "gain_error": pl.Float64,
    "improvement": pl.Float64,
    "gain": pl.Float64,
    "success": pl.Boolean,
    "best_step": pl.Int64,
    "best_score": pl.Float64,
    "best_improvement": pl.Float64,
    "rung": pl.Int64,
    "best_rung": pl.Int64,
    "rungs": pl.Int64,
    "broke_at": pl.Int64,
    "every_step": pl.Boolean,
    **{f"last_success_{round(100 * threshold)}": pl.Boolean for threshold in THRESHOLDS},
    **{f"best_success_{round(100 * threshold)}": pl.Boolean for threshold in THRESHOLDS},
    "last_clears_noise": pl.Boolean,
    "best_clears_noise": pl.Boolean,
    "steps": pl.Int64,
    "seconds": pl.Float64,
    "model_seconds": pl.Float64,
    "waited_seconds": pl.Float64,
    "script_seconds": pl.Float64,
    "framework_seconds": pl.Float64,
    "grading_seconds": pl.Float64,
    "tokens": pl.Int64,
    "tokens_agent": pl.Int64,
    "tokens_fast": pl.Int64,
    "tokens_editor": pl.Int64,
    "cost": pl.Float64,
    "edits": pl.Int64,
    "executions": pl.Int64,
    "failed_executions": pl.Int64,
    "debugging_streak": pl.Int64,
    "failed_actions": pl.Int64,
    "malformed": pl.Int64,
    "mode": pl.String,
    "claims": pl.Int64,
    "unfounded_claims": pl.Int64,
    "first_unfounded": pl.Int64,
    "unfounded_answer": pl.Boolean,
    "claimed_score": pl.Float64,
    "claimed_gap": pl.Float64,
    "signs": pl.String,
    "longest_edits": pl.Int64,
    "repeated_steps": pl.Int64,
    "undone_edits": pl.Int64,
    "last_improved": pl.Int64,
    "log_dropped": pl.Int64,
    "log_altered": pl.Int64,
    "problems": pl.Int64,
    "path": pl.String,
}
"""The columns of `runs_frame`, in order, with their types. `flags` are separated by spaces, and `problems` is the number of lines of
`Run.problems`. Most others are fields of the same name of `run_spec.RunInfo`, its `RunSpec` or `counts.Counts`."""

STEPS: Mapping[str, Any] = {
    "run": pl.String,
    "task": pl.String,
    "step": pl.Int64,
    "action": pl.String,
    "arguments": pl.String,
    "status": pl.String,
    "counted": pl.Boolean,
    "executed": pl.Boolean,
    "exit_code": pl.Int64,
    "started": TIME,
    "seconds": pl.Float64,
    "model_seconds": pl.Float64,
    "waited_seconds": pl.Float64,
    "script_seconds": pl.Float64,
    "tokens": pl.Int64,
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "cost": pl.Float64,
    "malformed": pl.Int64,
    "score": pl.Float64,
    "improvement": pl.Float64,
    "rung": pl.Int64,
    "note": pl.String,
    "observation": pl.String,
}
"""The columns of `steps_frame`, in order, with their types. `arguments` is JSON; `score`, `improvement`, `rung` and `note` are those of the
submission as it was after the step, null if it was not graded or not valid."""


def runs_frame(runs: Iterable[Run]) -> pl.DataFrame:
    """Return a frame with a row for each run and the columns of `RUNS`; it is empty for no runs."""
    runs = tuple(runs)
    return pl.DataFrame([_run_row(run, found) for run, (_, found) in zip(runs, together(runs), strict=True)], schema=RUNS)


def steps_frame(runs: Iterable[Run]) -> pl.DataFrame:
    """Return a frame with a row for each step and the columns of `STEPS`; it is empty for no steps."""
    return pl.DataFrame([row for run in runs for row in _step_rows(run)], schema=STEPS)


def _run_row(run: Run, found: Counts) -> dict[str, Any]:
    info = run.info
    return {
        "run": info.run,
        "task": info.spec.task,
        "category": info.category or None,
        "published": info.published,
        "variant": info.spec.variant,
        "mini_seed": info.spec.mini_seed,
        "agent": info.spec.agent,
        "agent_with_options": agent_words(info),
        "model": info.spec.model_names.get("agent"),
        "fast_model": info.spec.model_names.get("fast"),
        "editor_model": info.spec.model_names.get("editor"),
        "isolation": info.isolation,
        "hardware": hardware_words(info),
        "parent": info.parent,
        "started": _moment(info.started),
        "metric": info.metric,
        "unit": info.unit,
        "direction": info.direction,
        "problems": len(run.problems),
        "path": str(run.directory.path),
        **_counted(found),
        **(_audited(run.audit) if run.audit else {}),
    }


def _moment(seconds: float) -> datetime | None:
    """Return the time, in UTC, at some seconds from the epoch; None for 0, which stands for an unknown time."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _counted(found: Counts) -> dict[str, Any]:
    best = found.best
    row: dict[str, Any] = {name: value for name, value in found._asdict().items() if name in RUNS}
    row |= {"flags": " ".join(found.flags), "success": found.success, "counted": found.counted}
    row |= {f"tokens_{role}": found.tokens_by_role.get(role) for role in ("agent", "fast", "editor")}
    row |= {"best_step": best and best.step, "best_score": best and best.score, "best_improvement": best and best.improvement}
    for threshold in THRESHOLDS:
        percent = round(100 * threshold)
        row[f"last_success_{percent}"] = found.last_success[threshold]
        row[f"best_success_{percent}"] = found.best_success and found.best_success[threshold]
    return row


def _audited(audit: Audit) -> dict[str, Any]:
    return {
        "claims": len(audit.claims),
        "unfounded_claims": sum(claim.is_unfounded for claim in audit.claims),
        "first_unfounded": audit.first_unfounded,
        "claimed_score": audit.claimed_score,
        "claimed_gap": audit.gap,
        "signs": " ".join(dict.fromkeys(sign.kind for sign in audit.signs)),
        "longest_edits": audit.plan.longest_edits,
        "repeated_steps": audit.plan.repeated,
        "undone_edits": audit.plan.undone,
        "last_improved": audit.plan.last_improved,
        "log_dropped": audit.log.dropped_numbers + audit.log.dropped_errors,
        "log_altered": audit.log.altered_numbers,
    }


def _step_rows(run: Run) -> Iterable[dict[str, Any]]:
    scores = {score.step: score for score in run.scores}
    for step in run.steps:
        score = scores.get(step.number)
        yield {
            "run": run.name,
            "task": run.info.spec.task,
            "step": step.number,
            "action": step.action.name,
            "arguments": json.dumps(dict(step.action.arguments), ensure_ascii=False),
            "status": step.status,
            "counted": step.counted,
            "executed": executed(step),
            "exit_code": _exit_code(step),
            "started": _moment(step.started),
            "seconds": step.seconds,
            "model_seconds": step.model_seconds,
            "waited_seconds": step.waited_seconds,
            "script_seconds": step.script_seconds,
            "tokens": step.usage.tokens,
            "input_tokens": step.usage.input_tokens,
            "output_tokens": step.usage.output_tokens,
            "cost": step.usage.cost,
            "malformed": step.malformed,
            "score": score and score.value,
            "improvement": score and score.improvement,
            "rung": score and score.rung,
            "note": (score and score.note) or None,
            "observation": step.observation,
        }


def _exit_code(step: Step) -> int | None:
    code = step.details.get("exit_code")
    return code if isinstance(code, int) and abs(code) < 2**31 else None
