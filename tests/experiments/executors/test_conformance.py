"""What every executor promises, on the real thing: each job once, whatever dies."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mlagentbench.errors import UsageError
from mlagentbench.experiments.jobs import Executor, Job, JobState, drive
from tests.experiments.executors import slurm_cluster
from tests.experiments.executors.clusters import GPUS, Local, TestCluster, Work, alive, driver_source
from tests.experiments.executors.ray_cluster import RayCluster
from tests.experiments.executors.slurm_cluster import SlurmCluster
from tests.support import HANGING, wait_until

Property = Callable[[TestCluster, Executor, Work], None]


def each_job_runs_once_and_has_its_gpu_to_itself(cluster: TestCluster, executor: Executor, work: Work) -> None:
    jobs = [work.job(f"run-{number}", 0.4, env={"GIVEN": f"{number}, and 'more'"}) for number in range(2 * GPUS)]
    states: set[JobState] = set()

    def watch(alive: Mapping[str, JobState]) -> None:
        states.update(alive.values())
        # Not before all GPUs are in use: else the first job to begin might leave its own to all others before the last one has begun.
        if states == {"queued", "running"} and sum(bool(work.starts(job)) for job in jobs) == GPUS:
            work.release()

    work.hold()
    outcomes = drive(jobs, executor, work.committed, every=0.1, watch=watch)
    assert outcomes == dict.fromkeys([job.id for job in jobs], "done")
    assert [len(work.starts(job)) for job in jobs] == [1] * len(jobs)
    assert [work.starts(job)[0]["given"] for job in jobs] == [job.env["GIVEN"] for job in jobs]
    spans: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for result in map(work.result, jobs):
        assert result["gpu"] and "," not in result["gpu"]
        spans.setdefault((result["node"], result["gpu"]), []).append((result["since"], result["until"]))
    assert len(spans) == GPUS
    for span in map(sorted, spans.values()):
        assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(span))
    wait_until(lambda: not work.processes(jobs))
    assert "started on" in jobs[0].log.read_text()
    assert drive(jobs, executor, work.committed) == outcomes
    assert [len(work.starts(job)) for job in jobs] == [1] * len(jobs)


def a_job_whose_worker_is_killed_runs_again_and_leaves_nothing_on_its_gpu(cluster: TestCluster, executor: Executor, work: Work) -> None:
    job = work.job("run", 0.1)
    strays: list[int] = []

    def kill(states: object) -> None:
        if not strays and (starts := work.starts(job)):
            strays.extend(starts[0][what] for what in ("pid", "stray"))
            cluster.kill_worker(starts[0]["launcher"])
            wait_until(lambda: not alive(starts))
            work.release()

    work.hold()
    assert drive([job], executor, work.committed, every=0.1, pause=0.1, watch=kill) == {"run": "done"}
    assert len(work.starts(job)) == 2
    wait_until(lambda: not work.processes([job]))


def a_cancelled_job_is_told_and_leaves_nothing(cluster: TestCluster, executor: Executor, work: Work) -> None:
    running = [work.job(f"run-{number}", 1000) for number in range(GPUS)]
    queued = work.job("queued", 1000)
    executor.submit([*running, queued])
    wait_until(lambda: all(work.starts(job) for job in running))
    assert executor.poll() == {**dict.fromkeys([job.id for job in running], "running"), "queued": "queued"}
    executor.cancel([queued.id, *(job.id for job in running), "unknown"])
    wait_until(lambda: executor.poll() == {})
    wait_until(lambda: not work.processes(running))
    assert all(work.ends(job) for job in running)
    assert not work.starts(queued)


def submitting_twice_is_harmless(cluster: TestCluster, executor: Executor, work: Work) -> None:
    jobs = [work.job(f"run-{number}", 0.1) for number in range(2)]
    work.hold()
    executor.submit([*jobs, *jobs])
    executor.submit(jobs)
    work.release()
    assert drive(jobs, executor, work.committed, every=0.1) == {"run-0": "done", "run-1": "done"}
    assert [len(work.starts(job)) for job in jobs] == [1, 1]


def a_job_that_always_fails_is_given_up_and_the_others_are_done(cluster: TestCluster, executor: Executor, work: Work) -> None:
    bad, good = work.job("bad", -1), work.job("good", 0.1)
    missing = Job("missing", ("/no/such/command",), work.folder / "missing.log", gpus=1)
    outcomes = drive([bad, missing, good], executor, work.committed, every=0.1, pause=0.5)
    assert outcomes == {"bad": "failed", "missing": "failed", "good": "done"}
    times = [start["since"] for start in work.starts(bad)]
    assert len(times) == 3 and times[1] - times[0] >= 0.5 and times[2] - times[1] >= 1.0, "the pause between tries grows"
    assert "No such file" in missing.log.read_text()
    wait_until(lambda: not work.processes([bad]))


def a_job_ends_at_its_time_limit(cluster: TestCluster, executor: Executor, work: Work) -> None:
    for seconds in (3, 12, 48):
        job = work.job(f"long-{seconds}", 1000, time_s=seconds)
        assert drive([job], executor, work.committed, tries=1, every=0.1) == {job.id: "failed"}
        if work.starts(job):
            break  # else a busy machine let its time pass before it began
    assert work.ends(job)
    wait_until(lambda: not work.processes([job]))


def a_driver_that_is_told_to_stop_ends_no_run(cluster: TestCluster, executor: Executor, work: Work) -> None:
    jobs = [work.job(f"run-{number}", 0.1) for number in range(GPUS + 2)]
    running = jobs[:GPUS]

    def watch(states: Mapping[str, JobState]) -> None:
        if set(states) == {job.id for job in running}:
            work.release()

    work.hold()
    outcomes = drive(jobs, executor, work.committed, every=0.1, stop=lambda: all(work.starts(job) for job in running), watch=watch)
    assert outcomes == {**dict.fromkeys([job.id for job in running], "done"), **dict.fromkeys([job.id for job in jobs[GPUS:]], "stopped")}


def a_driver_that_is_killed_and_started_again_finishes_each_job_once(cluster: TestCluster, executor: Executor, work: Work) -> None:
    jobs = [work.job(f"run-{number}", 0.1) for number in range(GPUS + 2)]
    source = driver_source(cluster, work, jobs)
    work.hold()
    first = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.DEVNULL)
    wait_until(lambda: sum(bool(work.starts(job)) for job in jobs) >= GPUS)
    first.kill()
    first.wait()
    begun = {job.id: work.starts(job) for job in jobs}
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as again:
        if cluster.kills_jobs_with_driver:
            wait_until(lambda: not alive(itertools.chain(*begun.values())))
        work.release()
        output, errors = again.communicate(timeout=HANGING)
    assert again.returncode == 0, errors
    assert json.loads(output) == dict.fromkeys([job.id for job in jobs], "done")
    assert sum(map(bool, begun.values())) == GPUS
    for job in jobs:
        assert len(work.starts(job)) == (2 if begun[job.id] and cluster.kills_jobs_with_driver else 1)
    wait_until(lambda: not work.processes(jobs))


def the_jobs_of_a_node_that_dies_run_again_elsewhere(cluster: TestCluster, executor: Executor, work: Work) -> None:
    jobs = [work.job(f"run-{number}", 0.1) for number in range(GPUS + 2)]
    killed: list[str] = []

    def kill(states: object) -> None:
        begun = [work.starts(job) for job in jobs[:GPUS]]
        if not killed and all(begun):
            killed.append(begun[0][0]["node"])
            cluster.kill_node(killed[0])
            wait_until(lambda: not alive(start for starts in begun for start in starts if start["node"] == killed[0]))
            work.release()

    work.hold()
    assert drive(jobs, executor, work.committed, every=0.1, pause=0.1, watch=kill) == dict.fromkeys([job.id for job in jobs], "done")
    for job in jobs:
        nodes = [start["node"] for start in work.starts(job)]
        assert nodes.count(killed[0]) <= 1
        assert len(nodes) == 1 + nodes.count(killed[0])
    wait_until(lambda: not work.processes(jobs))
    cluster.restore()


PROPERTIES = (
    each_job_runs_once_and_has_its_gpu_to_itself,
    a_job_whose_worker_is_killed_runs_again_and_leaves_nothing_on_its_gpu,
    a_cancelled_job_is_told_and_leaves_nothing,
    submitting_twice_is_harmless,
    a_job_that_always_fails_is_given_up_and_the_others_are_done,
    a_job_ends_at_its_time_limit,
    a_driver_that_is_told_to_stop_ends_no_run,
    a_driver_that_is_killed_and_started_again_finishes_each_job_once,
    the_jobs_of_a_node_that_dies_run_again_elsewhere,
)


def check(cluster: TestCluster, executor: Executor, property: Property, folder: Path) -> None:
    folder.mkdir()
    try:
        property(cluster, executor, Work(folder))
    finally:
        executor.cancel(executor.poll())


@pytest.mark.parametrize("property", PROPERTIES[:-1], ids=lambda property: property.__name__)
def test_local(property: Property, tmp_path: Path) -> None:
    cluster = Local()
    check(cluster, cluster.executor(), property, tmp_path / "work")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slurm", "ray"])
def test_cluster(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One test for all properties, so that the cluster is started once."""
    folder = tmp_path_factory.mktemp(name)
    cluster: TestCluster
    if name == "slurm":
        if reason := slurm_cluster.missing():
            pytest.skip(reason)
        cluster = SlurmCluster(folder)
    else:
        pytest.importorskip("ray")
        cluster = RayCluster()
    executor = cluster.executor()
    try:
        for property in PROPERTIES:
            began = time.monotonic()
            print(property.__name__, end=" ", flush=True)
            check(cluster, executor, property, folder / property.__name__)
            print(f"{time.monotonic() - began:.1f} s")
    finally:
        executor.close()
        cluster.close()


def test_jobs_are_refused_that_can_never_run(tmp_path: Path) -> None:
    work = Work(tmp_path)
    executor = Local().executor()
    with pytest.raises(UsageError, match=r"needs 5 GPUs, and there are 4"):
        executor.submit([work.job("large", gpus=5)])
    with pytest.raises(UsageError, match="cannot be a job's id"):
        work.job("a b")
    with pytest.raises(UsageError, match="the same id"):
        drive([work.job("a"), work.job("a")], executor, work.committed)
