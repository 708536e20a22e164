"""Run jobs on a Slurm cluster, with sbatch, squeue and scancel.

Nothing of Python travels: the nodes need the folder of this interpreter and the log directory at the same paths, as shared storage gives
them. Jobs outlive the driver. A job of Slurm's is named `EXPERIMENT:ID`, by which a driver that is started again finds it. Slurm never
requeues one by itself, which would hold it back for two minutes after a node died: `drive` submits it again.
"""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence

from mlagentbench.errors import InfrastructureError, UsageError
from mlagentbench.experiments.executors import launch
from mlagentbench.experiments.jobs import Job, JobState, check_id

PATIENCE = 300.0
"""Seconds for which a controller that does not answer is asked again: it may be restarting."""
PAUSE = 2.0
"""Seconds between two such tries."""
ENDING = 120.0
"""Seconds in which cancelled jobs must have left the queue; Slurm kills what still runs after its KillWait, 30 s by default."""
SPARE = 60.0
"""Seconds of wall time that a job asks of Slurm beyond its own limit, so that the launcher ends it in order first."""
MOST = 500
"""Jobs that one scancel names."""
_ALIVE: dict[str, JobState] = {
    "PENDING": "queued",
    "REQUEUED": "queued",
    "REQUEUE_HOLD": "queued",
    "REQUEUE_FED": "queued",
    "SPECIAL_EXIT": "queued",
    "RUNNING": "running",
    "CONFIGURING": "running",
    "COMPLETING": "running",
    "RESIZING": "running",
    "SIGNALING": "running",
    "STAGE_OUT": "running",
    "STOPPED": "running",
    "SUSPENDED": "running",
}
"""Slurm's states of jobs that have not ended."""
_PASSING = ("unable to contact", "timed out", "temporarily", "connection refused", "communication connection failure", "zero bytes")
"""Words of Slurm's messages about a controller that does not answer, or not in time."""


class SlurmExecutor:
    """Submits each job to Slurm.

    Args:
        experiment: what the jobs belong to; two drivers with the same name share their jobs. Characters as in a job's id.
        options: further options of sbatch, such as `--partition=gpu`.
    """

    def __init__(self, experiment: str, options: Sequence[str] = ()) -> None:
        self._prefix = f"{check_id(experiment)}:"
        self._options = tuple(options)

    def submit(self, jobs: Iterable[Job]) -> None:
        """See `Executor.submit`. Should two drivers submit a job at once, the second starts when the first has ended, and finds it done."""
        known = self.poll()
        for job in jobs:
            if job.id not in known:
                known[job.id] = "queued"
                _slurm("sbatch", *self._arguments(job), environment=job.env)

    def poll(self) -> dict[str, JobState]:
        """See `Executor.poll`."""
        states: dict[str, JobState] = {}
        for _, id, state in self._jobs():
            if states.get(id) != "running":
                states[id] = state
        return states

    def cancel(self, ids: Iterable[str]) -> None:
        """See `Executor.cancel`."""
        wanted = set(ids)
        numbers = [number for number, id, _ in self._jobs() if id in wanted]
        for first in range(0, len(numbers), MOST):
            _slurm("scancel", *numbers[first : first + MOST])
        deadline = time.monotonic() + ENDING
        while left := [number for number, _, _ in self._jobs() if number in numbers] if numbers else []:
            if time.monotonic() > deadline:
                raise InfrastructureError(f"Slurm has not ended jobs that were cancelled; see squeue --jobs={','.join(left[:10])}")
            time.sleep(0.2)

    def close(self) -> None:
        """Do nothing: jobs of Slurm's outlive their driver."""

    def _jobs(self) -> list[tuple[str, str, JobState]]:
        """Return Slurm's number, the id and the state of each job that is alive."""
        found = []
        for line in _slurm("squeue", "--me", "--noheader", "--all", "--format=%i|%T|%j").splitlines():
            number, state, name = line.split("|", 2)
            if name.startswith(self._prefix) and state in _ALIVE:
                found.append((number, name.removeprefix(self._prefix), _ALIVE[state]))
        return found

    def _arguments(self, job: Job) -> list[str]:
        log = str(job.log.absolute()).replace("%", "%%")
        arguments = [f"--job-name={self._prefix}{job.id}", f"--output={log}", "--open-mode=append", "--input=/dev/null"]
        arguments += ["--dependency=singleton", "--no-requeue", "--export=ALL", "--ntasks=1", f"--cpus-per-task={math.ceil(job.cpus)}"]
        if job.gpus:
            arguments.append(f"--gres=gpu:{job.gpus}")
        if job.mem_gb:
            arguments.append(f"--mem={math.ceil(job.mem_gb * 1024)}M")
        if job.time_s:
            arguments.append(f"--time={math.ceil((job.time_s + launch.GRACE + SPARE) / 60)}")
        # Slurm sets CUDA_VISIBLE_DEVICES only for a job that asks for GPUs.
        hidden = "" if job.gpus else "export CUDA_VISIBLE_DEVICES=; "
        return [*arguments, *self._options, f"--wrap={hidden}exec {shlex.join(launch.command_of(job))}"]


def _slurm(*command: str, environment: Mapping[str, str] = {}) -> str:
    """Run one of Slurm's commands, again where the controller does not answer. Returns what it prints.

    Raises:
        UsageError: it is not installed, or refuses what it is asked for.
        InfrastructureError: the controller does not answer.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        except FileNotFoundError:
            raise UsageError(f"there is no {command[0]} here; drive the experiment from a login node of the Slurm cluster") from None
        if done.returncode == 0:
            return done.stdout
        words = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        if not any(passing in words.lower() for passing in _PASSING):
            raise UsageError(f"{command[0]} refused: {words}")
        if time.monotonic() > deadline:
            raise InfrastructureError(f"{command[0]} gets no answer: {words}")
        time.sleep(PAUSE)
