"""Check a task with its own `proof.py`, in the sandbox, the processes and the limits of real runs.

The mini variant is prepared anew in temporary folders, so that no cache can hide a fault. Preparing, running and grading are done in
processes of their own; a caller who checks several tasks at once limits how many of them go on together (`CheckSettings.slot`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from mlagentbench.checks.findings import Check, Finding, Numbers, failed, ok, skipped
from mlagentbench.checks.score_findings import Measurements, judge
from mlagentbench.checks.task_code import PROOFS, Proofs
from mlagentbench.data.extras import require_extras
from mlagentbench.data.prepare import Prepared, prepared
from mlagentbench.errors import GradingError, TaskError
from mlagentbench.grading.baseline import ScriptSettings, StarterRun, run_starter
from mlagentbench.grading.fork_server import ForkServer, fork_server
from mlagentbench.grading.grade import Graded, Grader, grade_all
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import Variant
from mlagentbench.task.catalogue import Task
from mlagentbench.task.proofs import Files
from mlagentbench.task.seeds import mini_data_seed
from mlagentbench.util.machine import ONE_THREAD
from mlagentbench.util.temporary import temporary_folder

RUNS = 8
"""How often a starter is run, with the seeds 0, 1, ..., to find how much its score varies with the seed."""
FIRST_RUNS = 3
"""If so many runs leave the same submission, the seed makes no difference, and no more are made."""
WORKER_SECONDS = 900.0
"""Seconds after which a process with a task's own code is killed."""


@dataclass(frozen=True)
class CheckSettings:
    """Where and how a check is done."""

    variant: Variant = "mini"
    mini_seed: int | None = None
    """The number that the mini data is drawn from; None for the usual data."""
    sandbox: SandboxChoice = "auto"
    slot: AbstractAsyncContextManager[object] = field(default_factory=nullcontext)
    """Held by each process of the check; use a semaphore to limit how many go on at once."""
    timed: AbstractAsyncContextManager[object] = field(default_factory=nullcontext)
    """Held before `slot` by each process that may time something. Only one can time at once on a machine; use a lock, so that those
    that wait do not occupy slots."""
    threads: int | None = None
    """How many threads each script's libraries may use; None for their default, one a core, which is slow if scripts share the cores."""
    on_status: Callable[[str], None] = lambda doing: None
    """Called with a few words on what is being done."""

    forks: ForkServer | None = None
    """The server that forks graders; None to have `check` start one for its task."""
    grader: Grader | None = None
    """Grades what the starters leave; `check` makes one for its task, so that what a grader imports is imported once for all of them."""

    @property
    def settings(self) -> ScriptSettings:
        """Where and how scripts run."""
        threads = {} if self.threads is None else dict.fromkeys(ONE_THREAD, str(self.threads))
        return ScriptSettings(sandbox=self.sandbox, environment=threads, grader=self.grader)


async def check(task: Task, work: CheckSettings = CheckSettings()) -> Check:
    """Check a task, and return the findings.

    Raises:
        SandboxUnavailable: this machine cannot provide the sandbox that scripts and graders need.
    """
    started = time.monotonic()
    async with temporary_folder("mlab-check-") as folder, fork_server() if work.forks is None else nullcontext(work.forks) as forks:
        folder.chmod(0o755)  # a sandbox may run as another user
        findings, numbers = await _check(task, replace(work, forks=forks), folder)
    return Check(task=task.id, variant=work.variant, findings=findings, numbers=numbers, seconds=time.monotonic() - started)


async def _check(task: Task, work: CheckSettings, folder: Path) -> tuple[tuple[Finding, ...], Numbers]:
    findings = [_spec(task), _problem(task)]
    try:
        await asyncio.to_thread(require_extras, task)
    except TaskError as error:
        return (*findings, skipped("extras", str(error))), Numbers()
    findings.append(ok("extras"))
    work.on_status("preparing")
    data, of_data = await _prepare(task, work, folder)
    findings += of_data
    if data is None:
        return tuple(findings), Numbers()
    if not (task.folder / "proof.py").is_file():
        findings.append(failed("proof", f"{task.folder} has no proof.py; write one as in docs/adding-a-task.md"))
        return tuple(findings), Numbers()
    work.on_status("its proofs")
    async with Grader(task, variant=work.variant, private=data.private, sandbox=work.sandbox, forks=work.forks) as grader:
        work = replace(work, grader=grader)
        # The starter runs while the proofs are read, since neither needs the other.
        starting = asyncio.ensure_future(_run_seeds(task, work, data))
        try:
            proofs = await _proofs(task, work, data, folder)
            measured = await _run_and_grade(task, work, data, proofs, starting)
        except _WorkerError as error:
            findings.append(failed("proof", f"proof.py failed: {error}"))
            return tuple(findings), Numbers()
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
    judged, numbers = judge(task, measured)
    return (*findings, *judged, *proofs.leaks), numbers


