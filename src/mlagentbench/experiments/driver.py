"""Drive an experiment: submit the jobs whose runs are missing, stage by stage, until every run is done or nothing more can be.

The truth is in the runs' directories. So a driver that is started again does only what is missing, and any process may die at any time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from mlagentbench.experiments.batches import RunJob, run_jobs
from mlagentbench.experiments.estimate import estimate
from mlagentbench.experiments.executors.local import LocalExecutor
from mlagentbench.experiments.executors.slurm import SlurmExecutor
from mlagentbench.experiments.given import give
from mlagentbench.experiments.jobs import Executor, Job, JobOutcome, JobState, drive
from mlagentbench.experiments.matrix import Matrix, MatrixCell
from mlagentbench.experiments.state import ExperimentState, Settings

EVERY = 0.5
"""Seconds between two looks at the jobs."""
PAUSE = 2.0
"""Seconds between the first and the second try of a job. A server of files may take some to free the lock of a process that was killed."""


class MatrixChanges(NamedTuple):
    """What is different in an experiment's file since it was last run, by the names of runs."""

    kept: tuple[str, ...]
    """Those that are in the file as before."""
    new: tuple[str, ...]
    gone: tuple[str, ...]
    """Those that the log directory holds, and that nothing in the file says any more."""


class Driven(NamedTuple):
    """How an experiment came out."""

    missing: tuple[str, ...]
    """The names of the runs that are not done."""
    failed: Mapping[str, str]
    """By the name of a run that is not done after all tries, the file with what its job printed."""
    waiting: tuple[str, ...]
    """The names of those that wait for the experience of runs that are not done."""
    stopped: str | None
    """Why nothing more was submitted; None if everything was."""


def changes(state: ExperimentState, matrix: Matrix) -> MatrixChanges:
    """Return what is different in a matrix from that of the last time."""
    before = state.matrix.names if state.matrix else ()
    now = set(matrix.names)
    gone = [name for name in before if name not in now and state.result(name) is not None]
    return MatrixChanges(
        tuple(name for name in matrix.names if name in before), tuple(name for name in matrix.names if name not in before), tuple(gone)
    )


def make_executor(state: ExperimentState, name: str, settings: Settings) -> Executor:
    """Return the executor of an experiment.

    Raises:
        UsageError: it is not installed, or no cluster answers.
    """
    if settings.executor == "ray":
        from mlagentbench.experiments.executors.ray import RayExecutor

        return RayExecutor()
    if settings.executor == "slurm":
        place = hashlib.sha256(str(state.log_directory).encode()).hexdigest()[:8]
        return SlurmExecutor(f"{name}-{place}", settings.slurm_options)
    given = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return LocalExecutor(gpus=(given or [str(number) for number in range(settings.gpus)])[: settings.gpus])


def run_experiment(
    state: ExperimentState,
    matrix: Matrix,
    settings: Settings,
    *,
    only: Callable[[str], bool] = lambda name: True,
    watch: Callable[[], None] = lambda: None,
) -> Driven:
    """Do the runs of an experiment that are not done yet.

    Args:
        state: the experiment's folder, which this process holds (`ExperimentState.driving`).
        matrix: the matrix.
        settings: where the runs are carried out.
        only: which runs to do, by their names.
        watch: called at every look at the jobs.

    Raises:
        UsageError: the executor cannot be used, or a job never be placed.
        InfrastructureError: the cluster does not answer, or the disk is full.
    """
    executor = make_executor(state, matrix.name, settings)
    try:
        return _Driver(state, matrix, settings, executor, only, watch).run()
    finally:
        executor.close()


class _Driver:
    def __init__(
        self,
        state: ExperimentState,
        matrix: Matrix,
        settings: Settings,
        executor: Executor,
        only: Callable[[str], bool],
        watch: Callable[[], None],
    ) -> None:
        self._state, self._matrix, self._settings, self._executor = state, matrix, settings, executor
        self._only, self._watch = only, watch
        self._names: dict[str, Sequence[str]] = {}
        """The names of the runs of each job."""
        self._stopped: str | None = None

    def run(self) -> Driven:
        known = estimate(self._state, self._matrix.cells)
        seconds = {id: one.seconds for id, one in known.items() if one.seconds is not None}
        failed: dict[str, str] = {}
        waiting: list[str] = []
        for stage in self._matrix.stages():
            cells = [cell for cell in stage if self._is_given(cell)]
            waiting += (name for cell in stage if cell not in cells for name in cell.names)
            jobs = run_jobs(self._matrix, cells, self._state, self._settings, seconds, self._only)
            while True:
                outcomes = self._drive(jobs)
                if self._stopped or not self._state.withdraw("retry"):
                    break
            failed |= {name: str(job.log) for job, names in jobs if outcomes.get(job.id) == "failed" for name in self._missing(names)}
        return Driven(tuple(self._missing(self._matrix.names)), failed, tuple(waiting), self._stopped)

    def _is_given(self, cell: MatrixCell) -> bool:
        """Make the experience of a cell if it needs one, and return whether its runs can begin."""
        if self._missing(cell.sources):
            return False
        if cell.sources and self._missing(cell.names):
            give(self._state, cell)
        return True

    def _missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self._state.committed(name)]

    def _drive(self, jobs: Sequence[RunJob]) -> Mapping[str, JobOutcome]:
        self._names = {job.id: names for job, names in jobs}
        return drive(
            [job for job, _ in jobs], self._executor, self._is_done, every=EVERY, pause=PAUSE, stop=self._must_stop, watch=self._look
        )

    def _is_done(self, job: Job) -> bool:
        return not self._missing(self._names[job.id])

    def _must_stop(self) -> bool:
        if self._state.requested("cancel"):
            self._stopped = "it was cancelled"
        elif used := self._state.over_budget(self._matrix):
            self._stopped = used
        return self._stopped is not None

    def _look(self, alive: Mapping[str, JobState]) -> None:
        if self._state.requested("cancel"):
            self._executor.cancel(alive)
        self._watch()


def cancel(state: ExperimentState, matrix: Matrix) -> bool:
    """Cancel an experiment from any process: its runs end, are graded as they stand, and go on when the experiment is run again.

    Returns:
        Whether a driver was told; else the jobs that have outlived theirs are cancelled here.

    Raises:
        InfrastructureError: the cluster does not answer.
    """
    if state.request("cancel"):
        return True
    if state.settings.executor != "local":
        executor = make_executor(state, matrix.name, state.settings)
        executor.cancel(executor.poll())
    return False
