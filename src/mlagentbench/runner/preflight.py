"""Check a run once before it starts: its agent, models, isolation, packages, data and experience, and the baseline of its score.

`make_spec` completes a spec with the task's own limits, `preflight` checks everything and prepares the data, and `with_baseline` finds or
measures the starter's score. The `ReadyRun` that comes of it has all that a run needs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from mlagentbench.agents.base import Agent, make_agent
from mlagentbench.data.extras import require_extras
from mlagentbench.data.prepare import Prepared, prepare
from mlagentbench.errors import SandboxUnavailable, TaskError, UsageError
from mlagentbench.grading.baseline import ScriptSettings, measure, public_data, read_baseline, script_limits
from mlagentbench.grading.score import paper_baseline
from mlagentbench.records import Baseline
from mlagentbench.run_spec import RunSpec, check_spec
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.runner.given import check_given, own_documents
from mlagentbench.sandbox import isolation
from mlagentbench.sandbox.base import Sandbox
from mlagentbench.sandbox.view.environment import gpu_nodes
from mlagentbench.task.catalogue import BUILT_IN, Task, find_task, load_task
from mlagentbench.task.spec import UNGRADED

CheckModels = Callable[[RunSpec], None]


@dataclass(frozen=True)
class ReadyRun:
    """A spec whose parts have been found and checked."""

    spec: RunSpec
    log_directory: Path
    task: Task
    sandbox: Sandbox
    data: Prepared
    data_key: str | None
    """The key of the prepared data; None for a task without data."""
    data_digest: str | None = None
    """The digest of the prepared data (`PreparedRecord.digest`)."""
    continues: RunDirectory | None = None
    """The run to go on with from its last step; None for a new run."""
    parallel: int = 1
    """How many runs share the disk."""
    sample: str | None = None
    """The sample of an evaluation that a new run is (`RunInfo.sample`)."""
    names: tuple[str, ...] = ()
    """The names of the runs that this is carried out as, the first for the run's number 1; empty to make new names. A run of such a name
    that has begun goes on."""
    scheduled: float | None = None
    """When the experiment that a new run belongs to was first run (`RunInfo.scheduled`)."""
    baseline: Baseline | None = None
    """What the score is compared with; None before `with_baseline`, and for a grader that measures the starter beside the submission."""

    def make_agent(self) -> Agent:
        """Return a new agent; each run needs its own."""
        return make_agent(self.spec.agent, self.spec.agent_options)

    def name(self, number: int) -> str | None:
        """Return the name that a run of this number shall have; None for a new one."""
        return self.names[number - 1] if self.names else None

    @property
    def settings(self) -> ScriptSettings:
        """Where and how scripts run."""
        return script_settings(self.spec)


def script_settings(spec: RunSpec) -> ScriptSettings:
    """Return where and how the scripts of a spec run."""
    return ScriptSettings(spec.sandbox, spec.python or Path(sys.executable), spec.gpus, spec.script_limits)


def task_of(spec: RunSpec) -> Task:
    """Return the task that a spec names.

    Raises:
        TaskError: the task is gone, or is no longer a valid one.
    """
    return load_task(spec.task_folder) if spec.task_folder else find_task(spec.task)


def make_spec(task: Task, fields: Mapping[str, Any] = {}, source: str = "the spec") -> RunSpec:
    """Return a spec, completed with its task's own limits.

    Args:
        task: the task.
        fields: fields of a `RunSpec`; limits missing in `limits` and `script_limits` are the task's own.
        source: where the fields come from, for error messages.

    Raises:
        UsageError: a field is unknown or wrong.
    """
    own = task.spec.limits
    limits = {"steps": own.steps, "time": own.time, **(fields.get("limits") or {})}
    scripts = {**asdict(script_limits(task.spec)), **(fields.get("script_limits") or {})}
    found = {"task_folder": None if task.folder.parent == BUILT_IN else task.path}
    return check_spec({**fields, **found, "task": task.id, "limits": limits, "script_limits": scripts}, source)


def preflight(
    specs: Sequence[RunSpec],
    log_directory: Path,
    *,
    continues: RunDirectory | None = None,
    check_models: CheckModels | None = None,
    console: Console | None = None,
) -> list[ReadyRun]:
    """Check everything that some runs need, the quick checks of all runs first, then the data, which may have to be downloaded.

    Args:
        specs: the runs.
        log_directory: where the runs are stored; it is made.
        continues: a run to go on with, on the data that it began with; only with a single spec.
        check_models: raises an error if a model of a spec cannot be used; None to leave models unchecked.
        console: where downloads show their progress; None for nowhere.

    Raises:
        AgentError: there is no such agent, or it refuses an option.
        UsageError: a spec lacks something, such as a model, or asks for what cannot be given, such as an empty experience.
        ModelUnavailable: a model cannot be used.
        SandboxUnavailable: the sandbox or a GPU is not available on this machine.
        TaskError: packages that a task needs are missing, or its data cannot be prepared.
    """
    tasks = [task_of(spec) for spec in specs]
    agents = [make_agent(spec.agent, spec.agent_options) for spec in specs]
    for spec, agent in zip(specs, agents, strict=True):
        if check_models is None:
            continue
        if getattr(agent, "needs_model", True) and not spec.models:
            raise UsageError(f"the agent {spec.agent!r} needs a model; name one with --model, such as --model openai/gpt-4o")
        check_models(spec)
    sandboxes = [isolation.choose(spec.sandbox) for spec in specs]
    for spec, task, agent, sandbox in zip(specs, tasks, agents, sandboxes, strict=True):
        needed = getattr(agent, "isolation", sandbox.isolation)
        if sandbox.isolation != needed:
            raise SandboxUnavailable(
                f"the agent {spec.agent!r} runs in {needed} only, and this run has {sandbox.isolation}; see mlab doctor"
            )
        if sandbox.isolation != "none":
            gpu_nodes(spec.gpus)
        # A retry goes on with runs that have copies of their own; a run without one is refused when it begins.
        if check_models is not None and continues is None:
            check_given(spec.experience, spec.examples, spec.documents, task, log_directory)
        require_extras(task, script_settings(spec).python)
    log_directory = prepare_log_directory(log_directory)
    checked = []
    for spec, task, sandbox in zip(specs, tasks, sandboxes, strict=True):
        info = continues.info if continues else None
        data, _, record, _ = prepare(
            task,
            spec.variant,
            key=info.data if info else None,
            digest=info.data_digest if info else None,
            mini_seed=spec.mini_seed,
            console=console,
        )
        own_documents(spec.documents, public_data(data), task)
        key, digest = (record.key, record.digest) if record else (None, None)
        checked.append(ReadyRun(spec, log_directory, task, sandbox, data, key, digest, continues))
    return checked


async def ready_run(spec: RunSpec, log_directory: Path, *, continues: RunDirectory | None = None) -> ReadyRun:
    """Check one run but for its models, and find or measure its baseline.

    Raises:
        MLAgentBenchError: as in `preflight` and `with_baseline`.
    """
    (checked,) = await asyncio.to_thread(preflight, [spec], log_directory, continues=continues)
    return await with_baseline(checked)


async def with_baseline(run: ReadyRun) -> ReadyRun:
    """Return a checked run with its baseline, which is found or measured.

    Raises:
        TaskError: the starter left no score.
    """
    return replace(run, baseline=await find_baseline(run.spec, run.task))


async def find_baseline(spec: RunSpec, task: Task) -> Baseline | None:
    """Return what a run's score is compared with; None for nothing, and if the grader measures the starter beside the submission.

    With `auto`, that is the starter's score on a machine like this one, measured now if there is none yet; the run's own time limit holds
    for that, too. The paper's number belongs to the paper's starter, which is not ours, so it only serves with `paper`. The starter of a
    task graded as code is measured beside every submission instead.

    Raises:
        TaskError: the starter left no score, or measuring it took longer than the run may.
    """
    if _is_measured(spec, task):
        try:
            async with asyncio.timeout(spec.limits.time):
                return (await measure(task, spec.variant, mini_seed=spec.mini_seed, settings=_starter_settings(spec))).baseline
        except TimeoutError:
            seed = "" if spec.mini_seed is None else f" --mini-seed {spec.mini_seed}"
            raise TaskError(
                f"measuring the starter of {task.id} took longer than the {spec.limits.time:g} s that the run may take; measure it once"
                f" with `mlab baseline {task.id} --variant {spec.variant}{seed}`, or go on with --baseline none"
            ) from None
    return paper_baseline(task.spec) if spec.baseline == "paper" and task.spec.metric.name != UNGRADED else None


def measures_first(run: ReadyRun) -> bool:
    """Return whether `with_baseline` will run the starter, which may take long, because no score of it is cached."""
    return (
        _is_measured(run.spec, run.task)
        and read_baseline(run.task, run.spec.variant, _starter_settings(run.spec), run.spec.mini_seed) is None
    )


def _is_measured(spec: RunSpec, task: Task) -> bool:
    measurable = task.spec.submission.mode != "code" and task.spec.starter.state != "none"
    return spec.baseline == "auto" and task.spec.metric.name != UNGRADED and measurable


def _starter_settings(spec: RunSpec) -> ScriptSettings:
    """Return where and how the starter runs: with its task's own limits, whatever the user allows an agent."""
    return script_settings(spec)._replace(limits=None)