async def _run_and_grade(
    task: Task, work: CheckSettings, data: Prepared, proofs: Proofs, starting: asyncio.Future[list[StarterRun | GradingError]]
) -> Measurements:
    """Run the starters, and grade all submissions."""
    work.on_status("runs and gradings")
    scored = [each.folder for each in (*proofs.oracle, *proofs.naive)]
    scored += [each for each in (proofs.reordered, proofs.moved) if each is not None]
    refused = [each.folder for each in proofs.invalid]
    starters, (solution, ineffective, accepted), rejected = await asyncio.gather(
        starting, _run_and_score(task, work, data, proofs, scored), _grade(task, work, data, refused, exclusive=False)
    )
    by_folder = dict(zip((*scored, *refused), (*accepted, *rejected), strict=True))
    return Measurements(
        starters=tuple(starters),
        solution=solution,
        ineffective=ineffective,
        oracle={each.name: by_folder[each.folder] for each in proofs.oracle},
        naive={each.name: by_folder[each.folder] for each in proofs.naive},
        invalid={each.name: (by_folder[each.folder], each.reason) for each in proofs.invalid},
        reordered=by_folder[proofs.reordered] if proofs.reordered else None,
        moved=by_folder[proofs.moved] if proofs.moved else None,
    )


async def _run_and_score(
    task: Task, work: CheckSettings, data: Prepared, proofs: Proofs, scored: Sequence[Path]
) -> tuple[StarterRun | GradingError | None, StarterRun | GradingError | None, list[Graded]]:
    """Run the starter with `solution()` and with `ineffective()`, and grade what must get a score.

    A timed task does all of it in one turn, one after another, so that it waits only once for the other tasks' processes.
    """
    timed = task.spec.submission.mode == "code"
    async with _place(task, work) if timed else nullcontext():
        turn = replace(work, timed=nullcontext(), slot=asyncio.Lock()) if timed else work
        return await asyncio.gather(
            _run_written(task, turn, data, proofs.solution),
            _run_written(task, turn, data, proofs.ineffective),
            _grade(task, turn, data, scored),
        )


def _spec(task: Task) -> Finding:
    spec = task.spec
    if not (task.starter / spec.starter.script).is_file():
        return failed("spec", f"starter/ has no {spec.starter.script}, which starter.script names")
    if spec.starter.state != "runs" and spec.starter.predictor is None:
        return failed("spec", f"the starter is {spec.starter.state}: name in starter.predictor which naive submission stands for it")
    if not spec.submission.required:
        return failed("spec", "submission.required names nothing: name the file without which nothing was submitted")
    in_both = [name for name in spec.read_only if (task.starter / name).exists()]
    if in_both:
        return failed("spec", f"read_only names {in_both[0]}, which lies in starter/; data is put where it belongs by prepare.py")
    return ok("spec")


def _problem(task: Task) -> Finding:
    unnamed = [name for name in task.spec.submission.required if name not in task.problem]
    if unnamed:
        return failed("problem", f"problem.md does not name {', '.join(unnamed)}, without which nothing is submitted; say what to leave")
    return ok("problem")


async def _prepare(task: Task, work: CheckSettings, folder: Path) -> tuple[Prepared | None, list[Finding]]:
    """Prepare the data; return it, or None if that failed, and the findings on it."""
    if not (task.folder / "prepare.py").is_file():
        return Prepared.empty(folder / "data"), [skipped(name, "the task has no data") for name in ("data", "deterministic", "seeded")]
    if work.variant == "full":
        why = "only the mini variant is made from a seed"
        try:
            async with work.slot:
                data = await asyncio.to_thread(prepared, task, "full", mini_seed=work.mini_seed)
        except TaskError as error:
            return None, [failed("data", str(error))]
        return data, [_data(task, data), skipped("deterministic", why), skipped("seeded", why)]
    places = [Prepared(folder / name / "public", folder / name / "private") for name in ("data", "other", "again")]
    seed = mini_data_seed(work.mini_seed)
    other_seed = seed + 1
    try:
        # The second process prepares the other seed's data first, with another hash seed and time zone, none of which may matter.
        await asyncio.gather(
            _worker(task, work, ["prepare", task.path, seed, *places[0]], PYTHONHASHSEED="1"),
            _worker(task, work, ["prepare", task.path, other_seed, *places[1], seed, *places[2]], PYTHONHASHSEED="2", TZ="Asia/Tokyo"),
        )
    except _WorkerError as error:
        return None, [failed("data", f"prepare.py failed: {error}")]
    first, other, again = await asyncio.gather(*(asyncio.to_thread(_digests, settings) for settings in places))
    return places[0], [_data(task, places[0]), *_reproducible(first, other, again)]


