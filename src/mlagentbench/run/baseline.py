"""The starter's own score: what an agent's is compared with.

The starter is run as a run would run it, in the same sandbox under the same limits, and what it leaves is graded as a run's submission is.
It is run a few times with other seeds (the environment variable `SEED`), since a gain that is smaller than the starter's own spread is
none. A starter that does not run has the naive predictor instead that its task names, computed from the data.

What was measured is kept beside the prepared data, a file a task, variant, machine and isolation, and measured anew when the task changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue, ValidationError

from mlagentbench.data.cache import cache_directory
from mlagentbench.data.prepare import Prepared, place_of, prepared
from mlagentbench.errors import TaskError
from mlagentbench.grading.fork_server import ForkServer
from mlagentbench.grading.grade import Graded, grade, missing
from mlagentbench.grading.lock import holding
from mlagentbench.records import Baseline, Record, Score, Variant
from mlagentbench.run.facts import hardware, versions
from mlagentbench.run.gradings import task_digest
from mlagentbench.run_spec import SandboxChoice, ScriptLimits
from mlagentbench.sandbox import isolation, process
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, Box, Execution, Mount
from mlagentbench.store.temporary import finish, temporary_folder
from mlagentbench.tasks.catalogue import Task
from mlagentbench.tasks.spec import TaskSpec
from mlagentbench.workspace.paths import Workspace, lay
from mlagentbench.workspace.snapshots import SnapshotStore

if TYPE_CHECKING:  # it brings polars, which runs that measure nothing do not wait for
    from mlagentbench.tasks.proofs import Files

RUNS = 3
"""How often a starter is run unless asked otherwise."""
SEED = "SEED"
"""The environment variable by which a starter is told its seed; without it starters take 0."""


class Place(NamedTuple):
    """Where and how scripts run."""

    sandbox: SandboxChoice = "auto"
    python: Path = Path(sys.executable)
    gpus: tuple[str, ...] = ()
    limits: ScriptLimits | None = None
    """None for the task's own."""
    environment: Mapping[str, str] = MappingProxyType({})
    """Variables that the starter sees beside its seed."""
    forks: ForkServer | None = None
    """Forks graders; None starts a Python for each."""


class StarterRun(NamedTuple):
    """One run of a starter: how its script ended, and what it left is worth."""

    execution: Execution
    graded: Graded | None
    """None where it left no submission."""

    @property
    def score(self) -> Score | None:
        """None where there is none."""
        return self.graded.score if self.graded else None

    @property
    def reason(self) -> str:
        """Why there is no score, in one line; empty where there is one."""
        if self.score is not None:
            return ""
        if self.graded is not None:
            return self.graded.reason or "it cannot be graded"
        lines = self.execution.output.strip().splitlines()
        return f"it left no submission, and said at last: {lines[-1].strip() if lines else 'nothing'}"


class Measured(Record):
    """What was measured of a starter, as it is kept."""

    task: str
    variant: Variant
    baseline: Baseline
    seconds: tuple[float, ...]
    """Of each run of the script; empty for a predictor."""
    failures: tuple[str, ...] = ()
    """Why runs left no score."""
    isolation: str
    hardware: Mapping[str, JsonValue]
    versions: Mapping[str, str]


def data_box(task: Task, data: Prepared, workspace: Path, *, network: bool, place: Place) -> Box:
    """The box of a task's scripts: its data mounted read-only beside what is in the workspace."""
    return Box(
        workspace=workspace,
        read_only=tuple(Mount(path, f"{WORKSPACE}/{name}") for name, path in public_data(data).items()),
        python=place.python,
        hidden=task.spec.hidden,
        network=network,
        gpus=place.gpus,
        limits=place.limits or script_limits(task.spec),
    )


def public_data(data: Prepared) -> Mapping[str, Path]:
    """The data that scripts see, by its top-level names."""
    return {path.name: path for path in sorted(data.public.iterdir())} if data.public else {}


def script_limits(spec: TaskSpec) -> ScriptLimits:
    """The task's own limits of a script."""
    own = spec.limits
    return ScriptLimits(
        seconds=own.script_time,
        memory_mb=own.memory_mb,
        processes=own.processes,
        file_mb=own.file_mb,
        workspace_mb=own.workspace_mb,
        workspace_files=own.workspace_files,
    )


async def run_starter(
    task: Task, variant: Variant, data: Prepared, *, place: Place = Place(), files: Files = MappingProxyType({}), seed: int | None = None
) -> StarterRun:
    """Run a task's starter once in a workspace of its own, and grade what it leaves.

    Args:
        task: the task.
        variant: of it.
        data: as `prepared` made it.
        place: where and how its script runs.
        files: written over the starter first.
        seed: told to the script as `SEED`; None for none.

    Raises:
        GradingError: the grader failed on its own account.
        SandboxUnavailable: this machine cannot give the sandbox.
    """
    sandbox = await asyncio.to_thread(isolation.choose, place.sandbox)
    async with temporary_folder("mlab-starter-") as folder:
        folder.chmod(0o755)  # a sandbox may run as another user
        public = public_data(data)
        workspace = await finish(lay, folder / "workspace", task.starter, public, links=sandbox.isolation not in OWN_FILES)
        await finish(write_files, workspace.root, files)
        box = data_box(task, data, workspace.root, network=task.spec.network, place=place)
        told = {} if seed is None else {SEED: str(seed)}
        box = replace(box, environment={**place.environment, **told})
        execution = await process.run(sandbox, ("python", task.spec.starter.script), box)
        submission = await finish(_submission, task, workspace, folder)
        return StarterRun(execution, await grade_folder(task, variant, data, submission, place.sandbox, place.forks))


