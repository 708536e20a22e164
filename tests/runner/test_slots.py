"""Who may run now."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from mlagentbench.runner.slots import Slots
from tests.support import HANGING, finish


class Watched:
    """Runs that hold a place for a moment, and note who held what beside them."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.running: list[str] = []
        self.order: list[str] = []
        self.most = 0
        self.gpus: dict[str, tuple[str, ...]] = {}

    async def run(self, name: str, gpus: Sequence[str] = (), seconds: float = 0.01, until: asyncio.Event | None = None) -> bool:
        async with self.slots.slot(gpus) as slot:
            if slot is None:
                return False
            assert not any(set(slot.gpus) & set(self.gpus[other]) for other in self.running), "a GPU was given twice"
            self.gpus[name] = slot.gpus
            self.order.append(name)
            self.running.append(name)
            self.most = max(self.most, len(self.running))
            try:
                await (until.wait() if until else asyncio.sleep(seconds))
            finally:
                self.running.remove(name)
            return True


def test_so_many_run_at_once_and_in_the_order_of_asking() -> None:
    async def main() -> Watched:
        watched = Watched(Slots(3))
        await asyncio.gather(*(watched.run(str(number)) for number in range(12)))
        return watched

    watched = finish(main())
    assert watched.most == 3
    assert watched.order == [str(number) for number in range(12)]
    assert set(watched.gpus.values()) == {()}


def test_a_gpu_is_one_runs_alone_and_each_is_used() -> None:
    async def main() -> Watched:
        watched = Watched(Slots(None))
        await asyncio.gather(*(watched.run(str(number), ("0", "1"), random.uniform(0, 0.01)) for number in range(40)))
        return watched

    watched = finish(main())
    assert watched.most == 2
    assert set(watched.gpus.values()) == {("0",), ("1",)}


def test_who_waits_for_a_gpu_lets_others_pass_and_takes_no_place_meanwhile() -> None:
    async def main() -> Watched:
        watched, others_are_done = Watched(Slots(2)), asyncio.Event()
        first = asyncio.create_task(watched.run("first", ("0",), until=others_are_done))
        second = asyncio.create_task(watched.run("second", ("0",)))
        async with asyncio.timeout(HANGING):
            await asyncio.gather(watched.run("third"), watched.run("fourth"))
        others_are_done.set()
        await asyncio.gather(first, second)
        return watched

    assert finish(main()).order == ["first", "third", "fourth", "second"]


def test_a_run_that_is_cancelled_or_fails_gives_its_place_back() -> None:
    async def main() -> None:
        slots = Slots(1)
        watched = Watched(slots)
        holder, waiter = (asyncio.create_task(watched.run(name, ("0",), 600)) for name in ("holder", "waiter"))
        await asyncio.sleep(0.01)
        waiter.cancel()
        holder.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        assert await asyncio.wait_for(watched.run("next", ("0",)), HANGING)
        # The place was given, and the run cancelled before it could take it.
        async with slots.slot(("0",)):
            late = asyncio.create_task(watched.run("late", ("0",)))
            await asyncio.sleep(0.01)
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        assert await asyncio.wait_for(watched.run("last", ("0",)), HANGING)
        assert "late" not in watched.order

    finish(main())


def test_once_closed_none_starts_and_those_that_go_on_keep_their_places() -> None:
    async def main() -> None:
        slots = Slots(1)
        watched = Watched(slots)
        closed = asyncio.Event()
        going, waiting = asyncio.create_task(watched.run("going", until=closed)), asyncio.create_task(watched.run("waiting"))
        await asyncio.sleep(0.01)
        slots.close()
        assert not await watched.run("late")
        assert not await waiting
        closed.set()
        assert await going
        assert watched.order == ["going"]

    finish(main())
