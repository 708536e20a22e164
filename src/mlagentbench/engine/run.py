"""Run agents on tasks from Python (`mlagentbench.run`): check the runs, carry them out, and read their results."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from mlagentbench.engine.evaluate import Evaluation, evaluate, evaluate_async
from mlagentbench.engine.models.providers import check_models
from mlagentbench.errors import UsageError
from mlagentbench.model import ScriptedModel
from mlagentbench.records import Result
from mlagentbench.results.logs import Logs, load
from mlagentbench.run_spec import RunSpec
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.runner.preflight import ReadyRun, make_spec, measures_first, preflight, with_baseline
from mlagentbench.runner.run_once import RunHooks
from mlagentbench.task.catalogue import find_task, load_task
from mlagentbench.util import interrupts

UNSANDBOXED = "No sandbox: the agent's scripts can read and change anything on this machine. Results are flagged."
SCRIPTS = "scripted"
"""The folder of a log directory that holds the replies of scripted models made in Python."""

Notify = Callable[[str], None]
_log = logging.getLogger(__name__)


def run(*specs: RunSpec, log_directory: str | Path = "runs", times: int = 1, parallel: int | None = None, **fields: Any) -> Logs:
    """Run an agent on a task, and return the results. It does what `mlab run` does.

        logs = mlagentbench.run(task="vectorization", variant="mini", models={"agent": "openai/gpt-4o"}, limits={"steps": 20})

    An interrupt (Ctrl-C) ends the runs and grades them as they stand, and is raised afterwards.

    Args:
        specs: the runs; none if keywords say what to run.
        log_directory: where the runs are stored.
        times: how often each run is done.
        parallel: how many runs go on at once; None for as many as the machine has capacity for.
        fields: fields of `RunSpec`, which override those of the specs. A limit that neither names is the task's own. A model is a
            name, a mapping with `name` and `options`, or a `ScriptedModel`.

    Returns:
        The new runs, as `mlagentbench.load` returns them. A run that failed because of a provider or the like is among them: its
        `result.outcome.ended` is `infrastructure`.

    Raises:
        UsageError: what is asked for cannot be done, such as an unknown task, agent or model. Nothing was run.
        InfrastructureError: a run could not be carried out, and has no result.
        KeyboardInterrupt: the runs were interrupted. `mlab resume` continues them.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise UsageError("an event loop is running here, as in a notebook; write: await mlagentbench.run_async(...)")
    log_directory, over = Path(log_directory), list[Path]()
    ready = check_runs(complete_specs(specs, fields, log_directory), log_directory)
    evaluation = evaluate(ready, _collecting(over), times=times, parallel=parallel)
    if evaluation.stopped:
        raise KeyboardInterrupt
    return _results(evaluation, over)


async def run_async(
    *specs: RunSpec, log_directory: str | Path = "runs", times: int = 1, parallel: int | None = None, **fields: Any
) -> Logs:
    """Do what `run` does, in an event loop that is running. Cancelling it ends the runs, which `mlab resume` continues.

    Only one call can be in progress in a process: give it all specs at once, and it carries them out in parallel.

    Raises:
        UsageError: what is asked for cannot be done, such as an unknown task, agent or model. Nothing was run.
        InfrastructureError: a run could not be carried out, and has no result.
    """
    log_directory, over = Path(log_directory), list[Path]()
    checked = await asyncio.to_thread(
        lambda: preflight(complete_specs(specs, fields, log_directory), log_directory, check_models=check_models)
    )
    _announce(checked, _log.warning)
    evaluation = await evaluate_async(await _with_baselines(checked), _collecting(over), times=times, parallel=parallel)
    return _results(evaluation, over)


def check_runs(
    specs: Sequence[RunSpec],
    log_directory: Path,
    *,
    continues: RunDirectory | None = None,
    console: Console | None = None,
    notify: Notify = _log.warning,
) -> list[ReadyRun]:
    """Check the requirements of runs, fetch their data, and measure their starters if they need that.

    Args:
        specs: the specs of the runs.
        log_directory: where the runs will be stored.
        continues: the run to resume, for a single spec.
        console: where downloads show their progress; None for nowhere.
        notify: takes each notice, a line.

    Raises:
        MLAgentBenchError: see `preflight` and `with_baseline`; no agent has started.
    """
    checked = preflight(specs, log_directory, continues=continues, check_models=check_models, console=console)
    _announce(checked, notify)
    return interrupts.run(_with_baselines(checked))


def complete_specs(specs: Sequence[RunSpec], fields: Mapping[str, Any], log_directory: Path) -> list[RunSpec]:
    """Return the specs with some fields replaced, each completed with its task's own limits; without specs, one of the fields.

    Raises:
        UsageError: a field is unknown or wrong, or there is no such task.
    """
    models = fields.get("models")
    if isinstance(models, Mapping):
        fields = {**fields, "models": {role: _named(model, log_directory) for role, model in models.items()}}
    return [_complete({**each, **fields}) for each in ([spec.model_dump(exclude_unset=True) for spec in specs] or [{}])]


def _complete(fields: Mapping[str, Any]) -> RunSpec:
    folder, name = fields.get("task_folder"), fields.get("task")
    if folder is None and not isinstance(name, str):
        raise UsageError('no task is named; name one, such as task="vectorization", or its task_folder')
    return make_spec(load_task(Path(folder)) if folder is not None else find_task(str(name)), fields)


def _named(model: object, log_directory: Path) -> object:
    """Return the name of a scripted model, with its replies in a file of the log directory, so that the run can be resumed."""
    if not isinstance(model, ScriptedModel):
        return model
    text = model.script.to_jsonl()
    folder = prepare_log_directory(log_directory) / SCRIPTS
    folder.mkdir(exist_ok=True)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
    path.write_text(text, encoding="utf-8")
    return f"scripted/{path}"


def _announce(checked: Sequence[ReadyRun], notify: Notify) -> None:
    if any(run.sandbox.isolation == "none" for run in checked):
        notify(UNSANDBOXED)
    for run in checked:
        for notice in run.task.notices:
            notify(f"{run.task.id}: {notice}")
        if measures_first(run):
            notify(f"{run.task.id}: measuring its starter first (--baseline none leaves that out)")


async def _with_baselines(checked: Sequence[ReadyRun]) -> list[ReadyRun]:
    # Measured before the runs and not beside them: nothing disturbs it, an interrupt ends it, and a failure shows at once.
    return [await with_baseline(run) for run in checked]


def _collecting(over: list[Path]) -> RunHooks:
    def finished(ready: ReadyRun, number: int, result: Result) -> None:
        over.append(ready.log_directory / result.run)

    return RunHooks(finished=finished)


def _results(evaluation: Evaluation, over: Sequence[Path]) -> Logs:
    if evaluation.failures:
        error = evaluation.failures[0]
        error.add_note(f"runs that ended: {', '.join(map(str, over)) or 'none'}")
        raise error
    return load(*over)
