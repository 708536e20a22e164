"""Measure the baseline: the starter's own score, which an agent's score is compared with.

The starter's script is run as an agent's would be, in the same sandbox under the same limits, and its submission is graded like a run's. It
is run several times with different seeds (the environment variable `SEED`), since a gain that is smaller than the starter's own spread is
no gain. For a starter that does not run, the baseline is the naive predictor that its task names, computed from the data.

Measurements are cached beside the prepared data, one file for each task, variant, machine and isolation, and made anew when the task
changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue, ValidationError

from mlagentbench.data.cache import cache_directory
from mlagentbench.data.prepare import Prepared, digest_in, place_of, prepared
from mlagentbench.errors import TaskError
from mlagentbench.grading.cache import task_digest
from mlagentbench.grading.grade import Graded, Grader, grade, missing
from mlagentbench.grading.lock import holding
from mlagentbench.limits import SandboxChoice, ScriptLimits
from mlagentbench.records import Baseline, Record, Score, Variant
from mlagentbench.sandbox import isolation, process
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, Execution, Mount, SandboxSpec
from mlagentbench.task.catalogue import Task
from mlagentbench.task.spec import TaskSpec
from mlagentbench.util import atomic
from mlagentbench.util.machine import hardware, versions
from mlagentbench.util.temporary import finish, temporary_folder
from mlagentbench.workspace.paths import Workspace, create_workspace
from mlagentbench.workspace.snapshots.snapshots import SnapshotStore

if TYPE_CHECKING:  # it imports polars, which slows down runs that measure nothing
    from mlagentbench.task.proofs import Files

RUNS = 5
"""How often a starter is run by default where that is cheap: with fewer runs, the margin of their noise is too wide to be of use."""
FEW_RUNS = 3
"""How often it is run by default where that is dear: with two, the margin is twice as wide again."""
CHEAP_SECONDS = 60.0
"""The most seconds of a cheap run, so that all of them together take five minutes at most."""
SEED = "SEED"
"""The environment variable with a starter's seed; without it, starters take 0."""


class ScriptSettings(NamedTuple):
    """Where and how scripts run."""

    sandbox: SandboxChoice = "auto"
    python: Path = Path(sys.executable)
    gpus: tuple[str, ...] = ()
    limits: ScriptLimits | None = None
    """The scripts' limits; None for the task's own."""
    environment: Mapping[str, str] = MappingProxyType({})
    """Environment variables for the starter besides its seed."""
    grader: Grader | None = None
    """Grades what the starter leaves, for the same data; None for a new grader each time."""


class StarterRun(NamedTuple):
    """One run of a starter: how its script ended, and its submission's grading."""

    execution: Execution
    graded: Graded | None
    """None if it left no submission."""
    digest: str = ""
    """Of the submission: equal for equal files."""

    @property
    def score(self) -> Score | None:
        """The submission's score; None if it has none."""
        return self.graded.score if self.graded else None

    @property
    def reason(self) -> str:
        """Why there is no score, in one line; empty if there is one."""
        if self.score is not None:
            return ""
        if self.graded is not None:
            return self.graded.reason or "it cannot be graded"
        lines = self.execution.output.strip().splitlines()
        return f"it left no submission, and said at last: {lines[-1].strip() if lines else 'nothing'}"


class MeasuredBaseline(Record):
    """A measurement of a starter, as it is cached."""

    task: str
    variant: Variant
    mini_seed: int | None = None
    """The number that the mini data was drawn from; None for the usual data."""
    baseline: Baseline
    seconds: tuple[float, ...]
    """The script's time in each run that left a score; empty for a predictor."""
    failures: tuple[str, ...] = ()
    """Why the other runs left no score."""
    isolation: str
    hardware: Mapping[str, JsonValue]
    versions: Mapping[str, str]

    @property
    def runs(self) -> int:
        """How often the starter was run."""
        return len(self.baseline.values) + len(self.failures)


def data_sandbox(task: Task, data: Prepared, workspace: Path, *, network: bool, settings: ScriptSettings) -> SandboxSpec:
    """Return the sandbox spec of a task's scripts: the workspace, with the public data mounted read-only in it."""
    return SandboxSpec(
        workspace=workspace,
        read_only=tuple(Mount(path, f"{WORKSPACE}/{name}") for name, path in public_data(data).items()),
        python=settings.python,
        hidden=task.spec.hidden,
        network=network,
        gpus=settings.gpus,
        limits=settings.limits or script_limits(task.spec),
    )


