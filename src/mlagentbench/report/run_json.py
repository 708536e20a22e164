"""Turn a run and its steps into JSON: the records as they are on disk, with values computed from them."""

from __future__ import annotations

import json

from pydantic import JsonValue

from mlagentbench.records import Record, Step
from mlagentbench.results.load import Run, unless_damaged


def run_object(run: Run, *, calls: bool = False) -> dict[str, JsonValue]:
    """Return a run without its steps: `run.json` as `info`, `result.json` as `result` (null without one), and totals over its steps.

    `working` says whether a process is working on the run now. Times are seconds, costs US dollars.

    Args:
        run: the run.
        calls: whether to include the prompts and raw replies after the last step, which led to no step (`calls_after_last`).
    """
    found: dict[str, JsonValue] = {
        "run": run.name,
        "log": str(run.directory.path.resolve()),
        "working": run.directory.held,
        "info": _plain(run.info),
        "result": _plain(run.result) if run.result else None,
        "steps_done": len(run.steps),
        "seconds": run.seconds,
        "model_seconds": run.model_seconds,
        "script_seconds": run.script_seconds,
        "framework_seconds": run.framework_seconds,
        "grading_seconds": run.grading_seconds,
        "usage": _plain(run.usage),
        "problems": list(run.problems),
    }
    if calls:
        found["calls_after_last"] = [_plain(call) for call in unless_damaged(lambda: run.calls(run.after_last)) or ()]
    return found


def step_object(run: Run, step: Step, *, diff: bool = False, files: bool = False, calls: bool = False) -> dict[str, JsonValue]:
    """Return a step: its record, its `score` (null where it was not graded), and its `changes` of files (null without whole snapshots).

    With `diff` the changes have unified diffs, with `files` there is a list of all files after the step, and with `calls` its prompts and
    raw replies.
    """
    score = next((score for score in run.scores if score.step == step.number), None)
    changes = unless_damaged(lambda: run.changes(step.number))
    found: dict[str, JsonValue] = {
        **_plain(step),
        "score": _plain(score) if score else None,
        "changes": None if changes is None else [{k: v for k, v in change._asdict().items() if diff or k != "text"} for change in changes],
    }
    if files:
        entries = unless_damaged(lambda: run.files(step.number))
        found["files"] = None if entries is None else {path: {"kind": entry.kind, "size": entry.size} for path, entry in entries.items()}
    if calls:
        found["calls"] = [_plain(call) for call in unless_damaged(lambda: run.calls(step.number)) or ()]
    return found


def _plain(record: Record) -> dict[str, JsonValue]:
    # pydantic's JSON text, unlike its dict, also converts the values that JSON has no number for.
    plain: dict[str, JsonValue] = json.loads(record.model_dump_json())
    return plain
