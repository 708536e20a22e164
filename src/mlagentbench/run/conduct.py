"""One run, whole: an agent in its environment until it ends, then the grading of what it left, then the result.

Nothing here knows Inspect. Whatever ends a run, be it an answer, a limit, the agent's own fault, a provider or a signal, its last snapshot
is graded and its result written.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlagentbench.actions import ACTIONS
from mlagentbench.agents.base import Agent, line_in
from mlagentbench.environment import ActionMiddleware, Environment, Listener, Silent, directly
from mlagentbench.environment.reading import Reads
from mlagentbench.errors import FormatFailure, InfrastructureError, LimitReached, RunStopped, UsageError
from mlagentbench.model import Models
from mlagentbench.records import Result, Role
from mlagentbench.run.baseline import data_box, public_data
from mlagentbench.run.experience import EXPERIENCE, bring, look, told
from mlagentbench.run.facts import free_disk_mb, hardware, versions
from mlagentbench.run.preflight import CheckedRun, ReadyRun
from mlagentbench.run.score import Ending, Scoring, score_run
from mlagentbench.run.slots import Slots
from mlagentbench.run_spec import NO_MODEL, WORKSPACE_SHARE, ModelSpec, RunInfo
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, Mount
from mlagentbench.store.run_directory import RunDirectory, new_name
from mlagentbench.workspace.paths import Workspace, lay, lay_data
from mlagentbench.workspace.snapshots import Manifest, SnapshotStore

GRACE = 10.0
"""Seconds that an agent may be late after the run's time limit before it is stopped from outside."""
MOST_SAID = 500
"""Characters of an error of an agent's own that stand in the result."""


AskPerson = Callable[[str], Awaitable[str]]
"""Puts a question to the person who watches a run."""
WATCHED = {**ACTIONS, "Request Help": replace(ACTIONS["Request Help"], hidden=False)}
"""The actions of a run that a person watches: prompts mention that there is help."""


@dataclass(frozen=True)
class RunHooks:
    """What a caller is told of runs while they go on, and how it steers them."""

    listener: Callable[[ReadyRun, int], Listener] = lambda ready, number: Silent()
    """Makes the listener of a run, by its number from 1."""
    finished: Callable[[ReadyRun, int, Result], None] = lambda ready, number, result: None
    """Is told each run's result."""
    failed: Callable[[Exception], None] = lambda error: None
    """Is told why a run could not be carried out, and has no result."""
    stopping: Callable[[], None] = lambda: None
    """Is told that the first interrupt has come: runs end, and are graded as they stand."""
    ask_person: AskPerson | None = None
    """Puts an agent's question to the person who watches; None where nobody does."""
    middleware: ActionMiddleware = directly
    """What every action passes through."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set it to end all runs early; each is graded as it stands, and its result says `cancelled`."""
    slots: Slots = field(default_factory=Slots)
    """Which runs go on at once, and how many gradings."""


async def run_once(ready: ReadyRun, models: Models, hooks: RunHooks | None = None, *, number: int = 1) -> Result:
    """Do one run.

    What waits for the disk or for other processes is done in threads, so that the runs beside it go on.

    Args:
        ready: what to do, checked.
        models: the models by role.
        hooks: what the caller is told, and how it steers the run.
        number: the run's, from 1, for its listener.

    Raises:
        UsageError: the run cannot be carried out as it stands; nothing was run.
        StorageFailed: not even the run's directory could be written.
    """
    hooks = hooks or RunHooks()
    agent = ready.make_agent()
    if ready.continues is None:
        info = await asyncio.to_thread(run_info, ready, models.names())
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
        listener.activity("grading")
        scoring = Scoring(ready.task, ready.spec.variant, ready.data.private, ready.spec.sandbox, ready.baseline, hooks.slots.gradings)
        return await score_run(directory, scoring, ending, environment.usage, steps_too=ready.spec.score_steps)


