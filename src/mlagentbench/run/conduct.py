"""One run, whole: an agent in its environment until it ends, then the grading of what it left, then the result.

Nothing here knows Inspect. Whatever ends a run, be it an answer, a limit, the agent's own fault, a provider or a signal, its last snapshot
is graded and its result written.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from mlagentbench.actions import ACTIONS
from mlagentbench.agents.base import Agent, line_in, make_agent
from mlagentbench.data.extras import require_extras
from mlagentbench.data.prepare import Prepared, prepare
from mlagentbench.environment import Environment, Listener, RunLimits, Silent, Through, directly
from mlagentbench.environment.limits import WORKSPACE_SHARE
from mlagentbench.environment.reading import Reads
from mlagentbench.errors import FormatFailure, InfrastructureError, LimitReached, RunStopped, UsageError
from mlagentbench.model import Models
from mlagentbench.records import Baseline, BaselineChoice, Price, Result, Role, RunInfo
from mlagentbench.run.baseline import Place, data_box, kept, measure, public_data, script_limits
from mlagentbench.run.experience import EXPERIENCE, bring, look, told
from mlagentbench.run.facts import hardware, versions
from mlagentbench.run.score import Ending, Scoring, paper_baseline, score_run
from mlagentbench.sandbox import isolation
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, BoxLimits, Mount, Sandbox
from mlagentbench.sandbox.isolation import Choice
from mlagentbench.store.run_directory import RunDirectory, new_name, prepare_log_directory
from mlagentbench.tasks.catalogue import Task
from mlagentbench.tasks.spec import UNGRADED, Variant
from mlagentbench.workspace.paths import Workspace, lay, lay_data
from mlagentbench.workspace.snapshots import KeepLast, Manifest, SnapshotStore

GRACE = 10.0
"""Seconds that an agent may be late after the run's time limit before it is stopped from outside."""
MOST_SAID = 500
"""Characters of an error of an agent's own that stand in the result."""


Person = Callable[[str], Awaitable[str]]
"""Puts a question to the person who watches a run."""
WATCHED = {**ACTIONS, "Request Help": replace(ACTIONS["Request Help"], hidden=False)}
"""The actions of a run that a person watches: prompts mention that there is help."""


@dataclass(frozen=True)
class RunPlan:
    """What a run is to do."""

    task: Task
    agent: str
    log_directory: Path
    variant: Variant = "full"
    agent_options: Mapping[str, JsonValue] = field(default_factory=dict)
    model_options: Mapping[str, JsonValue] = field(default_factory=dict)
    """What the agent's model is made with."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """What models cost, by their names, where that is known better than the engine knows it."""
    limits: RunLimits | None = None
    """None for the task's own."""
    box_limits: BoxLimits | None = None
    """What each script may use; None for the task's own limits."""
    sandbox: Choice = "auto"
    python: Path = Path(sys.executable)
    gpus: tuple[str, ...] = ()
    score_steps: bool = True
    """Whether every step's submission is scored too, once each distinct one."""
    baseline: BaselineChoice = "auto"
    """What the score is compared with; see `compared_with`."""
    keep: KeepLast | None = None
    """How many versions of large files the snapshots keep; None for all."""
    experience: Path | None = None
    """A folder with what is known from earlier work, which the agent is given read-only; see run/experience.py."""
    continues: RunDirectory | None = None
    """A run to go on with, from its last step; None for a new one."""
    parallel: int = 1
    """How many runs share the disk."""
    sample: str | None = None
    """The sample of an evaluation that a new run is (`RunInfo.sample`)."""

    @property
    def run_limits(self) -> RunLimits:
        """The limits that hold."""
        own = self.task.spec.limits
        return self.limits or RunLimits(steps=own.steps, time=own.time)

    @property
    def script_limits(self) -> BoxLimits:
        """The limits that hold for each script."""
        return self.box_limits or script_limits(self.task.spec)

    @property
    def place(self) -> Place:
        """Where and how scripts run."""
        return Place(self.sandbox, self.python, self.gpus, self.script_limits)

    @property
    def starter_place(self) -> Place:
        """The same for the starter, with its task's own limits: what a user allows an agent changes nothing about it."""
        return self.place._replace(limits=None)


async def compared_with(plan: RunPlan) -> Baseline | None:
    """What a run's score is compared with; None for nothing, and where the grader measures the starter beside the submission.

    With `auto` that is what was measured on a machine like this one; else, on the real data, the paper's number, and the run is flagged;
    else, on the mini variant and where the paper has none, it is measured now. A task graded as code has its starter measured beside every
    submission.

    Raises:
        TaskError: the starter left no score.
    """
    if _is_measured(plan):
        return (await measure(plan.task, plan.variant, place=plan.starter_place)).baseline
    spec = plan.task.spec
    if plan.baseline == "none" or spec.metric.name == UNGRADED or (plan.baseline == "auto" and spec.submission.mode == "code"):
        return None
    found = await asyncio.to_thread(kept, plan.task, plan.variant, plan.starter_place) if plan.baseline == "auto" else None
    return found.baseline if found else paper_baseline(spec)


