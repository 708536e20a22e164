"""The places where jobs run in these tests, each a real one: two nodes with two GPUs each, or one machine with four.

The GPUs are only numbers; nothing here computes on them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import psutil

from mlagentbench.experiments.jobs import Executor, Job
from mlagentbench.sandbox.standalone.supervise import is_zombie

GPUS = 4


class TestCluster(Protocol):
    """What the conformance tests need of a cluster besides its executor."""

    __test__ = False
    setup: str
    """Python source that makes `executor` in another process."""
    kills_jobs_with_driver: bool

    def executor(self) -> Executor: ...

    def kill_worker(self, launcher: int) -> None:
        """Kill, with SIGKILL, the engine's process that started a job, or what it started."""
        ...

    def kill_node(self, node: str) -> None:
        """Have a node die with all that runs on it."""
        ...

    def restore(self) -> None:
        """Bring killed nodes back."""
        ...

    def close(self) -> None: ...


class Local:
    setup = (
        "from mlagentbench.experiments.executors.local import LocalExecutor\n"
        f"executor = LocalExecutor(cpus=16, gpus={[str(number) for number in range(GPUS)]})\n"
    )
    kills_jobs_with_driver = True

    def executor(self) -> Executor:
        from mlagentbench.experiments.executors.local import LocalExecutor

        return LocalExecutor(cpus=16, gpus=[str(number) for number in range(GPUS)])

    def kill_worker(self, launcher: int) -> None:
        psutil.Process(launcher).kill()

    def kill_node(self, node: str) -> None:
        raise NotImplementedError("this machine is the only node: see the test that kills the driver")

    def restore(self) -> None:
        pass

    def close(self) -> None:
        pass


class Work:
    """Jobs that note what happens to them in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def job(self, id: str, seconds: float = 0.5, gpus: int = 1, **more: Any) -> Job:
        argv = (sys.executable, str(Path(__file__).with_name("work.py")), str(self.folder), id, str(seconds))
        return Job(id, argv, self.folder / f"{id}.log", cpus=1, gpus=gpus, **more)

    def committed(self, job: Job) -> bool:
        return (self.folder / f"{job.id}.result").exists()

    def result(self, job: Job) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / f"{job.id}.result").read_text())
        return found

    def starts(self, job: Job) -> list[dict[str, Any]]:
        return self._notes(job.id, "starts")

    def ends(self, job: Job) -> list[dict[str, Any]]:
        return self._notes(job.id, "ends")

    def _notes(self, id: str, what: str) -> list[dict[str, Any]]:
        path = self.folder / f"{id}.{what}"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def hold(self) -> None:
        """Have jobs that start from now on stand still until `release`, so that none ends before what a test does to it."""
        (self.folder / "held").touch()

    def release(self) -> None:
        (self.folder / "held").unlink(missing_ok=True)

    def processes(self, jobs: Iterable[Job]) -> list[int]:
        """The jobs' processes that are alive."""
        return alive(start for job in jobs for start in self.starts(job))


def alive(starts: Iterable[dict[str, Any]]) -> list[int]:
    """The processes of some starts of jobs that are alive."""
    pids = {start[what] for start in starts for what in ("pid", "keeper", "launcher", "stray")}
    return [pid for pid in pids if psutil.pid_exists(pid) and not is_zombie(pid)]


def driver_source(cluster: TestCluster, work: Work, jobs: list[Job]) -> str:
    """Return a program that drives jobs to their end, and prints the outcomes."""
    shown = [(job.id, float(job.argv[-1])) for job in jobs]
    return (
        f"import json, sys\nfrom pathlib import Path\nsys.path.insert(0, {os.getcwd()!r})\n{cluster.setup}"
        "from mlagentbench.experiments.jobs import drive\nfrom tests.experiments.executors.clusters import Work\n"
        f"work = Work(Path({str(work.folder)!r}))\n"
        f"print(json.dumps(drive([work.job(*each) for each in {shown}], executor, work.committed, every=0.1)))\n"
    )
