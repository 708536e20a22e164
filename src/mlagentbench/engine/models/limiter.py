"""Share one rate limit for each model among all runs of a log directory, whatever processes and nodes they run in.

The runs of one machine share a file a model, which they lock for some microseconds with flock(2). Several machines that use the same log
directory each have a file of their own, and share a model's limit by their queues, which they read from one another's files. So there is no
service to start, to find and to lose. `benchmarks/rate_limits.py` compares this with equal shares, and with a service.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple, TypeVar

from mlagentbench.engine.models.bucket import LOOK, SIZE, Bucket, Rates
from mlagentbench.model import Limiter, Permit, Refusal
from mlagentbench.run_spec import RateLimit
from mlagentbench.util import lock

FOLDER = "limits"
"""The folder of a log directory that holds the state of its rate limits."""
ACTIVE = 120.0
"""Seconds since its last request after which a machine has no share of a limit."""
COUNTING = 10.0
"""Seconds between two looks at the other machines."""
LOCKED = 0.001
"""Seconds between two tries to lock a file that is locked."""

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


class _File(NamedTuple):
    """A model's file, while it is open."""

    descriptor: int
    path: Path
    stated: Rates


class SharedLimiter:
    """A `Limiter` whose state is in files, one a model and machine.

    If the files cannot be written, the requests of this process share a limit of their own.

    Args:
        folder: the folder of the files, which is made.
        stated: the models' limits by name.
        clock: returns the time in seconds, the same in all processes.
        machine: the name of this machine.
    """

    def __init__(
        self,
        folder: Path,
        stated: Mapping[str, RateLimit] = {},
        *,
        clock: Callable[[], float] = time.time,
        machine: str | None = None,
    ) -> None:
        self._folder = folder
        self._stated = {model: Rates(limit.requests or math.inf, limit.tokens or math.inf) for model, limit in stated.items()}
        self._clock = clock
        self._machine = _file_name(machine or socket.gethostname())
        self._files: dict[str, _File] = {}
        self._shares: dict[str, tuple[float, float]] = {}
        self._own: dict[str, Bucket] = {}

    async def admit(self, model: str, tokens: int, refused: Permit | None = None) -> Permit:
        """Wait until a request may be sent. If this is cancelled, the request gives up its place."""
        place, waited = refused, False

        def look(bucket: Bucket, now: float, share: float) -> tuple[Permit, float]:
            permit = place or bucket.place(model, tokens, now, share)
            seconds = bucket.wait(permit, now, share)
            return (permit, seconds) if seconds else (bucket.send(permit, now, waited=waited), 0.0)

        try:
            while True:
                permit, seconds = await self._with(model, look)
                if not seconds:
                    return permit
                place, waited = permit, True
                await asyncio.sleep(min(seconds, LOOK))
        except asyncio.CancelledError:
            if place is not None:
                left = place
                self._at_once(model, lambda bucket, now, share: bucket.leave(left, now, share))
            raise

    async def answered(self, permit: Permit, tokens: int) -> None:
        """Note that a request ended without a refusal, and the tokens that it used."""
        await self._with(permit.model, lambda bucket, now, share: bucket.answered(permit, tokens, now, share))

    async def refused(self, permit: Permit, refusal: Refusal) -> None:
        """Note that the provider refused a request."""
        await self._with(permit.model, lambda bucket, now, share: bucket.refused(permit, refusal, now, share))

    def rates(self, model: str) -> Rates:
        """Return the current rates of a model on this machine, a minute."""
        return self._at_once(model, lambda bucket, now, share: bucket.rates(share)) or Rates()

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.popitem()[1].descriptor)

    async def _with(self, model: str, change: Callable[[Bucket, float, float], _Answer]) -> _Answer:
        """Change a model's bucket while no other process does."""
        while True:
            try:
                # The lock is tried, not waited for: a holder may have been stopped, and the event loop must go on.
                return self._change(model, change)
            except BlockingIOError:
                await asyncio.sleep(LOCKED)
            except OSError as error:
                return self._alone(model, change, error)

    def _at_once(self, model: str, change: Callable[[Bucket, float, float], _Answer]) -> _Answer | None:
        """Do what `_with` does, but return None if another process has the bucket at the moment."""
        try:
            return self._change(model, change)
        except BlockingIOError:
            return None
        except OSError as error:
            return self._alone(model, change, error)

    def _change(self, model: str, change: Callable[[Bucket, float, float], _Answer]) -> _Answer:
        if model in self._own:
            return change(self._own[model], self._clock(), 1.0)
        file = self._files.get(model) or self._open(model)
        if not lock.acquire(file.descriptor, timeout=0):
            raise BlockingIOError
        try:
            now = self._clock()
            data = os.pread(file.descriptor, SIZE + 1, 0)
            if len(data) > SIZE:
                os.ftruncate(file.descriptor, SIZE)
            bucket = Bucket.load(data, file.stated, now)
            answer = change(bucket, now, self._share(model, file, bucket, now))
            os.pwrite(file.descriptor, bucket.dump(), 0)
            return answer
        finally:
            lock.release(file.descriptor)

    def _open(self, model: str) -> _File:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{_file_name(model)}@{self._machine}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._files[model] = _File(descriptor, path, self._stated.get(model, Rates()))
        return self._files[model]

    def _alone(self, model: str, change: Callable[[Bucket, float, float], _Answer], error: OSError) -> _Answer:
        _log.warning("the rate limit of %s is not shared with other processes, since its file in %s failed: %s", model, self._folder, error)
        now = self._clock()
        self._own[model] = Bucket.new(self._stated.get(model, Rates()), now)
        return change(self._own[model], now, 1.0)

    def _share(self, model: str, file: _File, bucket: Bucket, now: float) -> float:
        """Return this machine's share of a model's limit: that of its queue among all queues, as others last wrote theirs."""
        counted, share = self._shares.get(model, (-math.inf, 1.0))
        if now - counted > COUNTING:
            paths = [path for path in self._folder.glob(f"{file.path.name.rpartition('@')[0]}@*") if path != file.path]
            all_machines = [bucket, *(other for other in map(_bucket, paths) if other and now - other.looked < ACTIVE)]
            share = _share(all_machines, [self.weight(machine) for machine in all_machines])
            self._shares[model] = now, share
        return share

    @staticmethod
    def weight(bucket: Bucket) -> float:
        """Return the weight by which a machine shares a limit with others: its queue."""
        return max(1.0, bucket.asked_requests - bucket.paid_requests)


