"""How long 520 runs take on 1 to 512 GPUs, what node failures, resuming and the order of the jobs change, and what driving them costs.

The cluster and its clock are simulated; the driver is the one of real experiments (`drive`), and the models' rate limits are kept by the
code that keeps real ones (`Bucket`). 13 tasks x 5 models x 8 runs, each a job with a GPU of its own. A run has 50 steps; a step asks the
model twice and runs a script. Without any waiting a run takes from 0.4 to 5 hours by its task, 2.3 on average, and a tenth more or less by
chance. Nodes have 8 GPUs, fail every 40 hours on average, and come back after one; what ran there is submitted again.

- GPUs: `none fails` is without failures; `anew` begins an interrupted run again, and `resume` goes on after its last step, both as the mean
  of ten histories of failures. `capped` is without failures, but each model answers 20 calls a minute; `its resume` has both.
- order: 20 calls a minute, and no failures. The jobs in the order of the file (model, task, run), of the tasks (task, model,
  run), by chance, and as experiments have them: the longest first, and runs of different models in turn.
- driver: many jobs of a minute on 512 slots, looked at every half second, as experiments do.

    python benchmarks/makespan.py [--quick]
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlagentbench.engine.models.bucket import Bucket, Rates
from mlagentbench.experiments.jobs import Job, JobState, drive

HOURS = (0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 1.8, 2.0, 2.4, 2.8, 3.4, 4.4, 5.0)
MODELS, STEPS, CALLS = 5, 50, 2
CAP = 20.0
"""Calls a minute of each model, where they are limited."""
ANSWERING = 6.0
"""Seconds of a model's answer."""
NODE = 8
FAILING, MENDING = 40 * 3600.0, 3600.0
TRIES = 1000
HOUR = 3600.0


@dataclass
class SimulatedRun:
    """A run that is to be done."""

    task: int
    model: int
    number: int
    script: float
    """Seconds of a step's script."""
    step: int = 0
    """The steps that are done."""
    attempt: int = 0

    @property
    def id(self) -> str:
        return f"t{self.task}-m{self.model}-r{self.number}"


