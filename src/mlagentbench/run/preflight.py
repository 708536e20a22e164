"""What is checked before a run, once: its agent, models, isolation, packages, data and experience, and what its score is compared with.

`make_spec` completes a spec by the task's own limits, `preflight` checks everything that takes a look or a download, and `with_baseline`
finds or measures the starter's score. What they hand down is all that a run needs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from mlagentbench.agents.base import Agent, make_agent
from mlagentbench.data.extras import require_extras
from mlagentbench.data.prepare import Prepared, prepare
from mlagentbench.errors import UsageError
from mlagentbench.records import Baseline
from mlagentbench.run.baseline import Place, kept, measure, script_limits
from mlagentbench.run.experience import look
from mlagentbench.run.score import paper_baseline
from mlagentbench.run_spec import RunSpec, check_spec
from mlagentbench.sandbox import isolation
from mlagentbench.sandbox.base import Sandbox
from mlagentbench.sandbox.view.environment import gpu_nodes
from mlagentbench.store.run_directory import RunDirectory, prepare_log_directory
from mlagentbench.tasks.catalogue import BUILT_IN, Task, find_task, load_task
from mlagentbench.tasks.spec import UNGRADED

CheckModels = Callable[[RunSpec], None]


@dataclass(frozen=True)
class CheckedRun:
    """A spec whose parts have been found and checked."""

    spec: RunSpec
    log_directory: Path
    task: Task
    sandbox: Sandbox
    data: Prepared
    data_key: str | None
    """Of the prepared data; None for a task without."""
    continues: RunDirectory | None = None
    """A run to go on with, from its last step; None for a new one."""
    parallel: int = 1
    """How many runs share the disk."""
    sample: str | None = None
    """The sample of an evaluation that a new run is (`RunInfo.sample`)."""

    def make_agent(self) -> Agent:
        """Return a new agent: each run has one of its own."""
        return make_agent(self.spec.agent, self.spec.agent_options)

    @property
    def place(self) -> Place:
        """Where and how scripts run."""
        return place_of(self.spec)


@dataclass(frozen=True)
class ReadyRun(CheckedRun):
    """A run that can begin."""

    baseline: Baseline | None = None
    """What its score is compared with; None for nothing, and where the grader measures the starter beside the submission."""


def place_of(spec: RunSpec) -> Place:
    """Return where and how a spec's scripts run."""
    return Place(spec.sandbox, spec.python or Path(sys.executable), spec.gpus, spec.script_limits)


def task_of(spec: RunSpec) -> Task:
    """Return the task that a spec names.

    Raises:
        TaskError: it is gone, or has changed so that it is none.
    """
    return load_task(spec.task_folder) if spec.task_folder else find_task(spec.task)


def make_spec(task: Task, given: Mapping[str, Any] = {}, source: str = "the spec") -> RunSpec:
    """Complete a spec by its task's own limits.

    Args:
        task: the task.
        given: fields of a `RunSpec`; `limits` and `script_limits` may leave some out, which are then the task's own.
        source: where they come from, for messages.

    Raises:
        UsageError: a field is unknown or wrong.
    """
    own = task.spec.limits
    limits = {"steps": own.steps, "time": own.time, **(given.get("limits") or {})}
    scripts = {**asdict(script_limits(task.spec)), **(given.get("script_limits") or {})}
    found = {"task_folder": None if task.folder.parent == BUILT_IN else task.folder}
    return check_spec({**given, **found, "task": task.id, "limits": limits, "script_limits": scripts}, source)


