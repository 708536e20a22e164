"""Limit how many runs go on at once, and give each GPU to one run at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mlagentbench.util.machine import cores


@dataclass(eq=False)
class _Waiting:
    gpus: Sequence[str]
    rank: int
    slot: asyncio.Future[Slot | None]


@dataclass(frozen=True)
class Slot:
    """A run's permission to go on."""

    gpus: tuple[str, ...]
    """The GPU that the run has to itself; empty if it asked for none."""


class Slots:
    """A queue for slots: `parallel`, or any number for None. They are given by rank, and among equals in the order of asking.

    A run whose GPU is in use is overtaken by those that can start. A waiting run holds neither slot nor GPU, so a GPU is idle only when no
    run that wants it may go on.
    """

    def __init__(self, parallel: int | None = None) -> None:
        self.parallel = parallel or 1
        """How many runs share the machine's disk; 1 if `parallel` is None."""
        self._parallel = parallel
        self._running = 0
        self._used: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._closed = False
        self.gradings = asyncio.Semaphore(cores())
        """A semaphore to hold during each grading, one place a core. Gradings are processes that compute: a hundred at once would be slower
        than a few and could fill the memory."""

    @asynccontextmanager
    async def slot(self, gpus: Sequence[str] = (), rank: int = 0) -> AsyncIterator[Slot | None]:
        """Wait for a slot, and hold it.

        Args:
            gpus: the GPUs that the run may use; it gets one of them. Empty for a run that needs none.
            rank: runs of a lower rank come first.

        Yields:
            The slot; None if `close` was called, so that no further run starts.
        """
        slot = await self._take(gpus, rank)
        try:
            yield slot
        finally:
            self._give_back(slot)

    def close(self) -> None:
        """Let no further run start, not even those that wait. Runs that go on keep their slots."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.slot.done():
                waiting.slot.set_result(None)
        self._waiting.clear()

    async def _take(self, gpus: Sequence[str], rank: int) -> Slot | None:
        if self._closed:
            return None
        waiting = _Waiting(gpus, rank, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._hand_out()
        try:
            return await waiting.slot
        except asyncio.CancelledError:
            # The slot may have been given just before the cancellation, and would be lost otherwise.
            if waiting.slot.done() and not waiting.slot.cancelled():
                self._give_back(waiting.slot.result())
            raise

    def _give_back(self, slot: Slot | None) -> None:
        if slot is None:
            return
        self._running -= 1
        self._used.difference_update(slot.gpus)
        self._hand_out()

    def _hand_out(self) -> None:
        still = []
        for waiting in sorted(self._waiting, key=lambda waiting: waiting.rank):
            free = [gpu for gpu in waiting.gpus if gpu not in self._used]
            full = self._parallel is not None and self._running >= self._parallel
            if waiting.slot.done():  # cancelled
                continue
            if full or (waiting.gpus and not free):
                still.append(waiting)
                continue
            slot = Slot(tuple(free[:1]))
            self._running += 1
            self._used.update(slot.gpus)
            waiting.slot.set_result(slot)
        self._waiting = still
