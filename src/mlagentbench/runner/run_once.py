"""Do one run from start to result: let the agent act in its environment, grade its submission, write the result.

This module does not know Inspect. Whatever ends a run (a final answer, a limit, an error of the agent's, a provider or a signal), its last
snapshot is graded and its result is written.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlagentbench.actions import ACTIONS
from mlagentbench.actions.base import ActionDefinition
from mlagentbench.agents.base import Agent, line_in
from mlagentbench.audit.audit import audit_run
from mlagentbench.environment import ActionMiddleware, Environment, Listener, ScriptRunner, SilentListener, directly
from mlagentbench.errors import FormatFailure, InfrastructureError, LimitReached, RunStopped, UsageError
from mlagentbench.grading.baseline import data_sandbox, public_data, script_limits
from mlagentbench.grading.cache import task_digest
from mlagentbench.grading.score import Ending, Scoring, score_run
from mlagentbench.model import Models
from mlagentbench.records import Result, Role
from mlagentbench.run_spec import NO_MODEL, WORKSPACE_SHARE, ModelSpec, RunInfo, RunSpec
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.names import new_name
from mlagentbench.rundir.provenance import seal
from mlagentbench.runner.given import EXPERIENCE, OWN, check_given, copy_given, describe, own_documents
from mlagentbench.runner.preflight import ReadyRun
from mlagentbench.runner.slots import Slots
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, Mount
from mlagentbench.util.machine import free_disk_mb, hardware, versions
from mlagentbench.util.text import one_line
from mlagentbench.workspace.paths import Workspace, create_workspace, place_data
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore

GRACE = 10.0
"""Seconds that an agent may go on after the run's time limit before it is cancelled."""


AskPerson = Callable[[str], Awaitable[str]]
"""Asks the person who watches a run a question, and returns the answer."""
SEARCH, HELP = "Search Documents", "Request Help"
"""The actions that prompts list only where there are documents to search, and where a person watches."""


@dataclass(frozen=True)
class RunHooks:
    """Callbacks for runs in progress, and the means to steer them."""

    listener: Callable[[ReadyRun, int], Listener] = lambda ready, number: SilentListener()
    """Makes the listener of a run, given the run's number, from 1."""
    finished: Callable[[ReadyRun, int, Result], None] = lambda ready, number, result: None
    """Called with each run's result."""
    may_start: Callable[[], bool] = lambda: True
    """Asked before each run starts; once it returns False, no further run does, and those in progress go on."""
    rank: Mapping[str, int] = field(default_factory=dict)
    """By the names of runs, which come first where not all can go on at once; those without a rank have 0."""
    failed: Callable[[Exception], None] = lambda error: None
    """Called with the error of a run that could not be carried out, and so has no result."""
    stopping: Callable[[], None] = lambda: None
    """Called at the first interrupt: runs end, and are graded as they stand."""
    ask_person: AskPerson | None = None
    """Asks the person who watches an agent's question; None if nobody watches."""
    middleware: ActionMiddleware = directly
    """Wraps every action."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set this to end all runs early; each is graded as it stands, and its result says `cancelled`."""
    slots: Slots = field(default_factory=Slots)
    """The limits on how many runs and gradings go on at once."""


async def run_once(ready: ReadyRun, models: Models, hooks: RunHooks | None = None, *, number: int = 1) -> Result:
    """Do one run, or go on with one.

    Work that waits for the disk or for other processes is done in threads, so that it does not hold up other runs.

    Args:
        ready: the checked run.
        models: the models by role.
        hooks: the caller's callbacks, and its means to steer the run.
        number: the run's number, from 1, for its listener.

    Raises:
        UsageError: the run cannot be carried out as specified; nothing was run.
        StorageFailed: not even the run's directory could be written.
    """
    hooks = hooks or RunHooks()
    agent = ready.make_agent()
    if ready.continues is None:
        info = await asyncio.to_thread(run_info, ready, models.names(), ready.name(number), agent)
        directory = await asyncio.to_thread(RunDirectory.create, ready.log_directory, info)
    else:
        directory = ready.continues
    listener = hooks.listener(ready, number)
    with directory.lock():
        directory.reopen()
        environment = await asyncio.to_thread(_environment, ready, models, directory, listener, hooks)
        try:
            ending = await _settled(environment, await _act(agent, environment, hooks.stop))
        finally:
            environment.close()
        listener.on_status("grading")
        scoring = Scoring(ready.task, ready.spec.variant, ready.data.private, ready.spec.sandbox, ready.baseline, hooks.slots.gradings)
        result = await score_run(directory, scoring, ending, environment.usage, steps_too=ready.spec.score_steps)
        await asyncio.to_thread(lambda: seal(directory, task_digest(ready.task)))
        if ready.spec.audit:
            listener.on_status("auditing")
            await asyncio.to_thread(audit_run, directory, ready.task)
            result = directory.result or result
        return result


