"""Carry out the runs of a job in this process. An executor starts it, on any machine, as often as it takes.

    python -m mlagentbench.experiments.worker LOG_DIRECTORY EXPERIMENT JOB

Runs that are done are left alone, those that have begun go on, and the others begin. The exit status is 0 when all are done, 130 after an
interrupt, and 1 when some are still to be done; what prevented them is printed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from mlagentbench.audit.audit import audit_run
from mlagentbench.engine.evaluate import evaluate
from mlagentbench.engine.run import check_runs
from mlagentbench.errors import MLAgentBenchError, UsageError
from mlagentbench.experiments.given import experience_folder
from mlagentbench.experiments.matrix import Matrix, MatrixCell
from mlagentbench.experiments.state import Batch, ExperimentState
from mlagentbench.grading.cache import task_digest
from mlagentbench.records import Result
from mlagentbench.run_spec import RunSpec
from mlagentbench.rundir.directory import RunDirectory, find_named
from mlagentbench.rundir.provenance import seal
from mlagentbench.runner.preflight import ReadyRun, task_of
from mlagentbench.runner.resume import resume
from mlagentbench.runner.run_once import RunHooks
from mlagentbench.util import interrupts

GPUS = "CUDA_VISIBLE_DEVICES"
"""The environment variable in which an executor names the GPUs of a job."""


def main(arguments: Sequence[str]) -> int:
    """Carry out the runs of a job.

    Returns:
        The exit status.
    """
    log_directory, experiment, job = arguments
    state = ExperimentState(Path(log_directory), experiment)
    interrupts.install()
    try:
        matrix = state.matrix
        if matrix is None:
            raise UsageError(f"{state.folder} holds no experiment")
        return carry_out(state, matrix, state.batch(job))
    except KeyboardInterrupt:
        return interrupts.INTERRUPTED
    except MLAgentBenchError as error:
        _say(str(error))
        return 1
    finally:
        interrupts.close()


def carry_out(state: ExperimentState, matrix: Matrix, batch: Batch) -> int:
    """Carry out the runs of a batch that are not done yet.

    Returns:
        The exit status.

    Raises:
        MLAgentBenchError: none of them can be carried out.
        KeyboardInterrupt: the second interrupt.
    """
    known = matrix.by_id
    # Runs whose cell is no longer in the file are left as they are.
    names = [name for name in batch.names if name.rpartition("-")[0] in known and not state.committed(name)]
    for name in filter(state.has_ended, names):
        _finish(state.run(name))
    names = [name for name in names if not state.committed(name)]
    if not names:
        return 0
    with ExitStack() as locks:
        ready = _begun(state, matrix, names, locks)
        fresh = [name for name in names if find_named(state.log_directory, name) is None]
        cells = list(dict.fromkeys(name.rpartition("-")[0] for name in fresh))
        checked = check_runs([_spec(state, known[cell]) for cell in cells], state.log_directory, notify=_say) if cells else []
        for cell, run in zip(cells, checked, strict=True):
            own = tuple(name for name in fresh if name.rpartition("-")[0] == cell)
            ready.append(replace(run, names=own, scheduled=matrix.scheduled))
        if not ready:
            return 1
        rank = {name: number for number, name in enumerate(names)}
        ready.sort(key=lambda run: rank[run.continues.name if run.continues else run.names[0]])
        hooks = RunHooks(finished=_finished, may_start=_within_budget(state, matrix), rank=rank)
        evaluation = evaluate(ready, hooks, parallel=batch.parallel)
    for failure in evaluation.failures:
        _say(f"a run could not be carried out: {failure}")
    if evaluation.stopped:
        return interrupts.INTERRUPTED
    return 0 if all(map(state.committed, names)) else 1


def _finish(directory: RunDirectory) -> None:
    """Do what follows a run's result, whose process was killed before."""
    with directory.lock():
        spec = directory.info.spec
        task = task_of(spec)
        seal(directory, task_digest(task))
        if spec.audit:
            audit_run(directory, task)


def _begun(state: ExperimentState, matrix: Matrix, names: Sequence[str], locks: ExitStack) -> list[ReadyRun]:
    """Return the runs that have begun, each locked and checked. One that cannot go on is reported and left out."""
    ready = []
    for name in names:
        if find_named(state.log_directory, name) is None:
            continue
        try:
            spec, directory = locks.enter_context(resume(state.log_directory / name))
            spec = spec.replace(gpus=_spec(state, matrix.cell_of(name)).gpus)
            ready += check_runs([spec], state.log_directory, continues=directory, notify=_say)
        except MLAgentBenchError as error:
            _say(f"{name}: {error}")
    return ready


def _spec(state: ExperimentState, cell: MatrixCell) -> RunSpec:
    """Return what a run of a cell is to do here: with the job's GPU, and with its experience."""
    spec = cell.spec
    if cell.gpu:
        spec = spec.replace(gpus=tuple(name for name in os.environ.get(GPUS, "").split(",") if name))
    return spec.replace(experience=experience_folder(state, cell)) if cell.sources else spec


def _within_budget(state: ExperimentState, matrix: Matrix) -> Callable[[], bool]:
    def within() -> bool:
        return not state.requested("cancel") and state.over_budget(matrix) is None

    return within


def _finished(ready: ReadyRun, number: int, result: Result) -> None:
    _say(f"{result.run}: {result.outcome.ended}, {result.outcome.verdict}")


def _say(line: str) -> None:
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
