"""Whether the untouched starter of a timed task is as fast as itself: its gradings against its own baseline, which must average 0%.

    python benchmarks/timing_bias.py --gradings 40    some five minutes, on a machine that does nothing else
    python benchmarks/timing_bias.py --quick          two gradings

The starter is graded as a submission is, beside itself. A mean that lies farther from 0 than twice its standard error is a bias: of the
order of the trials, of warming up or of a cache. Half of the gradings should be slower. Forty of vectorization on a quiet machine of two
cores gave +0.38% with a standard error of 0.56%; twenty of them were slower.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics

from mlagentbench.data.prepare import prepared
from mlagentbench.grading.fork_server import fork_server
from mlagentbench.grading.grade import Grader
from mlagentbench.task.catalogue import find_task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradings", type=int, default=40, help="how often the starter is graded (default: 40)")
    parser.add_argument("--task", default="vectorization", help="a timed task (default: vectorization)")
    parser.add_argument("--quick", action="store_true", help="two gradings")
    given = parser.parse_args()
    slower = asyncio.run(relative_times(given.task, 2 if given.quick else max(2, given.gradings)))
    mean, deviation = statistics.fmean(slower), statistics.stdev(slower)
    error = deviation / math.sqrt(len(slower))
    print("| gradings | mean | standard error | standard deviation | slower than itself |\n|---|---|---|---|---|")
    print(f"| {len(slower)} | {mean:+.2%} | {error:.2%} | {deviation:.2%} | {sum(each > 0 for each in slower)} |")


async def relative_times(name: str, count: int) -> list[float]:
    """Return how much slower than itself the starter was in each of some gradings: 0.01 is 1%."""
    task = find_task(name)
    data, found = prepared(task, "mini"), []
    async with fork_server() as forks, Grader(task, variant="mini", private=data.private, forks=forks) as grader:
        for _ in range(count):
            graded = await grader.grade(task.starter)
            assert graded.score is not None and graded.score.baseline is not None, graded.reason
            found.append(graded.score.value / graded.score.baseline.value - 1)
    return found


if __name__ == "__main__":
    main()