def measures_first(plan: RunPlan) -> bool:
    """Whether `compared_with` will run the starter, which takes as long as it takes, since nothing is known of it yet."""
    return _is_measured(plan) and kept(plan.task, plan.variant, plan.starter_place) is None


def _is_measured(plan: RunPlan) -> bool:
    spec = plan.task.spec
    if plan.baseline != "auto" or spec.metric.name == UNGRADED or spec.submission.mode == "code":
        return False
    return plan.variant == "mini" or paper_baseline(spec) is None


async def conduct(
    plan: RunPlan,
    models: Models,
    *,
    listener: Listener | None = None,
    stop: asyncio.Event | None = None,
    through: Through = directly,
    gradings: AbstractAsyncContextManager[object] = nullcontext(),
    person: Person | None = None,
) -> Result:
    """Do one run.

    What waits for the disk or for other processes is done in threads, so that the runs beside it go on.

    Args:
        plan: what to do.
        models: the models by role.
        listener: who watches.
        stop: set it to end the run early; it is then graded as it stands, and its result says `cancelled`.
        through: what every action passes through.
        gradings: is held during each grading, by which a caller bounds how many go on at once.
        person: asks the person who watches; None where nobody does.

    Raises:
        UsageError: the plan cannot be carried out as it stands; nothing was run.
        StorageFailed: not even the run's directory could be written.
    """
    agent = make_agent(plan.agent, plan.agent_options)
    sandbox = await asyncio.to_thread(isolation.choose, plan.sandbox)
    await asyncio.to_thread(require_extras, plan.task, plan.python)
    begun_on = plan.continues.info.data if plan.continues else None
    data, _, record, _ = await asyncio.to_thread(prepare, plan.task, plan.variant, key=begun_on)
    baseline = await compared_with(plan)
    log_directory = prepare_log_directory(plan.log_directory)
    if plan.continues is None:
        info = await asyncio.to_thread(run_info, plan, models.names(), sandbox.isolation, record.key if record else None)
        directory = await asyncio.to_thread(RunDirectory.create, log_directory, info)
    else:
        directory = plan.continues
    listener = listener or Silent()
    with directory.lock():
        directory.reopen()
        environment = await asyncio.to_thread(_environment, plan, models, directory, sandbox, data, listener, through, person)
        try:
            ending = await _settled(environment, await _act(agent, environment, stop))
        finally:
            environment.close()
        listener.activity("grading")
        scoring = Scoring(plan.task, plan.variant, data.private, plan.sandbox, baseline, gradings)
        return await score_run(directory, scoring, ending, environment.usage, steps_too=plan.score_steps)


async def _act(agent: Agent, environment: Environment, stop: asyncio.Event | None) -> Ending:
    """Let the agent act until it ends, in one way or another."""
    acting = asyncio.create_task(_start(agent, environment))
    stopping = asyncio.create_task((stop or asyncio.Event()).wait())
    limited = asyncio.create_task(environment.budget.over.wait())
    try:
        time_left = max(0.0, environment.seconds_left) + GRACE
        await asyncio.wait((acting, stopping, limited), timeout=time_left, return_when=asyncio.FIRST_COMPLETED)
        asking = environment.provider.asking
        if asking is not None:
            await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
        if limited.done() or asking is not None:
            # By the limit's exception it leaves by itself, unless its author catches whatever there is.
            await asyncio.wait((acting, stopping), timeout=GRACE, return_when=asyncio.FIRST_COMPLETED)
        if acting.done():
            return Ending("agent_error", "the agent gave itself up, by asyncio's CancelledError") if acting.cancelled() else await acting
        acting.cancel()
        await asyncio.wait((acting,), timeout=GRACE)
        if stopping.done():
            return Ending("cancelled", "the run was stopped")
        if limit := environment.budget.reached:
            return Ending(limit.ended, str(limit))
        return Ending("limit_time", "the agent did nothing until the time limit")
    finally:
        stopping.cancel()
        limited.cancel()
        if not acting.done():
            acting.cancel()
            await asyncio.wait((acting,), timeout=GRACE)


async def _start(agent: Agent, environment: Environment) -> Ending:
    try:
        await environment.start()
        if not environment.ended:
            acting = agent(environment)
            if not isinstance(acting, Awaitable):
                return Ending("agent_error", f"the agent gave {acting!r:.80} where it should act: write its __call__ with async def")
            await acting
    except LimitReached as limit:
        return Ending(limit.ended, str(limit))
    except RunStopped as stopped:
        return Ending("cancelled", str(stopped))
    except FormatFailure as failure:
        return Ending("format_failure", str(failure))
    except InfrastructureError as failure:
        return await _failed(environment, failure)
    except UsageError:
        raise
    except (Exception, SystemExit, GeneratorExit) as error:
        # An agent is somebody's own code: whatever it raises is the run's outcome, not a crash of the others beside it.
        words = " ".join(str(error).split())[:MOST_SAID]
        return _without_limit(environment) or Ending("agent_error", f"{type(error).__name__}: {words}{line_in(type(agent), error)}")
    return _without_limit(environment) or Ending("agent_error", "the agent returned without a final answer")


