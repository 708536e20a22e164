"""Grade tasks of MLGym: their own `evaluate.py` over the submission, in a sandbox with the files that the task begins with.

It runs as MLGym runs it, in the workspace, and prints its metrics as JSON. What the agent left may be imported there, where it can change
nothing but its own score.
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
from pathlib import Path

from pydantic import JsonValue

from mlagentbench import GradingContext, InvalidSubmission, Score
from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox import process
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, Mount, SandboxSpec
from mlagentbench.task.formats.mlgym import CSV, DATA, MLGymConfig, read_config
from mlagentbench.task.success import is_success

LARGEST = 1 << 37
"""The most bytes of a submission, which may be the whole workspace, checkpoints included."""


def grade(path: Path, context: GradingContext) -> Score:
    """Have `evaluate.py` score a copy of the submission.

    Args:
        path: the task's path.
        context: as for any grader.

    Raises:
        InvalidSubmission: `evaluate.py` failed over it, or printed no finite number of the metric.
    """
    config = read_config(path)
    workspace = context.scratch / "workspace"
    if config.kind == CSV:
        context.starter.copy_to(workspace, LARGEST)
    context.submission.copy_to(workspace, LARGEST)  # for other kinds it is the whole workspace
    if (evaluation := workspace / config.evaluation).is_dir():
        shutil.rmtree(evaluation)
    evaluation.parent.mkdir(parents=True, exist_ok=True)
    evaluation.write_bytes(context.starter.read_bytes(config.evaluation))
    workspace.chmod(0o755)
    metrics = _metrics(config, _evaluated(config, workspace, context))
    try:
        value = float(metrics[config.metric.name])  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError):
        raise InvalidSubmission(f"{config.evaluation} printed no number {config.metric.name!r}, but {str(metrics)[:200]}") from None
    if not math.isfinite(value):
        raise InvalidSubmission(f"{config.evaluation} printed {value}, which is no score")
    # Without a script for the baseline there is nothing to measure here, and the configuration's own score is what counts.
    fixed = None if config.baseline else config.baseline_score
    return Score(value=value, success=None if fixed is None else is_success(config.metric, value, fixed), details={"metrics": metrics})


def _evaluated(config: MLGymConfig, workspace: Path, context: GradingContext) -> str:
    """Return what `evaluate.py` printed.

    Raises:
        InvalidSubmission: it failed.
    """
    mounts: tuple[Mount, ...] = ()
    if config.data and context.isolation.isolation in OWN_FILES:
        (workspace / DATA).mkdir(exist_ok=True)
        mounts = (Mount(context.public / DATA, f"{WORKSPACE}/{DATA}"),)
    elif config.data:
        (workspace / DATA).symlink_to(context.public / DATA, target_is_directory=True)
    spec = SandboxSpec(workspace=workspace, read_only=mounts, limits=ScriptLimits(seconds=config.script_time))
    command = ("python", config.evaluation, *_arguments(config, workspace))
    execution = asyncio.run(process.run(context.isolation, command, spec))
    if execution.exit_code != 0:
        lines = execution.output.strip().splitlines()
        raise InvalidSubmission(f"{config.evaluation} could not score it: {lines[-1] if lines else execution.reason}")
    return execution.output


def _arguments(config: MLGymConfig, workspace: Path) -> tuple[str, ...]:
    """Return the arguments with which MLGym calls `evaluate.py` for a task of this kind."""
    if config.kind == CSV:
        return ("--submission_file", "submission.csv")
    if config.kind == "ModelSubmissionTasks":
        found = sorted(path.relative_to(workspace) for path in workspace.rglob("*.yaml") if DATA not in path.relative_to(workspace).parts)
        if not found:
            raise InvalidSubmission("there is no configuration (*.yaml) of a model")
        return ("--config_fname", str(found[0]))
    return ()


def _metrics(config: MLGymConfig, output: str) -> dict[str, JsonValue]:
    """Return the metrics in what `evaluate.py` printed: all of it, or else the last line that is an object, or the last lines that are one.

    Raises:
        InvalidSubmission: there are none.
    """
    lines = output.splitlines()
    ends = ("\n".join(lines[start:]) for start, line in enumerate(lines) if line.startswith("{"))
    for text in (output, *reversed(lines), *ends):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    raise InvalidSubmission(f"{config.evaluation} printed no metrics as JSON, but {output.strip()[-200:]!r}")