def public_data(data: Prepared) -> Mapping[str, Path]:
    """Return the paths of the public data, which scripts see, by top-level name."""
    return {path.name: path for path in sorted(data.public.iterdir())}


def script_limits(spec: TaskSpec) -> ScriptLimits:
    """Return the task's own limits for a script."""
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
    task: Task,
    variant: Variant,
    data: Prepared,
    *,
    settings: ScriptSettings = ScriptSettings(),
    files: Files = MappingProxyType({}),
    seed: int | None = None,
) -> StarterRun:
    """Run a task's starter once in a new workspace, and grade its submission.

    Args:
        task: the task.
        variant: the task's variant.
        data: the data, as `prepared` returns it.
        settings: where and how the script runs.
        files: files to write over the starter first.
        seed: the value of the variable `SEED`; None to leave it unset.

    Raises:
        GradingError: the grader itself failed.
        SandboxUnavailable: this machine cannot provide the sandbox.
    """
    sandbox = await asyncio.to_thread(isolation.choose, settings.sandbox)
    async with temporary_folder("mlab-starter-") as folder:
        folder.chmod(0o755)  # a sandbox may run as another user
        public = public_data(data)
        workspace = await finish(create_workspace, folder / "workspace", task.starter, public, links=sandbox.isolation not in OWN_FILES)
        await finish(write_files, workspace.root, files)
        sandbox_spec = data_sandbox(task, data, workspace.root, network=task.spec.network, settings=settings)
        seeded = {} if seed is None else {SEED: str(seed)}
        sandbox_spec = replace(sandbox_spec, environment={**settings.environment, **seeded})
        execution = await process.run(sandbox, ("python", task.spec.starter.script), sandbox_spec)
        submission, digest = await finish(_submission, task, workspace, folder)
        return StarterRun(execution, await grade_folder(task, variant, data, submission, settings.sandbox, settings.grader), digest)


async def grade_files(task: Task, variant: Variant, data: Prepared, files: Files, sandbox: SandboxChoice = "auto") -> Graded | None:
    """Grade a submission given as files; return None if it lacks a file that the task requires.

    Raises:
        GradingError: the grader itself failed.
    """
    async with temporary_folder("mlab-submission-") as folder:
        await finish(write_files, folder, files)
        return await grade_folder(task, variant, data, folder, sandbox)


async def grade_folder(
    task: Task, variant: Variant, data: Prepared, folder: Path, sandbox: SandboxChoice, grader: Grader | None = None
) -> Graded | None:
    """Grade a folder that holds a submission and nothing else; return None if it lacks a file that the task requires.

    Where a `grader` is given, it grades, and must be one of the same task and data.

    Raises:
        GradingError: the grader itself failed.
    """
    if missing(task.spec, folder):
        return None
    if grader is not None:
        return await grader.grade(folder)
    return await grade(task, folder, variant=variant, private=data.private, sandbox=sandbox)


def write_files(folder: Path, files: Files) -> None:
    """Write files, given by their paths relative to a folder, into it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def _submission(task: Task, workspace: Workspace, folder: Path) -> tuple[Path, str]:
    """Copy the submission's files out of the workspace by a snapshot, as for a run: no link is followed. Return it and its digest."""
    store = SnapshotStore(folder / "objects")
    chosen = store.take(workspace).select(task.spec.submission.files)
    submission = folder / "submission"
    submission.mkdir()
    store.restore(chosen, submission)
    return submission, chosen.digest