async def _act(agent: Agent, environment: Environment, stop: asyncio.Event) -> Ending:
    """Let the agent act until it ends, in one way or another."""
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
    """Return how a run ended that could not go on: by a limit where it has itself filled the disk."""
    limit = await environment.at_fault(failure)
    return Ending(limit.ended, str(limit)) if limit else Ending("infrastructure", str(failure))


def _environment(ready: ReadyRun, models: Models, directory: RunDirectory, listener: Listener, hooks: RunHooks) -> Environment:
    info = directory.info
    public = public_data(ready.data)
    given: dict[str, Path] = {}
    if info.experience is not None:
        if EXPERIENCE in public:
            raise UsageError(f"{ready.task.id} has data of the name {EXPERIENCE}, so that no experience can be given")
        bring(directory, info.experience)
        given = {EXPERIENCE: directory.experience}
    workspace = _workspace(ready, directory, {**public, **given}, links=ready.sandbox.isolation not in OWN_FILES)
    box = data_box(ready.task, ready.data, workspace.root, network=ready.task.spec.network, place=ready.place)
    if info.disk_share_mb is not None:
        workspace_mb = min(box.limits.workspace_mb, max(1, info.disk_share_mb // WORKSPACE_SHARE))
        box = replace(box, limits=replace(box.limits, workspace_mb=workspace_mb))
    mounts = tuple(Mount(path, f"{WORKSPACE}/{name}") for name, path in given.items())
    return Environment(
        description=info.description,
        workspace=workspace,
        directory=directory,
        sandbox=ready.sandbox,
        box=replace(box, read_only=(*box.read_only, *mounts)),
        models=models,
        actions=ACTIONS if hooks.ask_person is None else WATCHED,
        limits=ready.spec.limits.within(info.disk_share_mb),
        listener=listener,
        through=hooks.middleware,
        person=hooks.ask_person,
        keep=ready.spec.retention,
        reads=Reads(given.get(EXPERIENCE), EXPERIENCE),
    )


def _workspace(ready: ReadyRun, directory: RunDirectory, public: Mapping[str, Path], links: bool) -> Workspace:
    """Lay the starter for a new run; for one that goes on, what its last step left."""
    steps = directory.steps()
    start = directory.manifest(len(steps))
    if not steps and not start.exists():
        shutil.rmtree(directory.workspace, ignore_errors=True)
        return lay(directory.workspace, ready.task.starter, public, links=links)
    directory.workspace.mkdir(exist_ok=True)
    SnapshotStore(directory.objects).restore(Manifest.load(start), directory.workspace, replace=True)
    lay_data(directory.workspace, public, links=links)
    return Workspace(directory.workspace, public, links=links)


def run_info(checked: CheckedRun, models: Mapping[Role, str]) -> RunInfo:
    """Return what is known of a run before its first step.

    Args:
        checked: what it is to do.
        models: the names by role of the models that are asked.

    Raises:
        UsageError: its experience cannot be given.
    """
    spec, facts = checked.spec, checked.task.spec
    experience = look(spec.experience, checked.task, checked.log_directory) if spec.experience else None
    asked = {role: ModelSpec(name=name, options=spec.model(role).options) for role, name in models.items() if name != NO_MODEL}
    return RunInfo(
        run=new_name(facts.id, spec.agent, checked.sample),
        spec=spec.replace(models=asked, python=checked.place.python, experience=spec.experience and spec.experience.resolve()),
        category=facts.category,
        published=facts.published,
        description=told(checked.task.problem, experience),
        metric=facts.metric.name,
        unit=facts.metric.unit,
        direction=facts.metric.direction,
        isolation=checked.sandbox.isolation,
        disk_share_mb=free_disk_mb(checked.log_directory) // checked.parallel,
        started=time.time(),
        versions=versions(),
        hardware=hardware(),
        data=checked.data_key,
        sample=checked.sample,
        experience=experience,
    )