async def grade_files(task: Task, variant: Variant, data: Prepared, files: Files, sandbox: SandboxChoice = "auto") -> Graded | None:
    """Grade a submission that is at hand; None where it lacks what the task requires.

    Raises:
        GradingError: the grader failed on its own account.
    """
    async with temporary_folder("mlab-submission-") as folder:
        await finish(write_files, folder, files)
        return await grade_folder(task, variant, data, folder, sandbox)


async def grade_folder(
    task: Task, variant: Variant, data: Prepared, folder: Path, sandbox: SandboxChoice, forks: ForkServer | None = None
) -> Graded | None:
    """The same for a folder that holds the submission and nothing else."""
    if missing(task.spec, folder):
        return None
    return await grade(task, folder, variant=variant, private=data.private, sandbox=sandbox, forks=forks)


def write_files(folder: Path, files: Files) -> None:
    """Write contents at their paths below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def _submission(task: Task, workspace: Workspace, folder: Path) -> Path:
    """Copy what the task calls a submission, as a run's last snapshot gives it: nothing of it is followed or opened by name."""
    store = SnapshotStore(folder / "objects")
    chosen = store.take(workspace).select(task.spec.submission.files)
    submission = folder / "submission"
    submission.mkdir()
    store.restore(chosen, submission)
    return submission


async def measure(
    task: Task,
    variant: Variant,
    *,
    place: Place = Place(),
    runs: int = RUNS,
    again: bool = False,
    tell: Callable[[int, StarterRun], None] = lambda number, run: None,
) -> Measured:
    """A starter's score over some runs, from the cache as far as it has them. Of several who ask at once one measures, the others wait.

    Args:
        task: the task.
        variant: of it.
        place: where and how its script runs.
        runs: how many there are to be, at least.
        again: measure all of them anew.
        tell: is told each run, from 1.

    Raises:
        TaskError: the starter left no score, and its task names no predictor; or the data cannot be prepared.
        GradingError: the grader failed on its own account.
        SandboxUnavailable: this machine cannot give the sandbox.
    """
    data = await asyncio.to_thread(prepared, task, variant)
    path = await asyncio.to_thread(_kept_at, task, variant, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    async with holding(path.with_suffix(".lock")):
        kept = None if again else _read(path)
        if kept is not None and (kept.baseline.source == "predictor" or len(kept.baseline.values) + len(kept.failures) >= runs):
            return kept
        name = (await asyncio.to_thread(isolation.choose, place.sandbox)).isolation
        if task.spec.starter.state == "runs":
            found = await _measured(task, variant, data, place, runs, kept, tell)
        else:
            found = (await _predicted(task, variant, data, place.sandbox), (), ())
        measured = Measured(
            task=task.id,
            variant=variant,
            baseline=found[0],
            seconds=found[1],
            failures=found[2],
            isolation=name,
            hardware=hardware(),
            versions=versions(),
        )
        await asyncio.to_thread(_write, path, measured)
        return measured


def kept(task: Task, variant: Variant, place: Place = Place()) -> Measured | None:
    """What was measured before, on a machine like this one; None where nothing was."""
    return _read(_kept_at(task, variant, place))


async def _measured(
    task: Task, variant: Variant, data: Prepared, place: Place, runs: int, kept: Measured | None, tell: Callable[[int, StarterRun], None]
) -> tuple[Baseline, tuple[float, ...], tuple[str, ...]]:
    values = list(kept.baseline.values) if kept else []
    seconds = list(kept.seconds) if kept else []
    failures = list(kept.failures) if kept else []
    for number in range(len(values) + len(failures), runs):
        run = await run_starter(task, variant, data, place=place, seed=number)
        tell(number + 1, run)
        if run.score is None:
            failures.append(run.reason)
        else:
            values.append(run.score.value)
            seconds.append(run.execution.seconds)
    if not values:
        raise TaskError(f"the starter of {task.id} has no score to compare with: {failures[-1]}; go on with --baseline paper or none")
    return Baseline(value=statistics.fmean(values), values=tuple(values), source="measured"), tuple(seconds), tuple(failures)


async def _predicted(task: Task, variant: Variant, data: Prepared, sandbox: SandboxChoice) -> Baseline:
    name, proof = task.spec.starter.predictor, await asyncio.to_thread(task.module, "proof")
    if name is None or proof is None:
        raise TaskError(f"the starter of {task.id} does not run, and its task.toml names no starter.predictor to compare with")
    naive = await asyncio.to_thread(proof.naive, data)
    if name not in naive:
        raise TaskError(f"{task.folder / 'proof.py'} has no naive submission {name!r}, which task.toml names as starter.predictor")
    graded = await grade_files(task, variant, data, naive[name], sandbox)
    if graded is None or graded.score is None:
        raise TaskError(f"the predictor {name!r} of {task.id} cannot be graded: {graded.reason if graded else 'it is no submission'}")
    return Baseline(value=graded.score.value, values=(graded.score.value,), source="predictor")


def _kept_at(task: Task, variant: Variant, place: Place) -> Path:
    """The file of a measurement: its name says everything that a score may depend on."""
    facts = json.dumps(
        [
            task_digest(task),
            place_of(task, variant, Path()).name if (task.folder / "prepare.py").exists() else None,  # modules of other tasks may make it
            hardware(),
            versions(),
            isolation.choose(place.sandbox).isolation,
            str(place.python),
            len(place.gpus),
        ],
        sort_keys=True,
    )
    return cache_directory() / "baselines" / task.id / f"{variant}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> Measured | None:
    try:
        return Measured.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _write(path: Path, measured: Measured) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(measured.model_dump_json(indent=1) + "\n")
    temporary.rename(path)
