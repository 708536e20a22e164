"""Which runs go on at once: so many, and on a GPU never more than one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mlagentbench.run.capacity import cores


@dataclass(eq=False)
class _Waiting:
    gpus: Sequence[str]
    place: asyncio.Future[Slot | None]


@dataclass(frozen=True)
class Slot:
    """A run's place among those that go on."""

    gpus: tuple[str, ...]
    """The GPU that it has to itself; none where it wants none."""


class Slots:
    """The places of runs. They are given in the order of asking, but a run that waits for a GPU lets those pass that want none.

    Nothing is held while waiting, so that a GPU is idle only where no run that wants it may go on.

    Args:
        parallel: how many runs go on at once; None for any number.
    """

    def __init__(self, parallel: int | None = None) -> None:
        self.parallel = parallel or 1
        """How many runs share the machine's disk; 1 where nobody says."""
        self._parallel = parallel
        self._running = 0
        self._used: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._closed = False
        self.gradings = asyncio.Semaphore(cores())
        """To be held during a grading: each is a process that computes, and a hundred at once would be slower than a few and could fill the
        memory, whatever else goes on at once."""

    @asynccontextmanager
    async def slot(self, gpus: Sequence[str] = ()) -> AsyncIterator[Slot | None]:
        """Wait for a place, and hold it.

        Args:
            gpus: the run gets one of them; none where there are none.

        Returns:
            The place; None where no run is to start any more.
        """
        slot = await self._take(gpus)
        try:
            yield slot
        finally:
            self._give_back(slot)

    def close(self) -> None:
        """Let no run start any more, those that wait included. Those that go on keep their places."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.place.done():
                waiting.place.set_result(None)
        self._waiting.clear()

    async def _take(self, gpus: Sequence[str]) -> Slot | None:
        if self._closed:
            return None
        waiting = _Waiting(gpus, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._hand_out()
        try:
            return await waiting.place
        except asyncio.CancelledError:
            # It may have been given a place just before.
            if waiting.place.done() and not waiting.place.cancelled():
                self._give_back(waiting.place.result())
            raise

    def _give_back(self, slot: Slot | None) -> None:
        if slot is None:
            return
        self._running -= 1
        self._used.difference_update(slot.gpus)
        self._hand_out()

    def _hand_out(self) -> None:
        still = []
        for waiting in self._waiting:
            free = [gpu for gpu in waiting.gpus if gpu not in self._used]
            full = self._parallel is not None and self._running >= self._parallel
            if waiting.place.done():  # cancelled
                continue
            if full or (waiting.gpus and not free):
                still.append(waiting)
                continue
            slot = Slot(tuple(free[:1]))
            self._running += 1
            self._used.update(slot.gpus)
            waiting.place.set_result(slot)
        self._waiting = still
