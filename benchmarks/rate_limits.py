"""What a provider's rate limit does to 1,024 runs at once, when it allows 40% less than it states: refusals, waits and lost runs.

The clock and the provider are simulated; the waiting is done by the code of real runs (`persist` and `SharedLimiter`), with its state in
real files. The provider allows 240 requests a minute and states 400. It keeps ten seconds of what is not used, refuses what is beyond,
within 0.2 s, and answers in 15 s on average. A run asks, acts for 20 s on average, and asks again.

- back-off, 15 min: each run pauses for itself, longer and longer, and is lost after 15 minutes without an answer.
- back-off: the same without giving up.
- one machine: all runs share one file.
- 8, equal shares: eight machines, each with a file of its own and an eighth of the limit. Half of the runs are on one of them.
- 8, by queues: the same machines share the limit by the lengths of their queues. This is what runs do.
- 8, one service: the same machines ask one process over the network, which takes 2 ms. There is no such service; it is simulated by one
  file and the delay.

`refusals` are for each answer. `wait` is the time from a question until the request that was answered, at the median, 95% and most.

    python benchmarks/rate_limits.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import selectors
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from mlagentbench.engine.models.bucket import Bucket
from mlagentbench.engine.models.limiter import SharedLimiter
from mlagentbench.engine.models.retries import GivenUp, ProviderError, persist
from mlagentbench.model import Limiter, Permit, Refusal
from mlagentbench.run_spec import RateLimit

MODEL = "provider/model"
SHARE_ALLOWED = 0.6
REFUSING, ANSWERING, ACTING, DELAY = 0.2, 15.0, 20.0, 0.002
MACHINES = 8


class _NoFiles(selectors.DefaultSelector):
    """A selector that does not wait, but moves a loop's clock."""

    clock = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits for something that does not come")
        self.clock += timeout
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in which time passes only while everything sleeps, and takes none."""

    def __init__(self) -> None:
        self._moves = _NoFiles()
        super().__init__(self._moves)
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._moves.clock


class Provider:
    """A provider with a rate limit, in requests a minute."""

    def __init__(self, allowed: float, chance: random.Random) -> None:
        self.per_second, self.most = allowed / 60, allowed / 6
        self.room, self.looked = self.most, 0.0
        self.chance = chance
        self.answers = self.refusals = 0

    async def ask(self, known: bool) -> float:
        """Answer, and return when the request came.

        Args:
            known: whether the refusals are to be known as those of a rate limit.
        """
        now = asyncio.get_running_loop().time()
        self.room, self.looked = min(self.most, self.room + (now - self.looked) * self.per_second), now
        if self.room < 1:
            self.refusals += 1
            await asyncio.sleep(REFUSING)
            raise ProviderError("429: slow down", refusal=Refusal() if known else None)
        self.room -= 1
        self.answers += 1
        await asyncio.sleep(self.chance.expovariate(1 / ANSWERING))
        return now


class Remote:
    """A limiter at the other end of a network."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter

    async def admit(self, model: str, tokens: int, refused: Permit | None = None) -> Permit:
        await asyncio.sleep(DELAY)
        return await self.limiter.admit(model, tokens, refused)

    async def answered(self, permit: Permit, tokens: int) -> None:
        await asyncio.sleep(DELAY)
        await self.limiter.answered(permit, tokens)

    async def refused(self, permit: Permit, refusal: Refusal) -> None:
        await asyncio.sleep(DELAY)
        await self.limiter.refused(permit, refusal)


class Outcome(NamedTuple):
    """What became of the runs."""

    refusals: float
    waits: list[float]
    lost: int
    hours: float
    used: float
    """The answers, over what the provider would have allowed in the time."""


Make = Callable[[Path, Mapping[str, RateLimit], Callable[[], float]], list[Limiter]]
"""Makes the limiters of the machines."""


def one_machine(folder: Path, stated: Mapping[str, RateLimit], clock: Callable[[], float]) -> list[Limiter]:
    return [SharedLimiter(folder, stated, clock=clock, machine="0")]


class EqualShares(SharedLimiter):
    """A limiter that gives all machines the same share."""

    @staticmethod
    def weight(bucket: Bucket) -> float:
        return 1.0


def equal_shares(folder: Path, stated: Mapping[str, RateLimit], clock: Callable[[], float]) -> list[Limiter]:
    return [EqualShares(folder, stated, clock=clock, machine=str(number)) for number in range(MACHINES)]


def by_queues(folder: Path, stated: Mapping[str, RateLimit], clock: Callable[[], float]) -> list[Limiter]:
    return [SharedLimiter(folder, stated, clock=clock, machine=str(number)) for number in range(MACHINES)]


def service(folder: Path, stated: Mapping[str, RateLimit], clock: Callable[[], float]) -> list[Limiter]:
    return [Remote(limiter) for limiter in one_machine(folder, stated, clock)]


def simulate(runs: int, calls: int, make: Make | None, *, patient: bool = True) -> Outcome:
    """Let runs ask a provider, each so many times, and return what became of them."""
    stated = runs / 1024 * 400
    chance = random.Random(1)
    waits: list[float] = []

    async def one(provider: Provider, limiter: Limiter | None) -> bool:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(chance.uniform(0, ACTING))
        for _ in range(calls):
            asked = clock()
            request: Callable[[], Awaitable[float]] = lambda: provider.ask(patient)  # noqa: E731
            try:
                came = await persist(request, model=MODEL, limiter=limiter)
            except GivenUp:
                return False
            waits.append(came - asked)
            await asyncio.sleep(chance.expovariate(1 / ACTING))
        return True

    async def story(folder: Path) -> Outcome:
        clock = asyncio.get_running_loop().time
        provider = Provider(stated * SHARE_ALLOWED, chance)
        limiters = make(folder, {MODEL: RateLimit(requests=stated)}, clock) if make else [None]
        # Half of the runs are on the first machine, the others on all in turn.
        machines = [0 if number % 2 else number // 2 % len(limiters) for number in range(runs)]
        done = await asyncio.gather(*(one(provider, limiters[machine]) for machine in machines))
        used = provider.answers / (provider.per_second * clock())
        return Outcome(provider.refusals / max(1, provider.answers), sorted(waits), runs - sum(done), clock() / 3600, used)

    random.seed(1)  # the pauses of the back-off
    with tempfile.TemporaryDirectory(prefix="mlab-rate-") as folder, asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(story(Path(folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="64 runs of 6 questions, in place of 1,024 of 12")
    runs, calls = (64, 6) if parser.parse_args().quick else (1024, 12)
    print(f"{runs} runs of {calls} questions\n")
    print(f"{'':18} {'refusals':>8} {'wait: median':>13} {'95%':>7} {'most':>7} {'lost':>5} {'hours':>6} {'used':>5}")
    ways: dict[str, tuple[Make | None, bool]] = {
        "back-off, 15 min": (None, False),
        "back-off": (None, True),
        "one machine": (one_machine, True),
        "8, equal shares": (equal_shares, True),
        "8, by queues": (by_queues, True),
        "8, one service": (service, True),
    }
    for name, (make, patient) in ways.items():
        out = simulate(runs, calls, make, patient=patient)
        waits = out.waits
        print(
            f"{name:18} {out.refusals:8.3f} {statistics.median(waits):11.0f} s {waits[int(len(waits) * 0.95)]:5.0f} s {waits[-1]:5.0f} s"
            f" {out.lost:5} {out.hours:6.2f} {out.used:5.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