def preflight(
    specs: Sequence[RunSpec],
    log_directory: Path,
    *,
    continues: RunDirectory | None = None,
    check_models: CheckModels | None = None,
    console: Console | None = None,
) -> list[CheckedRun]:
    """Check everything that runs need: for all of them what takes only a look, then what may have to be fetched.

    Args:
        specs: what the runs are to do.
        log_directory: where they are to be kept; it is made.
        continues: a run to go on with, on the data that it began with; for a single spec.
        check_models: raises where a model of a spec cannot be used; None leaves that to who knows the models.
        console: where downloads show their progress; None for nowhere.

    Raises:
        AgentError: there is no such agent, or it refuses an option.
        UsageError: something that a spec names does not fit.
        ModelUnavailable: a model cannot be used.
        SandboxUnavailable: the sandbox or a GPU cannot be had here.
        TaskError: packages that a task needs are missing, or its data cannot be prepared.
    """
    tasks = [task_of(spec) for spec in specs]
    for spec in specs:
        agent = make_agent(spec.agent, spec.agent_options)
        if check_models is None:
            continue
        if getattr(agent, "needs_model", True) and not spec.models:
            raise UsageError(f"the agent {spec.agent!r} needs a model; name one with --model, such as --model openai/gpt-4o")
        check_models(spec)
    sandboxes = [isolation.choose(spec.sandbox) for spec in specs]
    for spec, task, sandbox in zip(specs, tasks, sandboxes, strict=True):
        if sandbox.isolation != "none":
            gpu_nodes(spec.gpus)
        if spec.experience is not None and continues is None:
            look(spec.experience, task, log_directory)
        require_extras(task, place_of(spec).python)
    log_directory = prepare_log_directory(log_directory)
    checked = []
    for spec, task, sandbox in zip(specs, tasks, sandboxes, strict=True):
        data, _, record, _ = prepare(task, spec.variant, key=continues.info.data if continues else None, console=console)
        checked.append(CheckedRun(spec, log_directory, task, sandbox, data, record.key if record else None, continues))
    return checked


async def ready_run(spec: RunSpec, log_directory: Path, *, continues: RunDirectory | None = None) -> ReadyRun:
    """Check one run, and find or measure what its score is compared with.

    Raises:
        MLAgentBenchError: as by `preflight` and `with_baseline`.
    """
    (checked,) = await asyncio.to_thread(preflight, [spec], log_directory, continues=continues)
    return await with_baseline(checked)


async def with_baseline(checked: CheckedRun) -> ReadyRun:
    """Find what the run's score is compared with, and measure it where it must be.

    Raises:
        TaskError: the starter left no score.
    """
    baseline = await compared_with(checked.spec, checked.task)
    return ReadyRun(**{field.name: getattr(checked, field.name) for field in fields(CheckedRun)}, baseline=baseline)


async def compared_with(spec: RunSpec, task: Task) -> Baseline | None:
    """Return what a run's score is compared with; None for nothing, and where the grader measures the starter beside the submission.

    With `auto` that is what was measured on a machine like this one; else, on the real data, the paper's number, and the run is flagged;
    else, on the mini variant and where the paper has none, it is measured now. A task graded as code has its starter measured beside every
    submission.

    Raises:
        TaskError: the starter left no score.
    """
    if _is_measured(spec, task):
        return (await measure(task, spec.variant, place=_starter_place(spec))).baseline
    if spec.baseline == "none" or task.spec.metric.name == UNGRADED or (spec.baseline == "auto" and task.spec.submission.mode == "code"):
        return None
    found = await asyncio.to_thread(kept, task, spec.variant, _starter_place(spec)) if spec.baseline == "auto" else None
    return found.baseline if found else paper_baseline(task.spec)


def measures_first(checked: CheckedRun) -> bool:
    """Return whether `with_baseline` will run the starter, which takes as long as it takes, since nothing is known of it yet."""
    return _is_measured(checked.spec, checked.task) and kept(checked.task, checked.spec.variant, _starter_place(checked.spec)) is None


def _is_measured(spec: RunSpec, task: Task) -> bool:
    if spec.baseline != "auto" or task.spec.metric.name == UNGRADED or task.spec.submission.mode == "code":
        return False
    return spec.variant == "mini" or paper_baseline(task.spec) is None


def _starter_place(spec: RunSpec) -> Place:
    """Return where the starter runs: with its task's own limits, whatever the user allows an agent."""
    return place_of(spec)._replace(limits=None)