async def measure(
    task: Task,
    variant: Variant,
    *,
    mini_seed: int | None = None,
    settings: ScriptSettings = ScriptSettings(),
    runs: int | None = None,
    again: bool = False,
    on_run: Callable[[int, StarterRun], None] = lambda number, run: None,
) -> MeasuredBaseline:
    """Return a starter's score over some runs. Runs that are in the cache are not repeated.

    Of several processes that measure the same starter at once, one does and the others wait.

    Args:
        task: the task.
        variant: the task's variant.
        mini_seed: the number that its mini data is drawn from; None for the usual data.
        settings: where and how the script runs.
        runs: the least number of runs; None for what is in the cache, however few, and else `RUNS` if the first takes at most
            `CHEAP_SECONDS`, or `FEW_RUNS`.
        again: ignore the cache, and measure all runs anew.
        on_run: called with each new run and its number, from 1.

    Raises:
        TaskError: the starter left no score; or it does not run, and its task's predictor is missing or cannot be graded; or the data
            cannot be prepared.
        GradingError: the grader itself failed.
        SandboxUnavailable: this machine cannot provide the sandbox.
    """
    data = await asyncio.to_thread(prepared, task, variant, mini_seed=mini_seed)
    path = await asyncio.to_thread(_baseline_path, task, variant, settings, mini_seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    async with holding(path.with_suffix(".lock")):
        stored = None if again else _read(path)
        if stored is not None and (stored.baseline.source == "predictor" or runs is None or stored.runs >= runs):
            return stored
        name = (await asyncio.to_thread(isolation.choose, settings.sandbox)).isolation
        if task.spec.starter.state == "runs":
            found = await _measured(task, variant, data, settings, runs, stored, on_run)
        else:
            found = (await _predicted(task, variant, data, settings.sandbox), (), ())
        measured = MeasuredBaseline(
            task=task.id,
            variant=variant,
            mini_seed=mini_seed,
            baseline=found[0],
            seconds=found[1],
            failures=found[2],
            isolation=name,
            hardware=hardware(),
            versions=versions(),
        )
        await asyncio.to_thread(atomic.replace, path, measured.model_dump_json(indent=1) + "\n")
        return measured


def read_baseline(
    task: Task, variant: Variant, settings: ScriptSettings = ScriptSettings(), mini_seed: int | None = None
) -> MeasuredBaseline | None:
    """Return the cached measurement from a machine like this one; None if there is none."""
    return _read(_baseline_path(task, variant, settings, mini_seed))


async def _measured(
    task: Task,
    variant: Variant,
    data: Prepared,
    settings: ScriptSettings,
    runs: int | None,
    stored: MeasuredBaseline | None,
    on_run: Callable[[int, StarterRun], None],
) -> tuple[Baseline, tuple[float, ...], tuple[str, ...]]:
    values = list(stored.baseline.values) if stored else []
    seconds = list(stored.seconds) if stored else []
    failures = list(stored.failures) if stored else []
    resampled = [stored.baseline.resampled] * len(values) if stored else []
    number = len(values) + len(failures)
    while runs is None or number < runs:
        run = await run_starter(task, variant, data, settings=settings, seed=number)
        number += 1
        on_run(number, run)
        if runs is None:
            runs = RUNS if run.execution.seconds <= CHEAP_SECONDS else FEW_RUNS
        if run.score is None:
            failures.append(run.reason)
        else:
            values.append(run.score.value)
            seconds.append(run.execution.seconds)
            resampled.append(run.score.resampled)
    if not values:
        raise TaskError(f"the starter of {task.id} has no score to compare with: {failures[-1]}; go on with --baseline paper or none")
    means = tuple(map(statistics.fmean, zip(*resampled, strict=True))) if all(resampled) else ()
    baseline = Baseline(value=statistics.fmean(values), values=tuple(values), source="measured", resampled=means)
    return baseline, tuple(seconds), tuple(failures)


async def _predicted(task: Task, variant: Variant, data: Prepared, sandbox: SandboxChoice) -> Baseline:
    if task.spec.starter.state == "none":
        raise TaskError(f"{task.id} has no starter to measure; its grader says what a success is")
    name, proof = task.spec.starter.predictor, await asyncio.to_thread(task.module, "proof")
    if name is None or proof is None:
        raise TaskError(f"the starter of {task.id} does not run, and its task.toml names no starter.predictor to compare with")
    naive = await asyncio.to_thread(proof.naive, data)
    if name not in naive:
        raise TaskError(f"{task.folder / 'proof.py'} has no naive submission {name!r}, which task.toml names as starter.predictor")
    graded = await grade_files(task, variant, data, naive[name], sandbox)
    if graded is None or graded.score is None:
        raise TaskError(f"the predictor {name!r} of {task.id} cannot be graded: {graded.reason if graded else 'it is no submission'}")
    score = graded.score
    return Baseline(value=score.value, values=(score.value,), source="predictor", resampled=score.resampled)


def _baseline_path(task: Task, variant: Variant, settings: ScriptSettings, mini_seed: int | None) -> Path:
    """Return the file of a measurement; its name is a digest of everything that a score may depend on."""
    place = place_of(task, variant, cache_directory(), mini_seed) if task.preparer is not None else None
    facts = json.dumps(
        [
            task_digest(task),
            place.name if place else None,  # its key covers modules of other tasks, too
            digest_in(place) if place and variant == "full" else None,
            hardware(),
            versions(),
            isolation.choose(settings.sandbox).isolation,
            str(settings.python),
            len(settings.gpus),
        ],
        sort_keys=True,
    )
    return cache_directory() / "baselines" / task.id / f"{variant}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> MeasuredBaseline | None:
    try:
        return MeasuredBaseline.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
