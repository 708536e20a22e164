"""Run jobs on this machine: as many at once as its cores, memory and GPUs allow."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence

from mlagentbench.errors import InfrastructureError, UsageError
from mlagentbench.experiments.executors import launch
from mlagentbench.experiments.jobs import Job, JobState
from mlagentbench.util.machine import cores, free_memory_mb

PATIENCE = 10.0
"""Seconds after `launch.GRACE` in which a cancelled job must have ended."""


class LocalExecutor:
    """Starts jobs as child processes, in the order of submission; a job that does not fit is overtaken by those that do.

    Jobs end with this process. They are started, and their resources given to the next ones, by `submit` and `poll`. The memory to share
    out is what is free when the executor is made.

    Args:
        cpus: cores to share out; None for all that this process may use.
        gpus: ids of the GPUs to share out, as `CUDA_VISIBLE_DEVICES` names them.
    """

    def __init__(self, cpus: float | None = None, gpus: Sequence[str] = ()) -> None:
        self._cpus: float = cores() if cpus is None else cpus
        self._gpus = tuple(gpus)
        self._mem_gb = free_memory_mb() / 1024
        self._queue: list[Job] = []
        self._running: dict[str, _Running] = {}

    def submit(self, jobs: Iterable[Job]) -> None:
        """See `Executor.submit`."""
        jobs = list(jobs)
        for job in jobs:
            self._check(job)
        known = self.poll()
        for job in jobs:
            if job.id not in known:
                known[job.id] = "queued"
                self._queue.append(job)
        self._start_waiting()

    def poll(self) -> dict[str, JobState]:
        """See `Executor.poll`."""
        for id in [id for id, running in self._running.items() if running.process.poll() is not None]:
            del self._running[id]
        self._start_waiting()
        return {**dict.fromkeys(self._running, "running"), **{job.id: "queued" for job in self._queue}}

    def cancel(self, ids: Iterable[str]) -> None:
        """See `Executor.cancel`."""
        wanted = set(ids)
        self._queue = [job for job in self._queue if job.id not in wanted]
        ending = [running.process for id, running in self._running.items() if id in wanted]
        for process in ending:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + launch.GRACE + PATIENCE
        for process in ending:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        if stuck := [str(process.pid) for process in ending if process.poll() is None]:
            raise InfrastructureError(f"jobs do not end; kill their processes by hand: {', '.join(stuck)}")

    def close(self) -> None:
        """Cancel all jobs: they cannot outlive this process."""
        self.cancel(self.poll())

    def _check(self, job: Job) -> None:
        for asked, given, what in (
            (job.cpus, self._cpus, "cores"),
            (job.gpus, len(self._gpus), "GPUs"),
            (job.mem_gb, self._mem_gb, "GB of memory"),
        ):
            if asked > given:
                raise UsageError(f"the job {job.id} needs {asked:g} {what}, and there are {given:g} to share out here")

    def _start_waiting(self) -> None:
        waiting = []
        for job in self._queue:
            used = {gpu for running in self._running.values() for gpu in running.gpus}
            free = [gpu for gpu in self._gpus if gpu not in used]
            cpus = self._cpus - sum(running.job.cpus for running in self._running.values())
            mem_gb = self._mem_gb - sum(running.job.mem_gb for running in self._running.values())
            if job.gpus > len(free) or job.cpus > cpus or job.mem_gb > mem_gb:
                waiting.append(job)
                continue
            self._running[job.id] = _Running(job, tuple(free[: job.gpus]))
        self._queue = waiting


class _Running:
    """A job that runs, with the GPUs that it has to itself."""

    def __init__(self, job: Job, gpus: tuple[str, ...]) -> None:
        self.job = job
        self.gpus = gpus
        self.process = launch.start(job, {"CUDA_VISIBLE_DEVICES": ",".join(gpus)})