async def _act(agent: Agent, environment: Environment, stop: asyncio.Event) -> Ending:
    """Let the agent act until it ends, reaches a limit or is stopped; return how it ended."""
    acting = asyncio.create_task(_start(agent, environment))
    stopping = asyncio.create_task(stop.wait())
    limited = asyncio.create_task(environment.budget.over.wait())
    try:
        time_left = max(0.0, environment.seconds_left) + GRACE
        await asyncio.wait((acting, stopping, limited), timeout=time_left, return_when=asyncio.FIRST_COMPLETED)
        asking = environment.provider.asking
        if asking is not None:
            await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
        if limited.done() or asking is not None:
            # The limit's exception ends the agent by itself, unless the agent's code catches every exception.
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
        # An agent is the user's own code: whatever it raises is this run's outcome, and must not crash the runs beside it.
        words = f"{type(error).__name__}: {one_line(str(error))}{line_in(type(agent), error)}"
        return _without_limit(environment) or Ending("agent_error", words)
    return _without_limit(environment) or Ending("agent_error", "the agent returned without a final answer")


def _without_limit(environment: Environment) -> Ending | None:
    """Return how the environment ended the run; None if it did not.

    A final answer counts whatever the agent did after it; else a limit that was reached.
    """
    if environment.ended:
        return Ending("final_answer")
    limit = environment.budget.reached
    return Ending(limit.ended, str(limit)) if limit else None


async def _settled(environment: Environment, ending: Ending) -> Ending:
    """Wait until the last step is on disk; return the given ending, or the failure to write it."""
    try:
        await environment.settle()
    except LimitReached as limit:
        return Ending(limit.ended, str(limit))
    except InfrastructureError as failure:
        return await _failed(environment, failure)
    return ending


async def _failed(environment: Environment, failure: InfrastructureError) -> Ending:
    """Return how a run ended that failed: at a limit if the run itself filled the disk, else by an infrastructure failure."""
    limit = await environment.storage_limit_behind(failure)
    return Ending(limit.ended, str(limit)) if limit else Ending("infrastructure", str(failure))


def _time_limit(ready: ReadyRun) -> str:
    """Return the sentence that tells the agent how long one of its scripts may run."""
    seconds = (ready.settings.limits or script_limits(ready.task.spec)).seconds
    return f"One script may run for at most {f'{seconds:g} seconds' if seconds < 120 else f'{seconds / 60:g} minutes'}."