def _bucket(path: Path) -> Bucket | None:
    """Return the bucket of another machine; None if its file is gone or cannot be read."""
    try:
        return Bucket.load(path.read_bytes(), Rates(), -math.inf)
    except OSError:
        return None


def _share(machines: Sequence[Bucket], weights: Sequence[float]) -> float:
    """Return the share of the first of several machines, such that all together send at the mean of the rates that they believe in.

    The machine with the longest queue sends most, meets most refusals, and would otherwise believe in the lowest rate.
    """
    share = weights[0] / sum(weights)
    believed = [_believed(machine) for machine in machines]
    known = [(weight, rate) for weight, rate in zip(weights, believed, strict=True) if rate < math.inf]
    if believed[0] == math.inf:
        return share
    return share * sum(weight * rate for weight, rate in known) / sum(weight for weight, _ in known) / believed[0]


def _believed(bucket: Bucket) -> float:
    """Return the rate of all machines that a machine believes in: of requests, or without a limit of these, of tokens."""
    rates = bucket.rates()
    return rates.requests if rates.requests < math.inf else rates.tokens


def _file_name(name: str) -> str:
    """Return a file's name for a model or a machine, a different one for each."""
    return f"{re.sub(r'[^A-Za-z0-9.-]', '_', name)[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


_in_use: ContextVar[Limiter | None] = ContextVar("limiter", default=None)


def current_limiter() -> Limiter | None:
    """Return the limiter of the running evaluation; None if it has none."""
    return _in_use.get()


@contextmanager
def use_limiter(limiter: Limiter) -> Iterator[None]:
    """Use a limiter for the evaluations inside this context."""
    token = _in_use.set(limiter)
    try:
        yield
    finally:
        _in_use.reset(token)
