"""Divide the runs of cells into jobs: runs that wait for models share a process, and each that has a GPU has a process of its own."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from mlagentbench.experiments.jobs import Job
from mlagentbench.experiments.matrix import Matrix, MatrixCell
from mlagentbench.experiments.state import Batch, ExperimentState, Settings

BATCH = 16
"""The most runs that share a process on a cluster, unless the user says otherwise: a node that dies interrupts no more."""
WORKER = "mlagentbench.experiments.worker"


class RunJob(NamedTuple):
    """A job, and the names of its runs."""

    job: Job
    names: tuple[str, ...]


def run_jobs(
    matrix: Matrix,
    cells: Iterable[MatrixCell],
    state: ExperimentState,
    settings: Settings,
    seconds: Mapping[str, float],
    wanted: Callable[[str], bool],
) -> list[RunJob]:
    """Return the jobs of cells, the longest first, and write their runs' names to the experiment's folder.

    A job's id is made of its runs, and which runs it has of the matrix alone, so that a driver that is started again finds those that
    still go on.

    Args:
        matrix: the experiment's matrix.
        cells: the cells whose runs are to be done.
        state: the experiment's folder.
        settings: where the runs are carried out.
        seconds: how long a run of each cell is expected to take, by the cell's id.
        wanted: which runs are to be done, by their names.

    Raises:
        StorageFailed: the disk is full or read-only.
    """

    def urgency(name: str) -> tuple[float, int, str, str]:
        # Runs of different models follow one another, so that a limit on the requests of one does not hold up all.
        cell = matrix.cell_of(name)
        return -seconds.get(cell.id, cell.spec.limits.time), int(name.rpartition("-")[2]), cell.model, cell.id

    alone, together = list[str](), list[tuple[int, str, str, str]]()
    for cell in cells:
        if cell.gpu and settings.gpus:
            alone += cell.names
        else:
            together += ((number, cell.model, cell.id, name) for number, name in enumerate(cell.names))
    size = settings.batch or (max(1, len(together)) if settings.executor == "local" else BATCH)
    ordered = [name for *_, name in sorted(together)]
    batches: list[Sequence[str]] = [[name] for name in alone]
    with_gpu = set(alone)
    batches += [ordered[start : start + size] for start in range(0, len(ordered), size)]
    jobs = []
    for batch in sorted((sorted(names, key=urgency) for names in batches), key=lambda batch: urgency(batch[0])):
        names = tuple(filter(wanted, batch))
        if not names:
            continue
        job = _job(matrix, batch, state, settings, gpus=int(batch[0] in with_gpu))
        state.write_batch(job.id, Batch(names=names, parallel=settings.parallel if settings.executor == "local" else settings.cpus))
        jobs.append(RunJob(job, names))
    return jobs


def _job(matrix: Matrix, names: Sequence[str], state: ExperimentState, settings: Settings, gpus: int) -> Job:
    digest = hashlib.sha256("\n".join((str(state.log_directory), *sorted(names))).encode()).hexdigest()[:12]
    id, here = f"{matrix.name}-{digest}", settings.executor == "local"
    return Job(
        id=id,
        argv=(sys.executable, "-m", WORKER, str(state.log_directory), matrix.name, id),
        log=state.output / f"{id}.txt",
        cpus=1 if here else settings.cpus,
        gpus=gpus,
        mem_gb=0 if here else settings.mem_gb,
    )
