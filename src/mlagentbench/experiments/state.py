"""Keep what is an experiment's own in a folder beside its runs, and read how far they are.

<log directory>/
  <run>/                          the runs, as in any log directory
  experiments/<experiment>/
    matrix.json                   the cells (`Matrix`), as the file was when it was last run
    settings.json                 where the runs are carried out (`Settings`)
    driver.lock                   held by the process that drives the experiment
    jobs/<job>.json               the runs of a job (`Batch`)
    output/<job>.txt              what the job printed, appended at every try
    given/<cell>/                 the runs of a cell, as other cells are given them as experience
    cancel, retry                 requests of another terminal; the driver removes them
    requests.lock                 held while one is made, and while a driver begins
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from mlagentbench.errors import RunNotFound, StorageFailed, UsageError
from mlagentbench.experiments.matrix import Matrix
from mlagentbench.records import Record, Result, Usage, Word
from mlagentbench.rundir import provenance
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import read, text_of
from mlagentbench.util.atomic import replace
from mlagentbench.util.lock import acquire, held, own

EXPERIMENTS = "experiments"
UNCOMMITTED = ("infrastructure", "cancelled")
"""How a run ended that is still to be done: it goes on where it was."""

ExecutorName = Literal["local", "ray", "slurm"]


class Settings(Record):
    """Where and how the runs of an experiment are carried out."""

    executor: ExecutorName = "local"
    gpus: int = 0
    """GPUs to share out; each run of a task that wants one has one to itself. With 0, such runs do without."""
    batch: int | None = None
    """The most runs that share a process; None for all on this machine, and for `batches.BATCH` on a cluster."""
    cpus: int = 1
    """Cores for each job on a cluster, and as many runs of it go on at once."""
    mem_gb: float = 0
    """Memory for each job on a cluster, in GB (2^30 bytes); 0 to reserve none."""
    parallel: int | None = None
    """How many runs go on at once in the process on this machine; None for as many as it can take."""
    slurm_options: tuple[str, ...] = ()
    """Further options of sbatch."""


class Batch(Record):
    """The runs of a job, in the order in which they are to begin."""

    names: tuple[Word, ...]
    parallel: int | None
    """How many go on at once; None for as many as the machine can take."""


class ExperimentState:
    """An experiment's folder."""

    def __init__(self, log_directory: Path, name: str) -> None:
        self.log_directory = log_directory
        self.folder = log_directory / EXPERIMENTS / name
        """The folder."""
        self.jobs = self.folder / "jobs"
        self.output = self.folder / "output"
        self.given = self.folder / "given"
        self._results: dict[str, tuple[tuple[int, int], Result]] = {}
        self._committed: set[str] = set()

    def create(self) -> None:
        """Make the folder."""
        for folder in (self.jobs, self.output, self.given):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def matrix(self) -> Matrix | None:
        """The matrix as it was last run; None if it never was."""
        path = self.folder / "matrix.json"
        return read(path, Matrix) if path.exists() else None

    @property
    def settings(self) -> Settings:
        """Where the runs were last carried out."""
        path = self.folder / "settings.json"
        return read(path, Settings) if path.exists() else Settings()

    def write(self, matrix: Matrix, settings: Settings) -> None:
        """Write the matrix and the settings.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        before = self.matrix
        matrix = matrix.model_copy(update={"scheduled": before.scheduled if before else time.time()})
        for name, record in (("matrix", matrix), ("settings", settings)):
            self._write(self.folder / f"{name}.json", record)

    def write_batch(self, job: str, batch: Batch) -> None:
        """Write the runs of a job.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        self._write(self.jobs / f"{job}.json", batch)

    def batch(self, job: str) -> Batch:
        """Return the runs of a job."""
        return read(self.jobs / f"{job}.json", Batch)

    def _write(self, path: Path, record: Record) -> None:
        try:
            replace(path, text_of(record))
        except OSError as error:
            raise StorageFailed(f"{path} cannot be written: {error.strerror}") from None

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Be the one that drives the experiment. A request to cancel it that was left before is withdrawn.

        Raises:
            UsageError: another process drives it.
        """
        with (self.folder / "driver.lock").open("ab") as file:
            with self._requests():
                if not own(file):
                    raise UsageError("another process drives this experiment; follow it with mlab experiment status, end it with cancel")
                self.withdraw("cancel")
            yield

    @property
    def driven(self) -> bool:
        """Whether a process drives the experiment now."""
        return held(self.folder / "driver.lock")

    def request(self, what: Literal["cancel", "retry"]) -> bool:
        """Leave a request for the driver, and return whether there is one, which will find it."""
        with self._requests():
            (self.folder / what).touch()
            return self.driven

    @contextmanager
    def _requests(self) -> Iterator[None]:
        """Let a request be left either before a driver begins or for it to find."""
        with (self.folder / "requests.lock").open("ab") as file:
            acquire(file)
            yield

    def requested(self, what: Literal["cancel", "retry"]) -> bool:
        """Return whether there is a request."""
        return (self.folder / what).exists()

    def withdraw(self, what: Literal["cancel", "retry"]) -> bool:
        """Remove a request, and return whether there was one."""
        there = self.requested(what)
        (self.folder / what).unlink(missing_ok=True)
        return there

    def run(self, name: str) -> RunDirectory:
        """Return the directory of a run, which need not exist."""
        return RunDirectory(self.log_directory / name)

    def result(self, name: str) -> Result | None:
        """Return the result of a run; None if it has none that can be read. It is read again only when it has changed."""
        path = self.log_directory / name / "result.json"
        try:
            status = path.stat()
            changed = (status.st_ino, status.st_mtime_ns)  # the clock of a disk counts in milliseconds
            if self._results.get(name, (None, None))[0] != changed:
                found = self.run(name).result
                if found is None:
                    return None
                self._results[name] = changed, found
        except (OSError, RunNotFound):
            return None
        return self._results[name][1]

    def committed(self, name: str) -> bool:
        """Return whether a run is done for good: it has ended, by itself, and no process was killed between its result and its audit."""
        if name not in self._committed and self.has_ended(name) and self._is_sealed(self.run(name)):
            self._committed.add(name)
        return name in self._committed

    def has_ended(self, name: str) -> bool:
        """Return whether a run has a result that is neither a failure of the infrastructure nor an interrupt."""
        result = self.result(name)
        return result is not None and result.outcome.ended not in UNCOMMITTED

    def _is_sealed(self, run: RunDirectory) -> bool:
        """Return whether the files that follow a result are there: the chain of digests, and the audit if one was asked for."""
        try:
            needed = (provenance.FILE, *((provenance.AUDIT,) if run.info.spec.audit else ()))
        except RunNotFound:
            return False
        return all((run.path / file).exists() for file in needed)

    def usage(self, name: str) -> Usage:
        """Return what a run has used so far: by its result, or else by its finished steps."""
        result = self.result(name)
        if result is not None:
            return result.total_usage
        try:
            return Usage.total(step.usage for step in self.run(name).steps())
        except (OSError, RunNotFound):
            return Usage()

    def over_budget(self, matrix: Matrix) -> str | None:
        """Return which part of the experiment's budget is used up, in words; None if there is something left of each."""
        budget = matrix.budget
        if budget.cost is None and budget.tokens is None:
            return None
        used = [self.usage(name) for name in matrix.names]
        if any(one.uncounted for one in used):
            return "a provider does not report its tokens, so that they cannot be limited"
        if budget.cost is not None and any(one.calls and one.cost is None for one in used):
            return "what some runs cost is not known, so that it cannot be limited; give the prices of their models (docs/models.md)"
        tokens, cost = sum(one.tokens or 0 for one in used), sum(one.cost or 0.0 for one in used)
        if budget.tokens is not None and tokens >= budget.tokens:
            return f"{tokens:,} of {budget.tokens:,} tokens are used"
        if budget.cost is not None and cost >= budget.cost:
            return f"{cost:.2f} of {budget.cost:.2f} dollars are used"
        return None