def _without_limit(environment: Environment) -> Ending | None:
    """How a run ended whose agent says nothing of it: by the final answer, which stands whatever it did after that, or by a limit."""
    if environment.ended:
        return Ending("final_answer")
    limit = environment.budget.reached
    return Ending(limit.ended, str(limit)) if limit else None


async def _settled(environment: Environment, ending: Ending) -> Ending:
    """Wait for the last step to be on disk, however the agent ended."""
    try:
        await environment.settle()
    except LimitReached as limit:
        return Ending(limit.ended, str(limit))
    except InfrastructureError as failure:
        return await _failed(environment, failure)
    return ending


async def _failed(environment: Environment, failure: InfrastructureError) -> Ending:
    """How a run ended that could not go on: by a limit where it has itself filled the disk."""
    limit = await environment.at_fault(failure)
    return Ending(limit.ended, str(limit)) if limit else Ending("infrastructure", str(failure))


def _environment(
    plan: RunPlan,
    models: Models,
    directory: RunDirectory,
    sandbox: Sandbox,
    data: Prepared,
    listener: Listener,
    through: Through,
    person: Person | None,
) -> Environment:
    info = directory.info
    public = public_data(data)
    given: dict[str, Path] = {}
    if info.experience is not None:
        if EXPERIENCE in public:
            raise UsageError(f"{plan.task.id} has data of the name {EXPERIENCE}, so that no experience can be given")
        bring(directory, info.experience)
        given = {EXPERIENCE: directory.experience}
    workspace = _workspace(plan, directory, {**public, **given}, links=sandbox.isolation not in OWN_FILES)
    box = data_box(plan.task, data, workspace.root, network=plan.task.spec.network, place=plan.place)
    if info.disk_share_mb is not None:
        workspace_mb = min(box.limits.workspace_mb, max(1, info.disk_share_mb // WORKSPACE_SHARE))
        box = replace(box, limits=replace(box.limits, workspace_mb=workspace_mb))
    mounts = tuple(Mount(path, f"{WORKSPACE}/{name}") for name, path in given.items())
    return Environment(
        description=info.description,
        workspace=workspace,
        directory=directory,
        sandbox=sandbox,
        box=replace(box, read_only=(*box.read_only, *mounts)),
        models=models,
        actions=ACTIONS if person is None else WATCHED,
        limits=plan.run_limits.within(info.disk_share_mb),
        listener=listener,
        through=through,
        person=person,
        keep=plan.keep,
        reads=Reads(given.get(EXPERIENCE), EXPERIENCE),
    )


def _workspace(plan: RunPlan, directory: RunDirectory, public: Mapping[str, Path], links: bool) -> Workspace:
    """The starter for a new run; for one that goes on, what its last step left."""
    steps = directory.steps()
    start = directory.manifest(len(steps))
    if not steps and not start.exists():
        shutil.rmtree(directory.workspace, ignore_errors=True)
        return lay(directory.workspace, plan.task.starter, public, links=links)
    directory.workspace.mkdir(exist_ok=True)
    SnapshotStore(directory.objects).restore(Manifest.load(start), directory.workspace, replace=True)
    lay_data(directory.workspace, public, links=links)
    return Workspace(directory.workspace, public, links=links)


def disk_share_mb(plan: RunPlan) -> int:
    """A run's share of what is free on the disk of its log directory, in megabytes (2^20)."""
    return (shutil.disk_usage(plan.log_directory).free >> 20) // plan.parallel


def run_info(plan: RunPlan, models: Mapping[Role, str], isolation: str, data: str | None) -> RunInfo:
    """What is known of a run before its first step.

    Args:
        plan: what it is to do.
        models: the models' names by role.
        isolation: what its scripts run in.
        data: the key of its prepared data; None for a task without.

    Raises:
        UsageError: the plan's experience cannot be given.
    """
    spec = plan.task.spec
    experience = look(plan.experience, plan.task, plan.log_directory) if plan.experience else None
    return RunInfo(
        run=new_name(spec.id, plan.agent, plan.sample),
        task=spec.id,
        category=spec.category,
        published=spec.published,
        variant=plan.variant,
        agent=plan.agent,
        agent_options=plan.agent_options,
        models=models,
        model_options=plan.model_options,
        prices=plan.prices,
        description=told(plan.task.problem, experience),
        metric=spec.metric.name,
        unit=spec.metric.unit,
        direction=spec.metric.direction,
        isolation=isolation,
        limits=asdict(plan.run_limits),
        script_limits=asdict(plan.script_limits),
        disk_share_mb=disk_share_mb(plan),
        started=time.time(),
        versions=versions(),
        hardware=hardware(),
        sandbox=plan.sandbox,
        python=str(plan.python),
        gpus=plan.gpus,
        task_folder=str(plan.task.folder),
        data=data,
        sample=plan.sample,
        score_steps=plan.score_steps,
        baseline=plan.baseline,
        keep=plan.keep._asdict() if plan.keep else None,
        experience=experience,
    )
