"""Every task's grader, given damaged submissions: it must score or refuse each, and never fail.

    python -m tests.fuzz.graders                        50,000, over all tasks; some 20 minutes on two cores
    python -m tests.fuzz.graders --cases 300 house-price diabetes

A case is named by its task and number, from which its damage is drawn: `--only house-price:17` does it again and shows what it left.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import GradingError
from mlagentbench.grading.fork_server import ForkServer, fork_server
from mlagentbench.grading.grade import Grader, missing
from mlagentbench.task.catalogue import Task, find_tasks
from mlagentbench.task.proofs import Files
from tests.fuzz.damage import Left, damaged, leave
from tests.tasks.by_hand import mini

WITH_SANDBOX = ("babylm", "clrs", "llama-inference", "pydoc-lm", "vectorization")
"""Tasks whose graders start a sandbox, which takes seconds."""
EACH = 40
"""Cases of such a task, at most."""


class Tally(NamedTuple):
    """What became of a task's cases."""

    task: str
    verdicts: Counter[str]
    failures: list[str]
    """The cases on which its grader failed, and its words."""
    slowest: float
    """Seconds."""


class Target(NamedTuple):
    """A task, ready to grade."""

    task: Task
    data: Prepared
    oracle: Files

    def case(self, number: int) -> Left:
        """Return the damaged submission of a number."""
        return damaged(self.oracle, Random(f"{self.task.id}:{number}"))


def target(task: Task, root: Path) -> Target:
    """Prepare a task's data below a folder, and have its oracle submission."""
    data = mini(task, root) if task.preparer else Prepared.empty(root)
    proof = task.module("proof")
    assert proof is not None
    return Target(task, data, next(iter(proof.oracle(data).values())))


async def fuzz(target: Target, numbers: Iterable[int], forks: ForkServer | None = None) -> Tally:
    """Have a task's grader grade damaged submissions."""
    tally = Tally(target.task.id, Counter(), [], 0.0)
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as root:
        async with Grader(target.task, variant="mini", private=target.data.private, seed=0, forks=forks) as grader:
            for number in numbers:
                folder = Path(root) / str(number)
                folder.mkdir()
                leave(target.case(number), folder)
                verdict, words, seconds = await _graded(grader, folder)
                shutil.rmtree(folder)
                tally.verdicts[verdict] += 1
                if verdict == "failed":
                    tally.failures.append(f"{target.task.id}:{number}: {words}")
                tally = tally._replace(slowest=max(tally.slowest, seconds))
    return tally


async def _graded(grader: Grader, folder: Path) -> tuple[str, str, float]:
    if missing(grader.task.spec, folder):
        return "no submission", "", 0.0
    started = time.monotonic()
    try:
        found = await grader.grade(folder)
    except GradingError as error:
        return "failed", str(error), time.monotonic() - started
    return ("scored" if found.score else "refused"), found.reason or "", found.seconds


def shares(tasks: Sequence[str], cases: int) -> dict[str, int]:
    """Return how many cases each task has: equally many, but for those that start a sandbox."""
    heavy = [task for task in tasks if task in WITH_SANDBOX]
    light = len(tasks) - len(heavy)
    some = min(EACH, -(-cases // len(tasks)))
    rest, over = divmod(max(0, cases - some * len(heavy)), max(1, light))
    found = dict.fromkeys(heavy, some)
    for place, task in enumerate(task for task in tasks if task not in WITH_SANDBOX):
        found[task] = rest + (place < over)
    return found


async def _main(tasks: Sequence[str], cases: int, at_once: int) -> int:
    known, slots = find_tasks(), asyncio.Semaphore(at_once)
    counts = shares(tasks or list(known), cases)
    tallies: list[Tally] = []

    async def one(name: str, count: int, forks: ForkServer | None) -> None:
        async with slots:
            with tempfile.TemporaryDirectory(prefix="fuzz-data-") as root:
                tally = await fuzz(await asyncio.to_thread(target, known[name], Path(root)), range(count), forks)
        tallies.append(tally)
        told = ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(tally.verdicts.items()))
        print(f"{name}: {told}; slowest {tally.slowest:.1f} s", *tally.failures[:20], sep="\n  ", flush=True)

    async with fork_server() as forks:
        await asyncio.gather(*(one(name, count, forks) for name, count in sorted(counts.items())))
    failures = sum(len(tally.failures) for tally in tallies)
    print(f"{sum(tally.verdicts.total() for tally in tallies):,} cases of {len(tallies)} tasks, {failures:,} on which a grader failed")
    return int(failures > 0)


def _show(name: str) -> int:
    task, number = name.split(":")
    with tempfile.TemporaryDirectory(prefix="fuzz-data-") as root:
        found = target(find_tasks()[task], Path(root))
        for path, content in found.case(int(number)).items():
            print(path, repr(content[:2000]) if isinstance(content, bytes) else content, len(content) if isinstance(content, bytes) else "")
        tally = asyncio.run(fuzz(found, [int(number)]))
    print(dict(tally.verdicts), *tally.failures)
    return int(bool(tally.failures))


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Give every task's grader damaged submissions.")
    parser.add_argument("tasks", nargs="*", help="all by default")
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--at-once", type=int, default=2, help="tasks")
    parser.add_argument("--only", help="one case, TASK:NUMBER")
    asked = parser.parse_args()
    with suppress(KeyboardInterrupt):
        return _show(asked.only) if asked.only else asyncio.run(_main(asked.tasks, asked.cases, asked.at_once))
    return 130


if __name__ == "__main__":
    raise SystemExit(main())