def _environment(ready: ReadyRun, models: Models, directory: RunDirectory, listener: Listener, hooks: RunHooks) -> Environment:
    info = directory.info
    public = public_data(ready.data)
    experience: dict[str, Path] = {}
    if info.experience is not None:
        if EXPERIENCE in public:
            raise UsageError(f"{ready.task.id} has data of the name {EXPERIENCE}, so that no experience can be given")
        copy_given(directory.experience, info.experience)
        experience = {EXPERIENCE: directory.experience}
    if info.documents is not None:
        copy_given(directory.documents, info.documents)
    documents = directory.documents if info.documents else own_documents(info.spec.documents, public, ready.task)
    workspace = _workspace(ready, directory, {**public, **experience}, links=ready.sandbox.isolation not in OWN_FILES)
    sandbox_spec = data_sandbox(ready.task, ready.data, workspace.root, network=ready.task.spec.network, settings=ready.settings)
    if info.disk_share_mb is not None:
        workspace_mb = min(sandbox_spec.limits.workspace_mb, max(1, info.disk_share_mb // WORKSPACE_SHARE))
        sandbox_spec = replace(sandbox_spec, limits=replace(sandbox_spec.limits, workspace_mb=workspace_mb))
    mounts = tuple(Mount(path, f"{WORKSPACE}/{name}") for name, path in experience.items())
    return Environment(
        directory=directory,
        workspace=workspace,
        scripts=ScriptRunner(ready.sandbox, replace(sandbox_spec, read_only=(*sandbox_spec.read_only, *mounts))),
        models=models,
        actions=_actions(documents is not None, hooks.ask_person is not None),
        documents=documents,
        limits=ready.spec.limits.within(info.disk_share_mb),
        listener=listener,
        middleware=hooks.middleware,
        person=hooks.ask_person,
    )


def _actions(documents: bool, person: bool) -> Mapping[str, ActionDefinition]:
    """Return the actions of a run: prompts list `Request Help` if a person watches; without documents nothing can be searched."""
    shown = {SEARCH: documents, HELP: person}
    found = {name: replace(action, hidden=False) if shown.get(name) else action for name, action in ACTIONS.items()}
    return found if documents else {name: action for name, action in found.items() if name != SEARCH}


def _workspace(ready: ReadyRun, directory: RunDirectory, public: Mapping[str, Path], links: bool) -> Workspace:
    """Set up the workspace: the starter for a new run, the last snapshot for one that goes on."""
    steps = directory.steps()
    start = directory.manifest(len(steps))
    if not steps and not start.exists():
        shutil.rmtree(directory.workspace, ignore_errors=True)
        return create_workspace(directory.workspace, ready.task.starter, public, links=links)
    directory.workspace.mkdir(exist_ok=True)
    SnapshotStore(directory.objects).restore(Manifest.load(start), directory.workspace, replace=True)
    place_data(directory.workspace, public, links=links)
    return Workspace(directory.workspace, public, links=links)


def run_info(ready: ReadyRun, models: Mapping[Role, str], name: str | None = None, agent: Agent | None = None) -> RunInfo:
    """Return what is known of a run before its first step.

    Args:
        ready: the checked run.
        models: the models' names by role.
        name: the run's name; None for a new one.
        agent: the agent, which may know the package that it was installed from.

    Raises:
        UsageError: what it is given to read cannot be given.
    """
    spec, facts = ready.spec, ready.task.spec
    given = check_given(spec.experience, spec.examples, spec.documents, ready.task, ready.log_directory)
    asked = {role: ModelSpec(name=name, options=spec.model(role).options) for role, name in models.items() if name != NO_MODEL}
    return RunInfo(
        run=name or new_name(facts.id, spec.agent, ready.sample),
        spec=_absolute(spec).replace(models=asked, python=ready.settings.python),
        category=facts.category,
        domain=facts.domain,
        published=facts.published,
        rungs=facts.rungs,
        description=f"{describe(ready.task.problem, given).rstrip()}\n\n{_time_limit(ready)}\n",
        metric=facts.metric.name,
        unit=facts.metric.unit,
        direction=facts.metric.direction,
        isolation=ready.sandbox.isolation,
        disk_share_mb=free_disk_mb(ready.log_directory) // ready.parallel,
        started=time.time(),
        versions=versions(),
        hardware=hardware(),
        data=ready.data_key,
        data_digest=ready.data_digest,
        sample=ready.sample,
        scheduled=ready.scheduled,
        experience=given.experience,
        examples=given.examples,
        documents=given.documents,
        agent_package=getattr(agent, "package", None),
    )


def _absolute(spec: RunSpec) -> RunSpec:
    """Return a spec whose paths hold whatever the working directory is."""
    documents = spec.documents if spec.documents is None or spec.documents.startswith(OWN) else str(Path(spec.documents).resolve())
    return spec.replace(
        experience=spec.experience and spec.experience.resolve(),
        examples=tuple(path.resolve() for path in spec.examples),
        documents=documents,
    )
