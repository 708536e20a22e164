"""What an executor starts (`Job`), what an executor is (`Executor`), and the loop that sees every job to its end (`drive`).

An executor only places processes. Whether a job is done is read from what it left on shared storage, so a process, a node or the driver
itself may die at any time: whatever is not committed is submitted again, and a job that runs again goes on where it was.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from mlagentbench.errors import UsageError

JobState = Literal["queued", "running"]
JobOutcome = Literal["done", "failed", "stopped"]
"""How a job came out: committed; not committed after all its tries; not committed when `drive` was told to stop."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True)
class Job:
    """A command to run to its end, on any machine that sees the shared storage.

    Raises:
        UsageError: the id cannot be a job's name on every executor.
    """

    id: str
    """Its name: at most 200 letters, digits, dots, dashes and underscores. An id is alive at most once."""
    argv: tuple[str, ...]
    """The command. It must be idempotent: run again, it goes on with what is not done yet."""
    log: Path
    """The file to which its output is appended, in a folder that exists and that the driver can read."""
    cpus: float = 1
    """Processor cores that it needs."""
    gpus: int = 0
    """GPUs that it needs; it has them to itself, and finds them in `CUDA_VISIBLE_DEVICES`."""
    mem_gb: float = 0
    """Memory that it needs, in GB (2^30 bytes); 0 to reserve none."""
    time_s: float = 0
    """Seconds after which it is ended, as by `cancel`; 0 for no limit."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for it, besides those that the executor's processes have."""

    def __post_init__(self) -> None:
        check_id(self.id)


def check_id(id: str) -> str:
    """Return an id that can be a job's name on every executor.

    Raises:
        UsageError: it cannot.
    """
    if not _ID.fullmatch(id):
        raise UsageError(f"{id!r} cannot be a job's id; use at most 200 letters, digits, dots, dashes and underscores")
    return id


class Executor(Protocol):
    """Starts jobs on this machine or on others.

    Call it from one thread. Jobs on one machine are isolated from one another only in their processes: a job that ends, in whatever way,
    leaves no process behind.
    """

    def submit(self, jobs: Iterable[Job]) -> None:
        """Queue jobs, first come first served, and return at once. An id that is alive is left as it is.

        Raises:
            UsageError: a job can never be placed, for example since it needs more GPUs than there are.
            InfrastructureError: the scheduler does not answer.
        """
        ...

    def poll(self) -> dict[str, JobState]:
        """Return the jobs that are alive. What is absent has ended, or was never submitted.

        Raises:
            InfrastructureError: the scheduler does not answer.
        """
        ...

    def cancel(self, ids: Iterable[str]) -> None:
        """End jobs: SIGTERM, and after `launch.GRACE` seconds SIGKILL to every process of theirs. Return when they have ended.

        Raises:
            InfrastructureError: the scheduler does not answer, or the jobs do not end.
        """
        ...

    def close(self) -> None:
        """Let go of what this process holds. Jobs that cannot outlive this process are cancelled."""
        ...


def drive(
    jobs: Sequence[Job],
    executor: Executor,
    committed: Callable[[Job], bool],
    tries: int = 3,
    *,
    every: float = 0.5,
    pause: float = 2.0,
    stop: Callable[[], bool] = lambda: False,
    watch: Callable[[Mapping[str, JobState]], None] = lambda alive: None,
) -> dict[str, JobOutcome]:
    """See jobs to their end: submit what is missing, and submit again what ended without being committed.

    Jobs that are alive already, as after a driver was killed, are adopted.

    Args:
        jobs: the jobs, the most urgent first.
        executor: what starts them.
        committed: whether a job is done, by what is on the shared storage.
        tries: how often a job is submitted before it is given up.
        every: seconds between two polls.
        pause: seconds from the end of a job's first try to its second; they double with each further try.
        stop: asked at every poll; once true, queued jobs are cancelled and nothing is submitted any more, while those that run go on.
        watch: called with the jobs that are alive, at every poll.

    Returns:
        The outcome of each job by its id, in the order of `jobs`.

    Raises:
        UsageError: two jobs have the same id, or one can never be placed.
        InfrastructureError: the scheduler does not answer. Jobs may still be alive: drive them again to adopt them.
    """
    if len({job.id for job in jobs}) < len(jobs):
        raise UsageError("two jobs have the same id; each needs its own")
    outcomes: dict[str, JobOutcome] = {job.id: "done" for job in jobs}
    left = {job.id: job for job in jobs if not committed(job)}
    tried = dict.fromkeys(left, 0)
    due: dict[str, float] = {}
    alive: dict[str, JobState] = executor.poll() if left else {}
    while left:
        stopping = stop()
        again = []
        for job in [job for id, job in left.items() if id not in alive]:
            if committed(job):
                del left[job.id]
            elif stopping or tried[job.id] >= tries:
                outcomes[job.id] = "stopped" if stopping else "failed"
                del left[job.id]
            elif tried[job.id] and time.monotonic() < due.setdefault(job.id, time.monotonic() + pause * 2 ** (tried[job.id] - 1)):
                continue
            else:
                due.pop(job.id, None)
                tried[job.id] += 1
                again.append(job)
        if stopping:
            executor.cancel([id for id in left if alive.get(id) == "queued"])
        executor.submit(again)
        if left:
            time.sleep(every)
            alive = executor.poll()
            watch({id: state for id, state in alive.items() if id in left})
    return outcomes