def _reproducible(first: Mapping[str, str], other: Mapping[str, str], again: Mapping[str, str]) -> list[Finding]:
    differ = sorted(path for path in first.keys() | again.keys() if first.get(path) != again.get(path))
    if differ:
        return [
            failed("deterministic", f"{differ[0]} differs between two preparations with one seed; draw everything from the seed"),
            skipped("seeded", "its data is not deterministic"),
        ]
    if first == other:
        return [ok("deterministic"), failed("seeded", "another seed gives the same data; mini must draw from the seed it is given")]
    return [ok("deterministic"), ok("seeded")]


def _data(task: Task, data: Prepared) -> Finding:
    absent = [name for name in task.spec.read_only if not any(data.public.glob(name))]
    if absent:
        return failed("data", f"read_only names {', '.join(absent)}, which prepare.py does not put into public")
    in_both = [path.name for path in data.public.iterdir() if (task.starter / path.name).exists()]
    if in_both:
        return failed("data", f"{in_both[0]} is in the starter and in the public data; only one of them can be there")
    return ok("data")


def _digests(data: Prepared) -> dict[str, str]:
    """Return the SHA-256 digest of each file of prepared data by path, and `a folder` for each folder."""
    found = {}
    for root in data:
        for path in sorted(root.rglob("*")):
            name = f"{root.name}/{path.relative_to(root).as_posix()}"
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
    return found


async def _proofs(task: Task, work: CheckSettings, data: Prepared, folder: Path) -> Proofs:
    out = folder / "proofs"
    out.mkdir()
    await _worker(task, work, ["prove", task.path, *data, out])
    return Proofs.model_validate_json((out / PROOFS).read_bytes())


@asynccontextmanager
async def _place(task: Task, work: CheckSettings) -> AsyncIterator[None]:
    """Hold a slot for work that ends with grading, and first the lock for timing if the task is timed."""
    async with work.timed if task.spec.submission.mode == "code" else nullcontext(), work.slot:
        yield


async def _run_starter(
    task: Task, work: CheckSettings, data: Prepared, *, seed: int = 0, files: Files = MappingProxyType({})
) -> StarterRun | GradingError:
    async with _place(task, work):
        try:
            return await run_starter(task, work.variant, data, settings=work.settings, files=files, seed=seed)
        except GradingError as error:
            return error


async def _run_seeds(task: Task, work: CheckSettings, data: Prepared) -> list[StarterRun | GradingError]:
    """Run the starter with several seeds, if it runs and what it leaves may depend on the seed.

    A timed starter is run once, because the grader measures it many times beside each submission.
    """

    async def run(seeds: range) -> list[StarterRun | GradingError]:
        return await asyncio.gather(*(_run_starter(task, work, data, seed=seed) for seed in seeds))

    if task.spec.starter.state != "runs" or task.spec.submission.mode == "code":
        return await run(range(1))
    first = await run(range(FIRST_RUNS))
    left = {each.digest if isinstance(each, StarterRun) and each.score else None for each in first}
    return first if None in left or len(left) == 1 else [*first, *await run(range(FIRST_RUNS, RUNS))]


async def _run_written(task: Task, work: CheckSettings, data: Prepared, folder: Path | None) -> StarterRun | GradingError | None:
    """Run the starter with the files of a folder written over it; return None if no folder is given."""
    if folder is None:
        return None
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return await _run_starter(task, work, data, files=files)


async def _grade(task: Task, work: CheckSettings, data: Prepared, submissions: Sequence[Path], *, exclusive: bool = True) -> list[Graded]:
    """Grade submissions one after another; those that must be refused need not wait until nobody else times code."""
    async with (
        _place(task, work) if exclusive else work.slot,
        Grader(
            task,
            variant=work.variant,
            private=data.private,
            sandbox=work.sandbox,
            seed=0,
            forks=work.forks,
            exclusive=exclusive,
        ) as grader,
    ):
        return await grade_all(grader, submissions)


class _WorkerError(Exception):
    """A task's own code failed; the message is the last line of its traceback, and where in the task it is."""


async def _worker(task: Task, work: CheckSettings, arguments: Sequence[object], **environment: str) -> None:
    """Run a command of `task_code.py`, and kill it at the time limit or when we are cancelled.

    Raises:
        _WorkerError: the task's own code failed, or took too long.
    """
    command = (sys.executable, "-P", "-m", "mlagentbench.checks.task_code", *map(str, arguments))
    async with work.slot:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **environment},
        )
        try:
            _, errors = await asyncio.wait_for(process.communicate(), WORKER_SECONDS)
        except TimeoutError:
            raise _WorkerError(f"it took longer than {WORKER_SECONDS:g} seconds") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode:
        text = errors.decode(errors="replace").strip()
        settings = task.place_in(text)
        what = text.splitlines()[-1] if text else f"exit status {process.returncode}"
        raise _WorkerError(f"{what} ({settings})" if settings else what)
