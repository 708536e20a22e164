"""The lock of timed gradings, between tasks of one program and between programs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench import GradingError
from mlagentbench.grading.lock import holding

HOLDER = """
import asyncio, sys, time
from pathlib import Path
from mlagentbench.grading.lock import holding

async def hold():
    async with holding(Path(sys.argv[1])):
        print("held", flush=True)
        time.sleep(600)

asyncio.run(hold())
"""


def test_one_at_a_time(tmp_path: Path) -> None:
    inside = 0

    async def grade() -> None:
        nonlocal inside
        async with holding(tmp_path / "lock"):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            inside -= 1

    async def five() -> None:
        await asyncio.gather(*(grade() for _ in range(5)))

    asyncio.run(five())
    assert inside == 0


def test_another_program_is_waited_for_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"

    async def scene() -> None:
        async with asyncio.timeout(300):
            taking = asyncio.create_task(take())
            await asyncio.wait([taking], timeout=0.3)
            assert not taking.done()
            os.kill(holder.pid, signal.SIGKILL)
            await taking

    async def take() -> None:
        async with holding(lock):
            pass

    try:
        asyncio.run(scene())
    finally:
        holder.kill()
        holder.communicate()


def test_waiting_can_be_cancelled_and_leaves_the_lock_free(tmp_path: Path) -> None:
    async def scene() -> None:
        async with holding(tmp_path / "lock"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1), holding(tmp_path / "lock"):
                    raise AssertionError("two hold the lock")
        async with asyncio.timeout(300), holding(tmp_path / "lock"):
            pass

    asyncio.run(scene())


def test_a_lock_file_that_was_tidied_away_locks_nobody_out_and_nobody_in(tmp_path: Path) -> None:
    lock = tmp_path / "lock"

    async def scene() -> None:
        async with holding(lock):
            lock.unlink()
        async with holding(lock):
            assert lock.exists()

    asyncio.run(scene())


def test_every_user_can_open_it_whatever_the_umask(tmp_path: Path) -> None:
    async def scene() -> None:
        async with holding(tmp_path / "lock"):
            pass

    before = os.umask(0o077)
    try:
        asyncio.run(scene())
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("trap", ["link", "pipe", "no folder"])
def test_a_place_that_cannot_be_locked_is_the_machines_fault(tmp_path: Path, trap: str) -> None:
    lock = tmp_path / "lock"
    if trap == "link":
        lock.symlink_to("/etc/passwd")
    elif trap == "pipe":
        os.mkfifo(lock)
    else:
        lock = tmp_path / "missing" / "lock"

    async def scene() -> None:
        async with holding(lock):
            pass

    with pytest.raises(GradingError, match="lock"):
        asyncio.run(scene())
