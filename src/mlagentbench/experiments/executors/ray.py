"""Run jobs on a Ray cluster, each as a Ray task. It needs the extra `ray`.

The nodes need this package, and the log directory at the same path. Jobs end with their driver. Ray neither retries a task (`drive` does,
by what is on disk) nor starts a process anew for each one that uses a GPU, which takes seconds.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlagentbench.errors import InfrastructureError, UsageError
from mlagentbench.experiments.executors import launch
from mlagentbench.experiments.jobs import Job, JobState

ENDING = launch.GRACE + 10.0
"""Seconds in which cancelled tasks must have ended."""


class RayExecutor:
    """Submits each job to Ray.

    Args:
        address: the cluster's, as `ray.init` takes it; `auto` for the one of this machine or of `$RAY_ADDRESS`.

    Raises:
        UsageError: Ray is not installed, or no cluster answers.
    """

    def __init__(self, address: str = "auto") -> None:
        try:
            import ray
        except ImportError:
            raise UsageError("the executor ray needs Ray: pip install 'mlagentbench[ray]'") from None
        self._ray: Any = ray
        self._connected = not ray.is_initialized()
        if self._connected:
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise UsageError(f"no Ray cluster answers at {address}: {error}; start one with 'ray start --head'") from None
        self._run = ray.remote(max_calls=0, max_retries=0)(_run)
        self._tasks: dict[str, _RayTask] = {}

    def submit(self, jobs: Iterable[Job]) -> None:
        """See `Executor.submit`. What no node can give waits, since the cluster may grow."""
        known = self.poll()
        for job in jobs:
            if job.id not in known:
                known[job.id] = "queued"
                resources = {"num_cpus": job.cpus, "num_gpus": job.gpus, "memory": int(job.mem_gb * (1 << 30)) or None}
                size = _size(job)
                self._tasks[job.id] = _RayTask(job, self._run.options(name=job.id, **resources).remote(job), size)

    def poll(self) -> dict[str, JobState]:
        """See `Executor.poll`. A job runs once its launcher has written to its log."""
        ended = self._ended(timeout=0)
        self._tasks = {id: task for id, task in self._tasks.items() if task.reference not in ended}
        return {id: "running" if _size(task.job) > task.size else "queued" for id, task in self._tasks.items()}

    def cancel(self, ids: Iterable[str]) -> None:
        """See `Executor.cancel`."""
        wanted = set(ids)
        references = [task.reference for id, task in self._tasks.items() if id in wanted]
        for reference in references:
            self._ray.cancel(reference)  # an interrupt in `_run`
        if references:
            _ended, left = self._ray.wait(references, num_returns=len(references), timeout=ENDING)
            if left:
                raise InfrastructureError(
                    f"Ray has not ended {len(left)} of {len(references)} jobs that were cancelled; see ray list tasks"
                )
        self.poll()

    def close(self) -> None:
        """Cancel all jobs, which Ray would end with this process, and leave the cluster."""
        self.cancel(list(self._tasks))
        if self._connected:
            self._ray.shutdown()

    def _ended(self, timeout: float) -> set[Any]:
        references = [task.reference for task in self._tasks.values()]
        if not references:
            return set()
        try:
            return set(self._ray.wait(references, num_returns=len(references), timeout=timeout, fetch_local=False)[0])
        except self._ray.exceptions.RayError as error:
            raise InfrastructureError(f"Ray does not answer: {error}") from None


@dataclass(frozen=True)
class _RayTask:
    job: Job
    reference: Any
    size: int
    """Bytes of the job's log when it was submitted."""


def _size(job: Job) -> int:
    try:
        return job.log.stat().st_size
    except OSError:
        return 0


def _run(job: Job) -> int:
    """Run a job on a node, in a worker of Ray's, and return its exit status."""
    import ray

    cancelled: list[int] = []
    # Ray cancels a task with an interrupt. An exception could come while the job is being started, and leave it alone; and a worker whose
    # cluster was started in the background of a shell's script has inherited that interrupts are ignored.
    before = signal.signal(signal.SIGINT, lambda number, frame: cancelled.append(number))
    try:
        process = launch.start(job, {"CUDA_VISIBLE_DEVICES": ",".join(map(str, ray.get_gpu_ids()))})
        while process.poll() is None and not cancelled:
            time.sleep(launch.TICK)
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(launch.GRACE + 5)
        return process.returncode
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