class SimulatedCluster:
    """An `Executor` with a clock of its own, which a poll moves to the next end of a job, or by `every` seconds.

    Args:
        runs: the runs, by their jobs' ids.
        gpus: how many runs go on at once.
        resume: whether an interrupted run goes on after its last step.
        failing: mean seconds between two failures of a node; 0 for none.
        calls: calls a minute of each model; 0 for no limit.
        every: seconds by which a poll moves the clock; 0 to the next end.
        seed: the failures.
    """

    def __init__(
        self,
        runs: Iterable[SimulatedRun],
        gpus: int,
        *,
        resume: bool = True,
        failing: float = 0,
        calls: float = 0,
        every: float = 0,
        seed: int = 0,
    ) -> None:
        self.now, self.every, self.resume, self.failing = 0.0, every, resume, failing
        self.runs = {run.id: run for run in runs}
        self.done: set[str] = set()
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self._on: dict[str, int] = {}
        self._free = [min(NODE, gpus - first) for first in range(0, gpus, NODE)]
        self._down = [False] * len(self._free)
        self._chance = random.Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._changed = False
        self._buckets = [Bucket.new(Rates(calls), 0.0) for _ in range(MODELS)] if calls else []
        if failing:
            for node in range(len(self._free)):
                self._after(self._chance.expovariate(1 / failing), lambda node=node: self._fail(node))  # type: ignore[misc]

    def submit(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if job.id not in self._queued and job.id not in self._on:
                self._queue.append(job.id)
                self._queued.add(job.id)
        self._place()

    def poll(self) -> dict[str, JobState]:
        if not self._queue and not self._on:
            return {}
        until = self.now + self.every if self.every else float("inf")
        self._changed = False
        while self._events and self._events[0][0] <= until and not (self._changed and not self.every):
            self.now, _, act = heapq.heappop(self._events)
            act()
        if self.every:
            self.now = until
        return {**dict.fromkeys(self._queue, "queued"), **dict.fromkeys(self._on, "running")}

    def cancel(self, ids: Iterable[str]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing."""

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._count), act))

    def _place(self) -> None:
        while self._queue:
            node = next((node for node, free in enumerate(self._free) if free and not self._down[node]), None)
            if node is None:
                return
            run = self.runs[self._queue.popleft()]
            self._queued.remove(run.id)
            self._free[node] -= 1
            self._on[run.id] = node
            run.attempt += 1
            self._step(run, run.attempt)

    def _step(self, run: SimulatedRun, attempt: int, call: int = 0) -> None:
        """Go on with a run: its next call, or the script of its step."""
        if run.attempt != attempt or run.id not in self._on:
            return
        if run.step == STEPS:
            self._free[self._on.pop(run.id)] += 1
            self.done.add(run.id)
            self._changed = True
            return self._place()
        if not self._buckets:
            self._after(run.script + CALLS * ANSWERING, lambda: self._stepped(run, attempt))
        elif call == CALLS:
            self._after(run.script, lambda: self._stepped(run, attempt))
        else:
            self._ask(run, attempt, call)
        return None

    def _ask(self, run: SimulatedRun, attempt: int, call: int) -> None:
        bucket = self._buckets[run.model]
        permit = bucket.place(str(run.model), 0, self.now)

        def look() -> None:
            seconds = bucket.wait(permit, self.now)
            if seconds:
                # The rate never changes here, and the first of a queue looks often enough for the bucket to know that there is one.
                self._after(seconds, look)
            else:
                self._after(ANSWERING, lambda: self._step(run, attempt, call + 1))

        look()

    def _stepped(self, run: SimulatedRun, attempt: int) -> None:
        if run.attempt == attempt and run.id in self._on:
            run.step += 1
            self._step(run, attempt)

    def _fail(self, node: int) -> None:
        self._down[node] = self._changed = True
        for id in [id for id, where in self._on.items() if where == node]:
            del self._on[id]
            self._free[node] += 1
            if not self.resume:
                self.runs[id].step = 0
        self._after(MENDING, lambda: self._mend(node))

    def _mend(self, node: int) -> None:
        self._down[node] = False
        self._after(self._chance.expovariate(1 / self.failing), lambda: self._fail(node))
        self._place()


Key = Callable[[SimulatedRun], object]


def make_runs(runs: int) -> list[SimulatedRun]:
    """Return the runs of the experiment, so many a task and model."""
    chance = random.Random(1)
    each = itertools.product(range(len(HOURS)), range(MODELS), range(runs))
    return [SimulatedRun(task, model, number, HOURS[task] * HOUR / STEPS * chance.uniform(0.9, 1.1)) for task, model, number in each]


def urgent(run: SimulatedRun) -> object:
    """Return the key by which experiments order their jobs (`experiments/batches.py`)."""
    return -HOURS[run.task], run.number, run.model, run.task


def jobs_of(runs: Sequence[SimulatedRun], key: Key) -> list[Job]:
    return [Job(run.id, ("run", run.id), Path("/dev/null"), gpus=1) for run in sorted(runs, key=key)]  # type: ignore[arg-type]


def makespan(runs: Sequence[SimulatedRun], gpus: int, key: Key = urgent, **how: float) -> float:
    """Return the hours until all runs are done."""
    cluster = SimulatedCluster(runs, gpus, **how)  # type: ignore[arg-type]
    outcomes = drive(jobs_of(runs, key), cluster, lambda job: job.id in cluster.done, tries=TRIES, every=0, pause=0)
    assert set(outcomes.values()) == {"done"}
    return cluster.now / HOUR


def queue(runs: int, seeds: int) -> None:
    work = sum(run.script + CALLS * ANSWERING for run in make_runs(runs)) * STEPS / HOUR
    names = ("ideal", "none fails", "anew", "resume", "saved", "capped", "its resume")
    print(f"{'GPUs':>5}" + "".join(f"{name:>11}" for name in names) + "   hours")
    # As many GPUs as runs are a single wave: none waits for another.
    for gpus in (1, 8, 64, 512, 65 * runs):
        fails = [{"failing": FAILING, "seed": seed} for seed in range(seeds)]
        anew = statistics.fmean(makespan(make_runs(runs), gpus, resume=False, **how) for how in fails)
        again = statistics.fmean(makespan(make_runs(runs), gpus, **how) for how in fails)
        none, capped = makespan(make_runs(runs), gpus), makespan(make_runs(runs), gpus, calls=CAP)
        both = statistics.fmean(makespan(make_runs(runs), gpus, calls=CAP, **how) for how in fails)
        print(
            f"{gpus:5}{work / gpus:11.1f}{none:11.1f}{anew:11.1f}{again:11.1f}{1 - again / anew:11.1%}{capped:11.1f}{both:11.1f}",
            flush=True,
        )


def order(runs: int) -> None:
    chance = random.Random(3)
    ways: dict[str, Key] = {
        "file (model, task, run)": lambda run: (run.model, run.task, run.number),
        "task, model, run": lambda run: (run.task, run.model, run.number),
        "by chance": lambda run: chance.random(),
        "-time, run, model": urgent,
    }
    print(f"\n64 GPUs, {CAP:g} calls a minute for each model\n{'order':>24}   hours")
    for name, key in ways.items():
        print(f"{name:>24} {makespan(make_runs(runs), 64, key, calls=CAP):7.1f}", flush=True)


def driver(count: int) -> None:
    runs = [SimulatedRun(number, 0, 0, 60 / STEPS - CALLS * ANSWERING) for number in range(count)]
    cluster = SimulatedCluster(runs, 512, every=0.5)
    polls, inside = 0, 0.0
    poll, submit = cluster.poll, cluster.submit

    def polled() -> dict[str, JobState]:
        nonlocal polls, inside
        started = time.process_time()
        alive = poll()
        polls, inside = polls + 1, inside + time.process_time() - started
        return alive

    def submitted(jobs: Iterable[Job]) -> None:
        nonlocal inside
        started = time.process_time()
        submit(jobs)
        inside += time.process_time() - started

    cluster.poll, cluster.submit = polled, submitted  # type: ignore[method-assign]
    jobs = jobs_of(runs, lambda run: run.task)
    started = time.process_time()
    drive(jobs, cluster, lambda job: job.id in cluster.done, every=0)
    spent = time.process_time() - started - inside
    print(
        f"\n{count:,} jobs of a minute on 512 slots: {cluster.now / 60:.1f} min, ideal {count / 512:.1f}; the driver took {spent:.1f} s"
        f" of a core for {polls:,} polls, {spent / polls * 1000:.2f} ms each, {spent / cluster.now:.2%} of the time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one run of a task and model in place of 8, and 1,000 jobs in place of 10,000")
    quick = parser.parse_args().quick
    runs = 1 if quick else 8
    queue(runs, 1 if quick else 10)
    order(runs)
    driver(1_000 if quick else 10_000)


if __name__ == "__main__":
    main()
